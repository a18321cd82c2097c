// Package redistest starts real Redis or Valkey servers for tests and benchmarks:
// one server, or a cluster of three. They listen on free ports of 127.0.0.1, keep
// nothing on disk and end with the test. Where no server is installed, the test is
// skipped by the rule of package require.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/internal/require"
)

const hint = "install redis-server or valkey-server and put it on PATH"

// binary returns the path of the server's program, "" if there is none.
func binary() string {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// A Server is one running server process. Its methods fail the test that
// started it.
type Server struct {
	// Addr is 127.0.0.1:port. It stays the same over Kill and Start.
	Addr string

	tb      testing.TB
	args    []string
	admin   *goredis.Client
	mu      sync.Mutex
	process *exec.Cmd
}

// Start starts a server with further command line arguments and waits until it
// answers.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	path := binary()
	require.Server(tb, "redis", path != "", hint)
	return start(tb, path, args...)
}

func start(tb testing.TB, path string, args ...string) *Server {
	tb.Helper()
	// Another process may take the port between its choice and its use.
	for try := 0; ; try++ {
		s := &Server{Addr: freeAddr(tb), tb: tb}
		_, port, _ := net.SplitHostPort(s.Addr)
		s.args = append([]string{path, "--port", port, "--bind", "127.0.0.1", "--save", "",
			"--appendonly", "no", "--dir", tb.TempDir(), "--logfile", "log"}, args...)
		s.admin = goredis.NewClient(&goredis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true,
			MaxRetries: -1, DialerRetries: 1, PoolSize: 2, PipelinePoolSize: -1})
		err := s.run()
		if err == nil {
			tb.Cleanup(func() {
				s.Kill()
				_ = s.admin.Close()
			})
			return s
		}
		_ = s.admin.Close()
		if try == 2 {
			tb.Fatalf("redistest: %v", err)
		}
	}
}

// Restart starts the server again after Kill, empty, on the same address.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.run(); err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
}

func (s *Server) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = cmd
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-exited:
			return fmt.Errorf("%s ended at once (see its log)", s.args[0])
		default:
		}
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			// A server that asks for a password answers as well.
			_, _ = conn.Write([]byte("PING\r\n"))
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			n, _ := conn.Read(make([]byte, 64))
			_ = conn.Close()
			if n > 0 {
				return nil
			}
		}
	}
	_ = cmd.Process.Kill()
	return fmt.Errorf("%s did not answer on %s", s.args[0], s.Addr)
}

// Kill ends the process at once and waits until its port refuses. A second Kill
// does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGCONT)
	_ = s.process.Process.Kill()
	s.process = nil
	for range 1000 {
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			return
		}
		_ = conn.Close()
		time.Sleep(2 * time.Millisecond)
	}
}

// Freeze stops the process with SIGSTOP and waits until it has stopped: it takes
// connections and answers nothing. Thaw lets it go on.
func (s *Server) Freeze() {
	s.signal(syscall.SIGSTOP)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return
	}
	stat := "/proc/" + strconv.Itoa(s.process.Process.Pid) + "/stat"
	for range 1000 {
		text, err := os.ReadFile(stat)
		if err != nil { // no /proc on this system: give the signal time
			time.Sleep(50 * time.Millisecond)
			return
		}
		if _, rest, ok := strings.Cut(string(text), ") "); ok && rest[0] == 'T' {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Thaw ends Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Process.Signal(sig)
	}
}

// Client returns a client for looking at the server beside the store.
func (s *Server) Client() *goredis.Client { return s.admin }

// Do runs one command beside the store and fails the test on an error.
func (s *Server) Do(args ...any) any {
	s.tb.Helper()
	v, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil && err != goredis.Nil {
		s.tb.Fatalf("redistest: %v: %v", args, err)
	}
	return v
}

// Calls returns how often each command has run since the last ResetCalls, by
// lower-case name, as the server counts: commands inside scripts are among them.
func (s *Server) Calls() map[string]int64 {
	s.tb.Helper()
	text, err := s.admin.Info(context.Background(), "commandstats").Result()
	if err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	calls := make(map[string]int64)
	for line := range strings.SplitSeq(text, "\n") {
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		calls[name], _ = strconv.ParseInt(number, 10, 64)
	}
	return calls
}

// ResetCalls sets the counts of Calls to zero.
func (s *Server) ResetCalls() { s.tb.Helper(); s.Do("CONFIG", "RESETSTAT") }

func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// SetArg changes the value of a command line argument for the next Restart.
func (s *Server) SetArg(name, value string) {
	for i, a := range s.args {
		if a == name && i+1 < len(s.args) {
			s.args[i+1] = value
			return
		}
	}
	s.args = append(s.args, name, value)
}

// HostPort returns the two parts of Addr.
func (s *Server) HostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}
