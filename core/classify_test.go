package core

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
)

// headerMap is the simplest Header: one value for each canonical name.
type headerMap map[string]string

func (h headerMap) Values(name string) []string {
	for k, v := range h {
		if strings.EqualFold(k, name) {
			return []string{v}
		}
	}
	return nil
}

// recorded is one line of the corpus; its README is docs/counting.md.
type recorded struct {
	Kind, Client, Scheme, Method, Path, Expect string
	OnWire                                     bool `json:"on_wire"`
	Headers                                    headerMap
}

func corpus(t testing.TB) []recorded {
	t.Helper()
	f, err := os.Open("testdata/browser-requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recorded
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var r recorded
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatalf("line %d: %v", len(out)+1, err)
		}
		out = append(out, r)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func (r recorded) request(t testing.TB) *Request {
	t.Helper()
	u, err := url.ParseRequestURI(r.Path)
	if err != nil {
		t.Fatalf("%s: %v", r.Kind, err)
	}
	return &Request{Method: r.Method, Path: u.Path, RawQuery: u.RawQuery, Header: r.Headers}
}

// TestClassifyRecorded holds the classifier against what real browsers, tools
// and frameworks sent, line by line.
func TestClassifyRecorded(t *testing.T) {
	t.Parallel()
	lines := corpus(t)
	if len(lines) != 198 {
		t.Fatalf("corpus has %d lines, want 198", len(lines))
	}
	seen := map[string]int{}
	for i, line := range lines {
		if !line.OnWire {
			if line.Expect != "none" {
				t.Errorf("line %d %s: nothing on the wire, but expect %q", i+1, line.Kind, line.Expect)
			}
			continue
		}
		var c Count
		class, reason := c.classify(line.request(t))
		seen[class.String()]++
		if class.String() != line.Expect {
			t.Errorf("line %d %s (%s %s, %s): %s (%s), want %s\n\t%v", i+1, line.Kind, line.Method, line.Path, line.Client, class, reason, line.Expect, line.Headers)
		}
	}
	t.Logf("recorded requests by class: %v", seen)
}
