// Package process runs the servers that tests need beside them: on a free port of
// 127.0.0.1, waited for until they answer, shown when they fail, and ended with
// the test, by process number and with their children. Where the system can do
// it, they also end when the test binary dies before it could end them.
package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long Stop waits for a process that was asked to end.
const patience = 5 * time.Second

// A Process is a child in a process group of its own, so that what it starts is
// ended with it. It is safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	out  *Buffer
	done chan struct{}
	once sync.Once
}

// starts runs functions on one thread that never ends: the system ends a child
// when the thread that started it does, not the process.
var starts = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// Launch starts a command. Standard error, and standard output unless the command
// says where it goes, are kept for Output. The caller ends it with Stop or Kill.
// The error is the system's: nothing was started.
func Launch(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, out: &Buffer{}, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.out
	}
	cmd.Stderr = p.out
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = patience
	result := make(chan error)
	starts() <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	return p, nil
}

// Start starts a command, or fails the test. It is stopped at the end of the
// test, and what it said is shown if the test failed.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p, err := Launch(cmd)
	if err != nil {
		tb.Fatalf("%s: %v", cmd.Path, err)
	}
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() {
			tb.Logf("%s:\n%s", cmd.Path, p.Output())
		}
	})
	return p
}

// Await returns nil once ready reports true; it is asked every 2 ms. The error
// says that the process ended, or that the time is over, and shows the last of
// what it said.
func (p *Process) Await(within time.Duration, ready func() bool) error {
	for end := time.Now().Add(within); ; {
		if ready() {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it answered: %s\n%s", p.cmd.Path, p.cmd.ProcessState, p.out.tail())
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s did not answer within %v:\n%s", p.cmd.Path, within, p.out.tail())
		}
	}
}

// Stop ends the process and its children: SIGTERM, and after five seconds
// SIGKILL. A call after Stop or Kill does nothing.
func (p *Process) Stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(patience):
		}
		p.end()
	})
}

// Kill ends the process and its children at once, as a crash does, and returns
// when it is gone and its ports refuse. A call after Stop or Kill does nothing.
func (p *Process) Kill() { p.once.Do(p.end) }

func (p *Process) end() {
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.done
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode waits for the end of the process and returns its exit status, -1 if a
// signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Freeze stops the process with SIGSTOP and returns when it has stopped: its
// sockets take connections, and nothing answers. Thaw lets it go on.
func (p *Process) Freeze() {
	_ = p.Signal(syscall.SIGSTOP)
	for range 1000 {
		if Stopped(p.PID()) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Thaw ends Freeze.
func (p *Process) Thaw() { _ = p.Signal(syscall.SIGCONT) }

// Stopped reports whether the process of that number is stopped by SIGSTOP. Where
// the system has no /proc to tell, it gives the signal time and says yes.
func Stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		time.Sleep(50 * time.Millisecond)
		return true
	}
	// The name, in brackets, may hold anything; the state follows the last one.
	_, rest, ok := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return ok && len(rest) > 0 && rest[0] == 'T'
}

// Output is what the process said so far.
func (p *Process) Output() string { return p.out.String() }

// Log is the buffer behind Output, which a command may write its standard output
// to as well.
func (p *Process) Log() *Buffer { return p.out }

// A Buffer collects output while it is read. The zero value is empty; it is safe
// for concurrent use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer and never fails.
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

// tail returns the last four kilobytes.
func (b *Buffer) tail() string {
	s := b.String()
	return s[max(0, len(s)-4096):]
}
