package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be a parent that dies without a word.
func TestMain(m *testing.M) {
	if os.Getenv("STILE_TEST_PARENT") != "" {
		p, err := Launch(exec.Command("sleep", "1000"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(m.Run())
}

func launch(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Launch(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// said waits for a line of output and returns it.
func said(t *testing.T, p *Process) string {
	t.Helper()
	if err := p.Await(20*time.Second, func() bool { return strings.Contains(p.Output(), "\n") }); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(p.Output(), "\n")
	return line
}

// gone waits until no process has the number, or only a dead one that nobody has
// asked for yet.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("%q is no process number", pid)
	}
	for end := time.Now().Add(20 * time.Second); syscall.Kill(n, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && strings.Contains(string(text), ") Z ") {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(n, syscall.SIGKILL)
			t.Fatalf("process %s is still there", pid)
		}
	}
}

func TestKillTakesTheChildren(t *testing.T) {
	t.Parallel()
	p := launch(t, "sleep 1000 & echo $!; wait")
	child := said(t, p)
	p.Kill()
	p.Kill()
	gone(t, child)
	if code := p.ExitCode(); code != -1 {
		t.Errorf("exit code %d of a killed process", code)
	}
}

func TestStopAsksFirst(t *testing.T) {
	t.Parallel()
	p := launch(t, `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
	said(t, p)
	p.Stop()
	if code := p.ExitCode(); code != 7 || p.Output() != "ready\nbye\n" {
		t.Errorf("exit code %d, said %q", code, p.Output())
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	p := launch(t, "echo why; exit 3")
	err := p.Await(time.Minute, func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "why") {
		t.Errorf("a process that ended: %v", err)
	}
	p = launch(t, "echo slow; sleep 1000")
	said(t, p)
	if err := p.Await(20*time.Millisecond, func() bool { return false }); err == nil || !strings.Contains(err.Error(), "slow") {
		t.Errorf("a process that does not answer: %v", err)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	p := launch(t, "echo on; exec sleep 1000")
	said(t, p)
	if Stopped(p.PID()) && runtime.GOOS == "linux" {
		t.Error("a running process is taken for a stopped one")
	}
	p.Freeze()
	if !Stopped(p.PID()) {
		t.Error("not stopped")
	}
	p.Kill() // a stopped process can be killed
}

// TestServeTriesAnotherPort and gives each try a port of its own.
func TestServeTriesAnotherPort(t *testing.T) {
	t.Parallel()
	var tried []string
	addr := Serve(t, func(addr string) error {
		tried = append(tried, addr)
		if len(tried) < 3 {
			return os.ErrExist
		}
		return nil
	})
	if len(tried) != 3 || addr != tried[2] || Listens(addr)() {
		t.Errorf("got %s of %v", addr, tried)
	}
}

// TestOrphansEnd: a test binary that is killed leaves no server behind.
func TestOrphansEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only there does the system know how
	}
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "STILE_TEST_PARENT=1")
	out, _ := parent.Output() // it kills itself
	gone(t, strings.TrimSpace(string(out)))
}
