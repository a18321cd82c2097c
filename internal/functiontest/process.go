package functiontest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/process"
	"github.com/stilehq/stile/internal/require"
)

// Root returns the module's directory.
func Root(tb testing.TB) string {
	tb.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("functiontest: where is this file?")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Script runs a script of scripts/ and returns its output.
func Script(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	out, code := script(tb, name, args...)
	if code != 0 {
		tb.Fatalf("%s ended with %d:\n%s", name, code, out)
	}
	return out
}

func script(tb testing.TB, name string, args ...string) (string, int) {
	tb.Helper()
	for _, tool := range []string{"bash", "curl"} {
		_, err := exec.LookPath(tool)
		require.Server(tb, tool, err == nil, "install it")
	}
	cmd := exec.CommandContext(tb.Context(), "bash", append([]string{filepath.Join(Root(tb), "scripts", name)}, args...)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// Hammer runs scripts/hammer.sh with the demo site's client, crawler and
// contact, and fails the test for every miss.
func Hammer(tb testing.TB, url string, limit int, args ...string) {
	tb.Helper()
	out, code := script(tb, "hammer.sh", append([]string{"--url", url, "--limit", fmt.Sprint(limit)}, args...)...)
	if code != 0 {
		tb.Errorf("hammer.sh ended with %d:\n%s", code, out)
	}
	tb.Log(out[strings.LastIndexByte(strings.TrimRight(out, "\n"), '\n')+1:])
}

// FreeAddr returns a host:port of 127.0.0.1 that was free just now.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return process.FreeAddr(tb)
}

// A Process is a program under test. It ends with the test.
type Process struct {
	Cmd     *exec.Cmd
	Output  *Buffer // what it wrote, both streams
	running *process.Process
}

// Buffer collects output while it is read.
type Buffer = process.Buffer

// Start runs a program in dir with exactly this environment.
func Start(tb testing.TB, dir string, env []string, name string, args ...string) *Process {
	tb.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + tb.TempDir()}, env...)
	p, err := process.Launch(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Kill)
	return &Process{Cmd: cmd, Output: p.Log(), running: p}
}

// Kill ends the process and its children at once.
func (p *Process) Kill() { p.running.Kill() }

// Wait waits for the process to end by itself.
func (p *Process) Wait(tb testing.TB, limit time.Duration) {
	tb.Helper()
	select {
	case <-p.running.Done():
	case <-time.After(limit):
		tb.Fatalf("the process did not end within %v:\n%s", limit, p.Output)
	}
}

// Await waits until url answers.
func (p *Process) Await(tb testing.TB, url string) {
	tb.Helper()
	if err := p.running.Await(20*time.Second, process.Answers(url)); err != nil {
		tb.Fatal(err)
	}
}

// goBuild builds a package of dir without asking the network, as the platform's
// own builder would with what it has fetched. Without out it only compiles.
func goBuild(tb testing.TB, dir, out, pkg string, flags ...string) {
	tb.Helper()
	args := append([]string{"build", "-trimpath"}, flags...)
	if out != "" {
		args = append(args, "-o", out)
	}
	args = append(args, pkg)
	ctx, cancel := context.WithTimeout(tb.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "CGO_ENABLED=0", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

func size(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}
