package stand

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/process"
)

// A Process is a child in a process group of its own, so that what it starts is
// ended with it.
type Process struct {
	*process.Process
	t testing.TB
}

// Run starts a command; standard output and error are kept for Output. It is
// ended at the end of the test, and what it said is shown if the test failed.
func Run(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	return &Process{Process: process.Start(t, cmd), t: t}
}

// WaitListen returns once something listens on addr; the test fails when the
// process ends before that, or after the given time.
func (p *Process) WaitListen(addr string, within time.Duration) {
	p.t.Helper()
	if err := p.Await(within, process.Listens(addr)); err != nil {
		p.t.Fatalf("%s: %v", addr, err)
	}
}

// Find looks a program up in PATH and where systems keep servers.
func Find(names ...string) (path string, ok bool) {
	for _, name := range names {
		for _, dir := range []string{"", "/usr/sbin/", "/usr/local/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"} {
			if p, err := exec.LookPath(dir + name); err == nil {
				return p, true
			}
		}
	}
	return "", false
}

// FreeAddr returns an address on loopback that nothing listens on at the moment.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return process.FreeAddr(t)
}

// Substitute replaces each address of a configuration file by the one of this
// run. An address that the file does not hold fails the test: the file would
// then not be what was tested.
func Substitute(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the configuration does not hold %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}
