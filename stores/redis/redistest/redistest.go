// Package redistest starts real Redis or Valkey servers for tests and benchmarks:
// one server, or a cluster of three. They listen on free ports of 127.0.0.1, keep
// nothing on disk and end with the test. Where no server is installed, the test is
// skipped by the rule of package require.
package redistest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/internal/process"
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
	running *process.Process // nil after Kill
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
	s := &Server{tb: tb}
	s.Addr = process.Serve(tb, func(addr string) error {
		_, port, _ := net.SplitHostPort(addr)
		s.Addr = addr
		s.args = append([]string{path, "--port", port, "--bind", "127.0.0.1", "--save", "",
			"--appendonly", "no", "--dir", tb.TempDir()}, args...)
		return s.run()
	})
	s.admin = goredis.NewClient(&goredis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 2, PipelinePoolSize: -1})
	tb.Cleanup(func() {
		s.Kill()
		_ = s.admin.Close()
	})
	return s
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
	p, err := process.Launch(cmd)
	if err != nil {
		return err
	}
	if err := p.Await(20*time.Second, s.answers); err != nil {
		p.Kill()
		return err
	}
	s.running = p
	return nil
}

// answers reports whether the server says anything: one that asks for a password
// does as well.
func (s *Server) answers() bool {
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("PING\r\n"))
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	n, _ := conn.Read(make([]byte, 64))
	return n > 0
}

// Kill ends the process at once and returns when its port refuses. A second Kill
// does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Kill()
		s.running = nil
	}
}

// Freeze stops the process with SIGSTOP and waits until it has stopped: it takes
// connections and answers nothing. Thaw lets it go on.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Freeze()
	}
}

// Thaw ends Freeze.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.Thaw()
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
