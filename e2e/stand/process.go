package stand

import (
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Process is a child in a process group of its own, so that what it starts is
// ended with it.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  lines
	done chan struct{}
	once sync.Once
}

// Run starts a command; standard output and error are kept for Output. It is
// ended at the end of the test, and what it said is shown if the test failed.
func Run(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	cmd.Stderr = &p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, p.Output())
		}
	})
	return p
}

// Stop ends the process and its children: SIGTERM, and after five seconds
// SIGKILL.
func (p *Process) Stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
		}
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	})
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() {
	p.once.Do(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	})
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is the exit status of a process that has ended, -1 if a signal ended
// it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Output is what the process said so far.
func (p *Process) Output() string { return string(p.out.bytes()) }

// WaitListen returns once something listens on addr; the test fails when the
// process ends before that, or after the given time.
func (p *Process) WaitListen(addr string, within time.Duration) {
	p.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-p.done:
			p.t.Fatalf("%s ended before it listened on %s:\n%s", p.cmd.Path, addr, p.Output())
		default:
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not listen on %s:\n%s", p.cmd.Path, addr, p.Output())
		}
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
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
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
