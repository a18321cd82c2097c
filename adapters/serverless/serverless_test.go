package serverless

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openmemory"
	"github.com/stilehq/stile/stores/open/openredis"
)

const good = `version: 1
site: serverlesstest
contact: mailto:ops@example.org
buckets:
  - {name: hour, key: address, algorithm: fixed-window, limit: 1, window: 1h}
exempt: {crawlers: {search: ordinary, preview: ordinary}}
`

func start(t *testing.T, env map[string]string, dirs ...string) (*Site, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	h := slog.NewJSONHandler(&log, nil)
	s := Open(context.Background(), Config{
		Getenv: func(n string) string { return env[n] }, Openers: []open.Opener{openmemory.Opener, openredis.Opener},
		HitLog: h, Logger: slog.New(h), Dirs: dirs,
	})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s, &log
}

// TestPolicySources: a path, a path below the platform's folder, or the text.
func TestPolicySources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "stile.yaml")
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{path, "stile.yaml", good} {
		s, log := start(t, map[string]string{"STILE_POLICY": value}, filepath.Join(dir, "missing"), dir)
		if s.Problem != nil || s.Policy == nil || s.Policy.Site != "serverlesstest" {
			t.Errorf("%.20q: %v\n%s", value, s.Problem, log)
		}
	}
}

// TestRemoteMeansThePlatform: the platform's front end is no client.
func TestRemoteMeansThePlatform(t *testing.T) {
	t.Parallel()
	s, _ := start(t, map[string]string{"STILE_POLICY": good})
	if got := s.Limiter.Policy().Client.From; got != core.FromPlatform {
		t.Errorf("client.from is %d: all visitors would share one limit", got)
	}
}

func TestProblemsPassVisitors(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }))
	defer origin.Close()
	for name, env := range map[string]map[string]string{
		"unset":         {},
		"missing":       {"STILE_POLICY": "nowhere.yaml"},
		"invalid":       {"STILE_POLICY": "version: 1\nnonsense: 1\n"},
		"store URL":     {"STILE_POLICY": good, "STILE_STORE": "nosuch://user:hunter2@host"},
		"secret absent": {"STILE_POLICY": good + "client: {from: platform, peer_secret: {header: X, secrets: env:NOT_SET}}\n"},
	} {
		env["STILE_ORIGIN"] = origin.URL
		s, log := start(t, env)
		h := s.Handler(gate.Config{})
		for range 3 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != 200 || w.Body.String() != "page" {
				t.Errorf("%s: %d", name, w.Code)
			}
		}
		if n := strings.Count(log.String(), "NOTHING IS LIMITED"); n != 1 {
			t.Errorf("%s: said %d times within a minute, want once\n%s", name, n, log)
		}
		if strings.Contains(log.String(), "hunter2") {
			t.Errorf("%s: a password is in the log", name)
		}
		s.Remind(time.Now().Add(2 * time.Minute))
		if n := strings.Count(log.String(), "NOTHING IS LIMITED"); n != 2 {
			t.Errorf("%s: not said again after a minute", name)
		}
	}
}

// TestForwardAuthWithoutLimits: an endpoint that refused to answer would lock
// the site behind it.
func TestForwardAuthWithoutLimits(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	r := httptest.NewRequest("GET", "/check", nil)
	r.RemoteAddr = "203.0.113.9:1"
	r.Header.Set("X-Forwarded-Uri", "/")
	r.Header.Set("X-Forwarded-Method", "GET")
	w := httptest.NewRecorder()
	s.Handler(gate.Config{}).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("%d, want 200", w.Code)
	}
}

// TestStoreDownStarts: a store that is away delays a start by its budget and no
// more, and is no reason to stop limiting altogether.
func TestStoreDownStarts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s, log := start(t, map[string]string{"STILE_POLICY": good + "store: {on_error: local, connect_timeout: 100ms}\n", "STILE_STORE": "redis://" + addr})
	if s.Problem != nil || !strings.Contains(log.String(), "not found in order") {
		t.Errorf("%v\n%s", s.Problem, log)
	}
}

func TestBadOrigins(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"site.example", "ftp://site.example", "https://u:hunter2@site.example", "https://site.example/path", "https://site.example?x", "http://", "http://%zz", "https://site.example/#f"} {
		s, log := start(t, map[string]string{"STILE_POLICY": good, "STILE_ORIGIN": text})
		w := httptest.NewRecorder()
		s.Handler(gate.Config{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(log.String(), "hunter2") {
			t.Errorf("%s: %d, want 503 with Retry-After and no secret in the log\n%s", text, w.Code, log)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTimelyTransport(t *testing.T) {
	t.Parallel()
	hang := NewTimelyTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	ctx, cancel := context.WithTimeout(t.Context(), answerMargin+100*time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	_, err := hang.RoundTrip(r)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() || ctx.Err() != nil {
		t.Errorf("%v, request over: %v; want a timeout with time to spare", err, ctx.Err())
	}
	// A client that leaves is no timeout of the origin's.
	ctx, leave := context.WithTimeout(t.Context(), time.Hour)
	leave()
	if _, err := hang.RoundTrip(r.WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	// Without a deadline nothing is added.
	plain := NewTimelyTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if _, ok := r.Context().Deadline(); ok {
			t.Error("a deadline from nowhere")
		}
		return &http.Response{Body: http.NoBody}, nil
	}))
	if _, err := plain.RoundTrip(httptest.NewRequest("GET", "/", nil)); err != nil {
		t.Error(err)
	}
}

// work is chores of which the test decides when they are done.
type work struct {
	due    bool
	budget chan time.Duration
	finish chan struct{}
}

func (w *work) Due() bool { return w.due }
func (w *work) Refresh(ctx context.Context, budget time.Duration) error {
	w.budget <- budget
	select {
	case <-w.finish:
	case <-ctx.Done():
	}
	return ctx.Err()
}
func (w *work) Close(context.Context) error { return nil }

// TestBeside: work is begun beside a request and awaited before its handler
// returns, whoever leaves meanwhile; never by an instance that has just started,
// nor by a request without time for it.
func TestBeside(t *testing.T) {
	t.Parallel()
	w := &work{due: true, budget: make(chan time.Duration, 1), finish: make(chan struct{})}
	s := &Site{ready: w, started: time.Now().Add(-youth)}
	ctx, leave := context.WithCancel(t.Context())
	wait := s.Beside(ctx)
	if b := <-w.budget; b != refreshBudget {
		t.Errorf("budget %v", b)
	}
	leave()
	returned := make(chan struct{})
	go func() { wait(); close(returned) }()
	select {
	case <-returned:
		t.Error("the client left, and the work was left with it")
	case <-time.After(20 * time.Millisecond):
	}
	close(w.finish)
	<-returned

	short, cancel := context.WithTimeout(t.Context(), answerMargin)
	defer cancel()
	s.Beside(short)()
	s.started = time.Now()
	s.Beside(t.Context())()
	s.started, w.due = time.Time{}, false
	s.Beside(t.Context())()
	(&Site{}).Beside(t.Context())()
	if len(w.budget) != 0 {
		t.Error("work was begun where it should not")
	}
}
