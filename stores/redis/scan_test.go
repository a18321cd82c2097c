package redis

import (
	"strings"
	"testing"
)

func TestScanner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"+OK\r\n":                   1,
		":12\r\n-ERR no\r\n":        2,
		"$5\r\nhe\nlo\r\n":          1,
		"$0\r\n\r\n$-1\r\n":         2,
		"*0\r\n*-1\r\n":             2,
		"*3\r\n:1\r\n:2\r\n:3\r\n":  1,
		"*2\r\n*1\r\n:1\r\n+x\r\n:": 1,
		"*2\r\n:1\r\n":              0,
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n": 2,
	} {
		// Whole, and in every two pieces, and byte by byte.
		for cut := range len(text) {
			var s scanner
			a, ok1 := s.scan([]byte(text[:cut]))
			b, ok2 := s.scan([]byte(text[cut:]))
			if a+b != want || !ok1 || !ok2 {
				t.Errorf("%q cut at %d: %d messages, want %d", text, cut, a+b, want)
			}
		}
		var s scanner
		got := int64(0)
		for i := range len(text) {
			n, ok := s.scan([]byte{text[i]})
			if got += n; !ok {
				t.Errorf("%q byte by byte: refused at %d", text, i)
			}
		}
		if got != want {
			t.Errorf("%q byte by byte: %d messages, want %d", text, got, want)
		}
	}
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "\x15\x03\x01", "$-2\r\n", "*-5\r\n", "$\r\n", "$x\r\n", "$--1\r\n", "$1-\r\n",
		"*99999999999999999999\r\n", "$99999999999\r\n", "%1\r\n+a\r\n+b\r\n", ">1\r\n+x\r\n", "$?\r\n",
		strings.Repeat("*9\r\n", 200_000), "+" + strings.Repeat("x", maxLine+1),
	} {
		var s scanner
		if _, ok := s.scan([]byte(text)); ok {
			t.Errorf("%.30q was taken", text)
		}
	}
}

// FuzzScanner: the pieces in which bytes come do not matter, and no bytes do harm.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n+OK\r\n"), 7)
	f.Add([]byte("$-1\r\n:5\r\n*0\r\n-ERR x\r\n"), 1)
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		cut = max(0, min(cut, len(p)))
		var whole, parts scanner
		n, ok := whole.scan(p)
		a, ok1 := parts.scan(p[:cut])
		var b int64
		if ok1 {
			b, ok1 = parts.scan(p[cut:])
		}
		if ok && (!ok1 || a+b != n) {
			t.Errorf("whole: %d; cut at %d: %d, %v", n, cut, a+b, ok1)
		}
		if n < 0 || whole.need < 0 || whole.skip < 0 {
			t.Errorf("%+v after %d messages", whole, n)
		}
	})
}
