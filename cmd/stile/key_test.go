package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/redis/redistest"
)

func TestKeyMisuse(t *testing.T) {
	t.Parallel()
	visitor := write(t, "stile.yaml", "version: 1\ncontact: mailto:a@example.org\nidentify: {cookie: {secrets: env:S}}\nbuckets:\n  - {name: v, key: cookie, algorithm: fixed-window, limit: 9, window: 24h, day: visitor}\n")
	for args, want := range map[string]string{
		"key":                                        "Try: stile key --help",
		"key show":                                   "is no key",
		"key show nonsense":                          "is no key",
		"key show address 203.0.113.9":               "--store: want the store that the instances share",
		"key show address 203.0.113.0/24":            "what is counted there is address 203.0.113.0",
		"key suspend --for 0s 203.0.113.9":           "--for: want a time up to 2160h",
		"key suspend --for 2161h 203.0.113.9":        "--for: want a time up to 2160h",
		"key lift --for 1h 203.0.113.9":              "--for goes with --all",
		"key lift --all 203.0.113.9":                 "--all is for all keys",
		"key lift --all":                             "--all: say for how long",
		"key lift --all --for=-1s":                   "--for: want a time",
		"key show --issued yesterday cookie x":       "--issued",
		"key show --store mysql://x 203.0.113.9":     `no store is called "mysql"`,
		"key show --policy " + visitor + " cookie x": "--issued: the policy counts this visitor's days",
	} {
		r := command(t, map[string]string{"S": strings.Repeat("k", 40)}, "", strings.Fields(args)...)
		if r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("stile %s: exit %d, want 2 and %q\n%s", args, r.code, want, r.stderr)
		}
	}
	if r := command(t, nil, "", "key", "show", "--store", "redis://127.0.0.1:1", "203.0.113.9"); r.code != 3 || !strings.Contains(r.stderr, "the store: ") {
		t.Errorf("a store that is not there: exit %d\n%s", r.code, r.stderr)
	}
}

// key runs one key command as a process of its own, as an operator does.
func key(t *testing.T, args ...string) keyResult {
	t.Helper()
	cmd := osexec.Command(os.Args[0], append([]string{"key"}, args...)...)
	cmd.Env = []string{"STILE_TEST_MAIN=1"}
	out, err := cmd.Output()
	var r keyResult
	if err != nil || json.Unmarshal(out, &r) != nil {
		t.Fatalf("key %v: %v\n%s", args, err, out)
	}
	return r
}

// TestKeyOnRunningInstances: two processes refuse; a third command lifts and
// suspends; both follow within store.control.
func TestKeyOnRunningInstances(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := "redis://" + server.Addr
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	policy := write(t, "stile.yaml", shared(3, ", control: 1s"))
	var urls []string
	for range 2 {
		urls = append(urls, start(t, nil, "--origin", site, "--policy", policy, "--store", store).url)
	}
	with := []string{"--policy", policy, "--store", store, "--json"}
	of := func(verb string, more ...string) keyResult {
		t.Helper()
		return key(t, append(append([]string{verb}, with...), more...)...)
	}
	expect(t, "up to the limit", visit(t, urls[0], 4), 200, 200, 200, 429)
	expect(t, "the other instance", visit(t, urls[1], 2), 429, 429)
	if r := of("show", "127.0.0.1"); !r.Refused || r.Buckets[0].Count != 3 || r.Suspended != "" {
		t.Errorf("shown as %+v", r)
	}
	if r := of("lift", "address", "127.0.0.1"); r.Done != "lifted" || r.Refused || r.Buckets[0].Count != 0 || r.WithinS != 1 {
		t.Errorf("lifted: %+v", r)
	}
	admittedWithin(t, "after a lift", urls, 30*time.Second)

	if r := of("suspend", "--for", "72h", "127.0.0.1"); r.Done != "suspended" || !r.Refused || r.Suspended == "" || r.WithinS != 0 {
		t.Errorf("suspended: %+v", r)
	}
	for _, url := range urls { // at once: nothing was remembered for an admitted key
		expect(t, "suspended", visit(t, url, 2), 429, 429)
	}
	if r := of("lift", "127.0.0.1"); r.Refused || r.Suspended != "" {
		t.Errorf("no longer suspended: %+v", r)
	}
	admittedWithin(t, "after the suspension", urls, 30*time.Second)

	for range 3 {
		visit(t, urls[0], 1)
	}
	if r := of("lift", "--all", "--for", "1h"); r.OpenUntil == "" {
		t.Errorf("the kill switch: %+v", r)
	}
	admittedWithin(t, "under the kill switch", urls, 30*time.Second)
	expect(t, "far over the limit", visit(t, urls[0], 9), 200, 200, 200, 200, 200, 200, 200, 200, 200)
	if r := of("lift", "--all", "--for", "0s"); r.OpenUntil != "" {
		t.Errorf("ended: %+v", r)
	}
	deadline := time.Now().Add(30 * time.Second)
	for visit(t, urls[0], 1)[0] != 429 {
		if time.Now().After(deadline) {
			t.Fatal("limits do not hold again")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if ttl := server.Client().TTL(t.Context(), "test:g:control:5711e001:0").Val(); ttl < 300*24*time.Hour {
		t.Errorf("the control record lives for %v", ttl)
	}
}

// admittedWithin waits until every instance serves a page.
func admittedWithin(t *testing.T, what string, urls []string, most time.Duration) {
	t.Helper()
	deadline := time.Now().Add(most)
	for _, url := range urls {
		for visit(t, url, 1)[0] != 200 {
			if time.Now().After(deadline) {
				t.Fatalf("%s: an instance refuses on after %v", what, most)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
