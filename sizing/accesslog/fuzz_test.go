package accesslog

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// seeds holds small hand-written lines by family, one file each.
func seeds(f *testing.F, family string) {
	b, err := os.ReadFile(filepath.Join("testdata", family+".txt"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
}

// fuzzLine holds what must be true of any line whatever: no panic, every line
// counted once, and a record that names only what its line holds.
func fuzzLine(f *testing.F, family string, o Options) {
	seeds(f, family)
	o.Now = now
	f.Fuzz(func(t *testing.T, line string) {
		p := NewParser(o)
		var r Record
		k := p.Parse(line, &r)
		again := NewParser(o)
		var r2 Record
		if k2 := again.Parse(line, &r2); k2 != k || k == Parsed && r != r2 {
			t.Fatalf("two readings differ: %v %+v, %v %+v", k, r, k2, r2)
		}
		if k >= NumKinds {
			t.Fatalf("kind %d", k)
		}
		s := p.Stats()
		if s.Lines != 1 || s.Records+s.Skipped[k] != 1 {
			t.Fatalf("counted %+v", s)
		}
		if !utf8.ValidString(s.Examples[k]) || len(s.Examples[k]) > 600 {
			t.Fatalf("example %q", s.Examples[k])
		}
		if k != Parsed {
			return
		}
		if y := r.Time.Year(); y < 1994 || y > 2027 {
			t.Fatalf("time %v", r.Time)
		}
		if r.Status < 0 || r.Status > 999 || r.Bytes < 0 || r.Duration < 0 || !isMethod(r.Method) {
			t.Fatalf("record %+v", r)
		}
		if a := r.Client; a.Is4In6() || a.Zone() != "" {
			t.Fatalf("client %v", a)
		}
		if strings.ContainsRune(r.Path, '?') {
			t.Fatalf("path %q holds a query", r.Path)
		}
	})
}

func FuzzText(f *testing.F) { fuzzLine(f, "text", Options{Client: ClientRule{Hops: 1}}) }
func FuzzJSON(f *testing.F) {
	fuzzLine(f, "json", Options{Client: ClientRule{Header: "CF-Connecting-IP"}})
}
func FuzzW3C(f *testing.F)     { fuzzLine(f, "w3c", Options{}) }
func FuzzProxies(f *testing.F) { fuzzLine(f, "proxies", Options{}) }
func FuzzLayout(f *testing.F) {
	l, err := ParseLayout(`$time_iso8601|$remote_addr|"$request"|$status|"$http_user_agent"|$http_x_forwarded_for`)
	if err != nil {
		f.Fatal(err)
	}
	fuzzLine(f, "layout", Options{Layout: l, Client: ClientRule{Hops: 2}})
}

// FuzzParseLayout: any format string is refused or usable, and never panics.
func FuzzParseLayout(f *testing.F) {
	for _, s := range []string{"combined", "main", `%{%Y-%m-%d}t %h "%r"`, "$msec $remote_addr $request", "log_format x '$a' '$b';", `LogFormat "%h" x`, "%>s%%{x}i"} {
		f.Add(s, "192.0.2.1 - - x")
	}
	f.Fuzz(func(t *testing.T, format, line string) {
		l, err := ParseLayout(format)
		if err != nil {
			return
		}
		p := NewParser(Options{Layout: l, Now: now})
		var r Record
		p.Parse(line, &r)
	})
}

// FuzzStream: whatever the bytes and the block borders, lines are neither lost
// nor doubled, and W3C state and JSON framing do not panic.
func FuzzStream(f *testing.F) {
	for _, s := range []string{"[\n{\"a\":1},\n{\"b\":\"}\"}]\n", "#Fields: date time c-ip\n2024-03-05 10:20:30 1.2.3.4\n", "a\n\nb", "{\n", "[{", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n := int64(0)
		s, err := Scan(context.Background(), []Input{Reader("fuzz", strings.NewReader(in))}, Options{Workers: 1, MaxLine: 300, Now: now},
			func(int) Sink { return SinkFunc(func(*Record) { n++ }) })
		if err != nil {
			t.Fatal(err)
		}
		sum := s.Records
		for _, k := range s.Skipped {
			sum += k
		}
		if sum != s.Lines || n != s.Records {
			t.Fatalf("%d lines, %d accounted for, %d delivered of %d", s.Lines, sum, n, s.Records)
		}
	})
}
