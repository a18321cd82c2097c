package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
)

// TestProgress: a terminal gets rate and time left and is left clean; a pipe gets
// nothing.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{1000, 0} {
		var out bytes.Buffer
		clock := time.Unix(0, 0)
		p := &progress{to: &out, what: "measuring", now: func() time.Time { return clock }}
		p.show(accesslog.Progress{Bytes: 100, Total: total, Lines: 50_000})
		clock = clock.Add(2 * time.Second)
		for range 2 {
			time.Sleep(120 * time.Millisecond) // the bar draws by the real clock, at most ten times a second
			p.show(accesslog.Progress{Bytes: 400, Total: total, Lines: 2_000_000})
		}
		p.done()
		text := out.String()
		for _, want := range []string{"measuring 2,000,000 lines, 1,000,000/s", "B/s"} {
			if !strings.Contains(text, want) {
				t.Errorf("of %d: no %q in %q", total, want, text)
			}
		}
		if total > 0 && !strings.Contains(text, "40%") {
			t.Errorf("no share in %q", text)
		}
		if last := text[strings.LastIndexByte(text[:len(text)-1], '\r')+1:]; strings.TrimSpace(last) != "" {
			t.Errorf("the line is not cleared: %q", last)
		}
	}
	var out bytes.Buffer
	silent := (&terminal{stderr: &out, now: time.Now}).progress("measuring")
	silent.show(accesslog.Progress{Bytes: 1, Lines: 1})
	silent.done()
	if out.Len() > 0 {
		t.Errorf("a pipe got %q", out.String())
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
