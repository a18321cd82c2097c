package stand

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/wire"
)

// A Stile is a gate on a port of its own, wired as the command line wires it.
type Stile struct {
	Addr string // host:port
	URL  string // http://host:port

	t       testing.TB
	handler http.Handler
	log     *lines
	stop    func()
	ready   func() // closes what it was wired of
}

// Options say what a Stile stands in front of. The zero value is forward-auth.
type Options struct {
	Origin string // http://host:port; "" = forward-auth only (/check, /denied)
	Store  string // store URL; "" = memory
	// Transport reaches the origin; nil = by real connections.
	Transport http.RoundTripper
	Server    gate.ServerConfig
	HitLog    io.Writer        // nil = kept for Log and RawLog
	Logger    *slog.Logger     // what an operator is told; nil = nobody
	Now       func() time.Time // nil = time.Now
	// Policy changes the parsed file before it is used; nil = leave it.
	Policy func(*policy.File)
	// Crawlers proves crawlers; nil = nobody is verified.
	Crawlers core.CrawlerVerifier
}

// Start runs a Stile by the text of a policy file until the test ends.
func Start(t testing.TB, text string, o Options) *Stile {
	t.Helper()
	file, _, err := policy.Parse("stile.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Policy != nil {
		o.Policy(file)
	}
	registry, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stile{t: t, log: &lines{}}
	quiet := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.HitLog == nil {
		o.HitLog = s.log
	}
	ready, err := wire.New(t.Context(), wire.Config{
		Policy: file, Stores: registry, StoreURL: o.Store, Crawlers: o.Crawlers,
		HitLog: hitlog.NewHandler(o.HitLog, hitlog.Names{}), Logger: quiet, Now: o.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.ready = sync.OnceFunc(func() { _ = ready.Close(context.Background()) })
	t.Cleanup(s.ready)
	parts := ready.Parts()
	source := parts.Limiter.Policy().Client
	cfg := gate.Config{
		Limiter: parts.Limiter, Answer: parts.Answer, Log: parts.Log, Logger: quiet, Now: o.Now,
		Peers: source.Peers, PeerSecretHeader: source.PeerSecretHeader, PeerSecrets: source.PeerSecrets,
	}
	cfg.Transport = o.Transport
	if o.Origin != "" {
		if cfg.Origin, err = url.Parse(o.Origin); err != nil {
			t.Fatal(err)
		}
	}
	if s.handler, err = gate.New(cfg); err != nil {
		t.Fatal(err)
	}
	if o.Server.Logger == nil {
		o.Server.Logger = quiet
	}
	s.listen("127.0.0.1:0", o.Server)
	t.Cleanup(func() { s.Stop() })
	return s
}

func (s *Stile) listen(addr string, c gate.ServerConfig) {
	s.t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Addr = ln.Addr().String()
	s.URL = "http://" + s.Addr
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	if c.Grace == 0 {
		c.Grace = time.Second
	}
	srv := gate.NewServer(s.handler, c)
	go func() {
		defer close(done)
		_ = srv.Run(ctx, ln)
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
}

// Stop ends the Stile as an operator stops it; its port then refuses
// connections. Calling it again does nothing.
func (s *Stile) Stop() { s.stop() }

// Close ends the Stile for good, its connections to the store with it, before
// the test ends.
func (s *Stile) Close() {
	s.Stop()
	s.ready()
}

// Restart begins to listen on the same port again, with the counts it had.
func (s *Stile) Restart() {
	s.t.Helper()
	s.Stop()
	s.listen(s.Addr, gate.ServerConfig{Logger: slog.New(slog.DiscardHandler)})
}

// Handler is the gate itself, for tests that need no connection.
func (s *Stile) Handler() http.Handler { return s.handler }

// Log returns the lines of the hit log so far, parsed; a line that does not
// parse fails the test.
func (s *Stile) Log() []hitlog.Entry {
	s.t.Helper()
	return ParseLog(s.t, s.log.bytes())
}

// RawLog returns the hit log as written.
func (s *Stile) RawLog() []byte { return s.log.bytes() }

// ParseLog reads a hit log; a line that does not parse fails the test.
func ParseLog(t testing.TB, log []byte) []hitlog.Entry {
	t.Helper()
	var out []hitlog.Entry
	for line := range bytes.Lines(log) {
		e, err := hitlog.Parse(bytes.TrimSpace(line))
		if err != nil {
			t.Fatalf("hit log line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

// Count returns how many entries of an event there are.
func Count(log []hitlog.Entry, event hitlog.Event) int {
	n := 0
	for i := range log {
		if log[i].Event == event {
			n++
		}
	}
	return n
}

// lines is a log kept in memory.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.buf.Bytes())
}
