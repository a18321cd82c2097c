package edge

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAgreesOnRecordedRequests plays requests that were recorded from real
// browsers through the conditions of the rules, as the products evaluate them.
// What the policy does not count, a rule that reads headers must not count; what
// it counts and the rule does not is named below.
func TestAgreesOnRecordedRequests(t *testing.T) {
	t.Parallel()
	in, err := os.Open("../core/testdata/browser-requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	q := pagesOf(example(t))
	var exclude []*regexp.Regexp
	for _, re := range q.exclude.joined(wafRegex) {
		exclude = append(exclude, regexp.MustCompile(re))
	}
	counts := func(method, path string, h map[string]string) bool {
		path, _, _ = strings.Cut(path, "?")
		for _, re := range exclude {
			if re.MatchString(path) {
				return false
			}
		}
		return slices.Contains(q.methods, method) && strings.Contains(h["accept"], "text/html") &&
			!slices.Contains(otherDestinations, h["sec-fetch-dest"]) && !strings.Contains(h["sec-purpose"], "prefetch")
	}
	// The only kinds that the rules miss: a service worker's pass-through says
	// "empty", bots and odd clients send no Accept with text/html, and a pointer-down
	// prefetch may be the click itself.
	missed := map[string]int{}
	agreed := 0
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Kind, Method, Path, Expect string
			Headers                    map[string]string
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		h := map[string]string{}
		for k, v := range r.Headers {
			h[strings.ToLower(k)] = v
		}
		got := counts(r.Method, r.Path, h)
		switch {
		case r.Expect == "none":
		case got && r.Expect != "counted":
			t.Errorf("%s %s is counted at the edge, and is %q in the policy: %v", r.Kind, r.Path, r.Expect, r.Headers)
		case !got && r.Expect == "counted":
			missed[r.Kind]++
			if strings.Contains(h["accept"], "text/html") && h["sec-fetch-dest"] != "empty" && h["sec-purpose"] == "" {
				t.Errorf("%s %s is not counted at the edge, and is in the policy: %v", r.Kind, r.Path, r.Headers)
			}
		default:
			agreed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if agreed < 150 {
		t.Errorf("only %d requests agree; missed: %v", agreed, missed)
	}
	t.Logf("%d agree; counted by the policy and not at the edge: %v", agreed, missed)
}
