// Package browser_test drives a real Chromium through a Stile, in front of a
// static site and of a production build of Next.js, and reads in the hit log what
// was counted.
package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/internal/require"
)

// A counter is a Stile whose hit log can be read.
type counter interface{ Log() []hitlog.Entry }

// A scene is one script of testdata/driver, played against one Stile.
type scene struct {
	stile counter
	site  *site // nil = not one of ours

	mu     sync.Mutex
	steps  map[string]step
	logged int
	sent   int
}

// A step is what was seen of one step of a scene.
type step struct {
	Log    []hitlog.Entry // what Stile counted and refused
	Visits []visit        // what reached the site, if it is ours
	// What the driver reports. Counts are of requests that the browser made.
	Documents, RSC, Prefetches, Requests int
	Title, First, Second, Text, URL      string
	Aria                                 string
	Pages, Wait, Status                  int
	Wide                                 bool
	Order                                []string
}

// hits and refusals of a step.
func (s step) hits() int    { return stand.Count(s.Log, hitlog.Hit) }
func (s step) refused() int { return stand.Count(s.Log, hitlog.Limited) }

// dests lists what the counted requests said they were for.
func (s step) dests() []string {
	var out []string
	for _, e := range s.Log {
		if e.Event == hitlog.Hit {
			out = append(out, e.SecFetchDest)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// speculated returns how many visits carried Sec-Purpose: prefetch.
func (s step) speculated() int {
	n := 0
	for _, v := range s.Visits {
		if v.purpose != "" {
			n++
		}
	}
	return n
}

// node finds Node and Chromium, and installs the driver.
func node(t *testing.T) (nodeBin, chromium string) {
	t.Helper()
	nodeBin, ok := stand.Find("node", "nodejs")
	require.Server(t, "node", ok, "Node 20 or newer, with npm")
	chromium, ok = stand.Find("chromium", "chromium-browser", "google-chrome")
	require.Server(t, "chromium", ok, "apt-get install chromium")
	install(t, "testdata/driver")
	return nodeBin, chromium
}

var installing sync.Mutex

// install runs npm ci where the lock file is newer than what is installed.
func install(t *testing.T, dir string) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if done, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil && done.ModTime().After(lock.ModTime()) {
		return
	}
	npm, ok := stand.Find("npm")
	require.Server(t, "node", ok, "npm")
	began := time.Now()
	cmd := exec.Command(npm, "ci", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.Server(t, "node", err == nil, fmt.Sprintf("npm ci in %s, which needs a package registry: %v\n%s", dir, err, out))
	t.Logf("npm ci in %s: %v", dir, time.Since(began).Round(time.Second))
}

// shots is where screenshots go: STILE_E2E_SHOTS, or a new directory that stays.
var shots = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("STILE_E2E_SHOTS"); dir != "" {
		return filepath.Abs(dir)
	}
	return os.MkdirTemp("", "stile-screenshots-")
})

// play runs a script and returns its steps by name.
func play(t *testing.T, script, url string, stile counter, own *site) map[string]step {
	t.Helper()
	nodeBin, chromium := node(t)
	sc := &scene{stile: stile, site: own, steps: map[string]step{}}
	control := httptest.NewServer(http.HandlerFunc(sc.step))
	t.Cleanup(control.Close)
	dir, err := shots()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]string{"site": url, "control": control.URL, "chromium": chromium, "shots": dir})
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.Command(nodeBin, script)
	cmd.Dir = "testdata/driver"
	cmd.Env = append(os.Environ(), "STILE_E2E="+string(config))
	cmd.Stdout = &errs
	began := time.Now()
	p := stand.Run(t, cmd)
	select {
	case <-p.Done():
	case <-time.After(100 * time.Second):
		t.Fatalf("%s does not end:\n%s", script, p.Output())
	}
	if code := p.ExitCode(); code != 0 {
		t.Fatalf("%s: exit status %d:\n%s%s", script, code, errs.String(), p.Output())
	}
	t.Logf("%s: %v", script, time.Since(began).Round(100*time.Millisecond))
	return sc.steps
}

// step takes note of one step: everything that came since the one before.
func (sc *scene) step(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var found struct {
		Name string
		step
	}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	log := sc.stile.Log()
	found.Log, sc.logged = log[sc.logged:], len(log)
	if sc.site != nil {
		found.Visits = sc.site.since(sc.sent)
		sc.sent += len(found.Visits)
	}
	sc.steps[found.Name] = found.step
}
