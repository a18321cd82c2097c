package functiontest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A Process is a program under test. It ends with the test.
type Process struct {
	Cmd    *exec.Cmd
	Output *Buffer // what it wrote, both streams
	done   chan struct{}
}

// Start runs a program in dir with exactly this environment.
func Start(tb testing.TB, dir string, env []string, name string, args ...string) *Process {
	tb.Helper()
	p := &Process{Cmd: exec.Command(name, args...), Output: &Buffer{}, done: make(chan struct{})}
	p.Cmd.Dir, p.Cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + tb.TempDir()}, env...)
	p.Cmd.Stdout, p.Cmd.Stderr = p.Output, p.Output
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the children that it may start
	if err := p.Cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() { _ = p.Cmd.Wait(); close(p.done) }()
	tb.Cleanup(p.Kill)
	return p
}

// Kill ends the process and its children at once.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// Wait waits for the process to end by itself.
func (p *Process) Wait(tb testing.TB, limit time.Duration) {
	tb.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		tb.Fatalf("the process did not end within %v:\n%s", limit, p.Output)
	}
}

// Await waits until url answers.
func (p *Process) Await(tb testing.TB, url string) {
	tb.Helper()
	client := &http.Client{Timeout: time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		res, err := client.Get(url)
		if err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-p.done:
			tb.Fatalf("the process ended at once: %s\n%s", p.Cmd.ProcessState, p.Output)
		case <-time.After(2 * time.Millisecond):
		}
	}
	tb.Fatalf("no answer from %s:\n%s", url, p.Output)
}

// Buffer collects output while it is read.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
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
