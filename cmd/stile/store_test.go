package main

import (
	"fmt"
	"net/http"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// TestInstancesShareALimit runs two processes over one Redis and asks both at
// once: exactly the limit is admitted, and explain reads the same counts.
func TestInstancesShareALimit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := "redis://" + server.Addr
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	policy := write(t, "stile.yaml", shared(40, ""))
	var instances []*process
	for range 2 {
		instances = append(instances, start(t, nil, "--origin", site, "--policy", policy, "--store", store))
	}
	var mu sync.Mutex
	count := map[int]int{}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for _, status := range visit(t, instances[i%2].url, 15) {
				mu.Lock()
				count[status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if count[200] != 40 || count[429] != 20 {
		t.Errorf("two instances answered %v, want 40 pages and 20 refusals", count)
	}
	cmd := osexec.Command(os.Args[0], "explain", "--policy", policy, "--store", store, "--client", "127.0.0.1", "GET", "/")
	cmd.Env = []string{"STILE_TEST_MAIN=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "of 40 (binding)") || !strings.Contains(string(out), "refused with 429") {
		t.Errorf("explain does not see what the instances counted: %v\n%s", err, out)
	}
}

// TestStoreGoesAway kills Redis under a running process: visitors are served, and
// an outage is told as one.
func TestStoreGoesAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	p := start(t, nil, "--origin", site, "--policy", write(t, "stile.yaml", limit(2)), "--store", "redis://"+server.Addr)
	expect(t, "with the store", visit(t, p.url, 1), 200)
	server.Kill()
	expect(t, "without it, beyond the limit", visit(t, p.url, 8), 200, 200, 200, 200, 200, 200, 200, 200)
	p.waitFor(regexp.MustCompile(`the store does not answer`))
	p.stop()
	events := map[hitlog.Event]int{}
	for line := range strings.Lines(p.stdout()) {
		e, err := hitlog.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		events[e.Event]++
	}
	if events[hitlog.StoreError] == 0 || events[hitlog.Limited] != 0 {
		t.Errorf("hit log has %v: an outage must be logged as such and never as a limit", events)
	}
}

// TestStartsWithoutTheStore starts where no store answers.
func TestStartsWithoutTheStore(t *testing.T) {
	t.Parallel()
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	p := start(t, []string{"STILE_STORE_PASSWORD=hunter2"}, "--origin", site, "--policy", write(t, "stile.yaml", limit(2)), "--store", "redis://127.0.0.1:1")
	p.waitFor(regexp.MustCompile(`the store was not found in order; it goes on being tried`))
	expect(t, "pages", visit(t, p.url, 3), 200, 200, 200)
	p.stop()
	if strings.Contains(p.stderr()+p.stdout(), "hunter2") {
		t.Error("the password was logged")
	}
}
