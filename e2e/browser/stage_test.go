// Package browser_test drives real browsers through a Stile, in front of a static
// site, of pages made with htmx and Turbo and of production builds of Next.js and
// Astro, and reads in the hit log what was counted.
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

// A scene is one script of testdata/driver, played against one Stile.
type scene struct {
	stile *stand.Binary
	site  *recorder // nil = not one of ours

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
	Title, First, Second, Text, Path     string
	Aria                                 string
	Pages, Wait, Status                  int
	Again                                int // pages gone back to that the browser asked the site for again
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

// shots is where screenshots go: STILE_E2E_SHOTS, or a new directory that stays.
var shots = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("STILE_E2E_SHOTS"); dir != "" {
		return filepath.Abs(dir)
	}
	return os.MkdirTemp("", "stile-screenshots-")
})

// TestMain removes the command that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if commandDir != "" {
		_ = os.RemoveAll(commandDir)
	}
	os.Exit(code)
}

// commandDir is where command has built; "" = nobody asked.
var commandDir string

// command builds the command once for all tests.
var command = sync.OnceValues(func() (bin string, err error) {
	if commandDir, err = os.MkdirTemp("", "stile-e2e-"); err != nil {
		return "", err
	}
	bin = filepath.Join(commandDir, "stile")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/stilehq/stile/cmd/stile").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// serve runs the command by a policy in front of a site.
func serve(t *testing.T, policy, origin string) *stand.Binary {
	t.Helper()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return stand.Launch(t, bin, policy, origin, nil)
}

// play runs a script in front of a Stile and returns its steps by name. own is
// what took note at the site, nil if nothing did; params are the script's own.
func play(t *testing.T, script string, stile *stand.Binary, own *recorder, params any) map[string]step {
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
	config, err := json.Marshal(map[string]any{"site": stile.URL, "control": control.URL, "chromium": chromium, "shots": dir, "params": params})
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
	case <-time.After(4 * time.Minute):
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
	log := sc.settled()
	found.Log, sc.logged = log[sc.logged:], len(log)
	if sc.site != nil {
		found.Visits = sc.site.since(sc.sent)
		sc.sent += len(found.Visits)
	}
	sc.steps[found.Name] = found.step
}

// settled returns the hit log once nothing is added to it any more: the browser
// has its answer before this process has read the line of it.
func (sc *scene) settled() []hitlog.Entry {
	log := sc.stile.Log()
	for still := 0; still < 3; still++ {
		time.Sleep(50 * time.Millisecond)
		if now := sc.stile.Log(); len(now) != len(log) {
			log, still = now, 0
		}
	}
	return log
}
