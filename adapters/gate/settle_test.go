package gate_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/stores/memory"
)

// settler is a store with leftover work that ends only once the origin was
// asked.
type settler struct {
	core.Store
	originAsked chan struct{}
	mu          sync.Mutex
	settled     int
	cancelled   bool
}

func (s *settler) Settle(ctx context.Context) error {
	<-s.originAsked
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled++
	s.cancelled = s.cancelled || ctx.Err() != nil
	return nil
}

func (s *settler) counts() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled, s.cancelled
}

// TestSettleRunsBesideTheOriginAndIsAwaited: were it before the origin's call,
// this would never end; were it not awaited, the count would be short.
func TestSettleRunsBesideTheOriginAndIsAwaited(t *testing.T) {
	t.Parallel()
	s := &settler{Store: memory.New(memory.Config{}), originAsked: make(chan struct{})}
	l, err := core.New(hourly(1), core.Options{Store: s, Local: memory.New(memory.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	var h http.Handler
	newRig(t, hourly(1), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(s.originAsked) })
		page(w, r)
	}), func(c *gate.Config) {
		c.Limiter = l
		h, _ = gate.New(*c)
	})
	ask := func(path, dest string) int {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		req := httptest.NewRequest("GET", path, nil).WithContext(ctx)
		req.Header.Set("X-Forwarded-For", "203.0.113.9")
		req.Header.Set("Sec-Fetch-Dest", dest)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec.Code
	}
	for _, c := range []struct {
		path, dest      string
		status, settled int
	}{
		{"/", "document", 200, 1},
		{"/", "document", 429, 2}, // the refund may have left something too
		{"/x.css", "empty", 200, 2},
		{"/y", "image", 429, 3}, // charged late
	} {
		status := ask(c.path, c.dest)
		if n, cancelled := s.counts(); status != c.status || n != c.settled || cancelled {
			t.Errorf("%s as %s: %d, settled %d times, cancelled %v; want %d, %d", c.path, c.dest, status, n, cancelled, c.status, c.settled)
		}
	}
}

// brokenStore fails as a store does whose network is gone.
type brokenStore struct{}

func (brokenStore) Apply(_ context.Context, b *core.Batch) error {
	err := errors.New("store is away")
	for i := range b.Rows {
		b.Rows[i].Err = err
	}
	return err
}
func (brokenStore) Close() error { return nil }

// TestStoreOutage: open serves, closed answers its own 503, and neither looks
// like a limit anywhere.
func TestStoreOutage(t *testing.T) {
	t.Parallel()
	for mode, want := range map[core.FailureMode]int{core.FailOpen: 200, core.FailClosed: 503} {
		p := hourly(1)
		p.OnError = mode
		l, err := core.New(p, core.Options{Store: brokenStore{}, Local: memory.New(memory.Config{})})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, p, pages, func(c *gate.Config) { c.Limiter = l })
		var got reply
		for range 3 {
			if got = r.get("203.0.113.9", "/", "Sec-Fetch-Dest: document"); got.status != want {
				t.Fatalf("%v: %d, want %d", mode, got.status, want)
			}
		}
		if got.header.Get("RateLimit") != "" || strings.Contains(got.body, "Too many") || strings.Contains(got.body, "away") {
			t.Errorf("%v: %+v", mode, got)
		}
		failures := 0
		for _, e := range r.entries() {
			switch e.Event {
			case hitlog.StoreError:
				failures++
				if e.Severity != "ERROR" || e.Error != "store is away" {
					t.Errorf("%+v", e)
				}
			case hitlog.Limited, hitlog.WouldLimit:
				t.Errorf("an outage is logged as a limit: %+v", e)
			}
		}
		if failures != 1 {
			t.Errorf("%v: %d store-error lines for 3 failures in one moment, want 1", mode, failures)
		}
		if m := metricsText(t, r.metrics); !strings.Contains(m, "stile_store_errors_total 3\n") {
			t.Errorf("metrics: %s", m)
		}
	}
}
