package browser_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

// installing and building are done by one test at a time: two of them may want
// the same site.
var installing, building sync.Mutex

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

// build runs a framework's command in dir where product, a file below dir that
// the build writes last, is missing or older than any source.
func build(t *testing.T, dir, product string, command ...string) {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	if !stale(t, dir, product) {
		return
	}
	began := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, production()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q in %s: %v\n%s", command, dir, err, out)
	}
	t.Logf("build of %s: %v", dir, time.Since(began).Round(time.Second))
}

// production is the environment of a build that tells nobody of itself.
func production() []string {
	return append(os.Environ(), "NODE_ENV=production", "NEXT_TELEMETRY_DISABLED=1", "ASTRO_TELEMETRY_DISABLED=1")
}

func stale(t *testing.T, dir, product string) bool {
	t.Helper()
	built, err := os.Stat(filepath.Join(dir, product))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	old := false
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case "node_modules", ".next", ".astro", "dist":
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(built.ModTime()) {
			old = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return old
}
