package wrap_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/stores/storetest"
	"github.com/stilehq/stile/stores/wrap"
)

// noon lies ahead of the machine's clock, by which Settle and Flush go, so that
// no row of these tests is over.
var noon = time.Date(2126, 10, 6, 12, 0, 0, 0, time.UTC)

func base() storetest.Harness {
	return storetest.Harness{Open: func(testing.TB) core.Store { return memory.New(memory.Config{}) }}
}

// faulty fails as it is told.
type faulty struct {
	core.Store
	mu    sync.Mutex
	err   error
	after bool // apply first, then fail: the outcome is unknown
	hold  chan struct{}
	trips atomic.Int64
}

func (f *faulty) set(err error, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.after = err, after
}

func (f *faulty) Apply(ctx context.Context, b *core.Batch) error {
	f.trips.Add(1)
	f.mu.Lock()
	err, after, hold := f.err, f.after, f.hold
	f.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil || after {
		if e := f.Store.Apply(ctx, b); e != nil {
			return e
		}
	}
	if err != nil {
		for i := range b.Rows {
			b.Rows[i].Err = err
		}
	}
	return err
}

func over() *faulty { return &faulty{Store: memory.New(memory.Config{})} }

// outer is one hit of a site-wide bucket of the given limit.
func outer(at time.Time, limit int64) *core.Batch {
	return &core.Batch{Now: at, Rows: []core.Row{{
		Key: core.Key{Kind: rows.Global}, Plan: 7, Epoch: 1, Until: noon.Unix() + 86400, MaxAge: 10 * time.Minute,
		Cells: []core.Cell{{Until: noon.Unix() + 86400, Add: 1, Ceiling: limit}},
	}}}
}

func value(t *testing.T, s core.Store) int64 {
	t.Helper()
	b := outer(noon, 0)
	b.Rows[0].Cells[0].Add, b.Rows[0].MaxAge = 0, 0
	if err := s.Apply(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return b.Rows[0].Cells[0].Value
}

// TestGuardOpensAndRecovers on a clock of its own: the breaker opens after its
// failures, asks nothing until the pause is over, and then asks once.
func TestGuardOpensAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pause = 30 * time.Millisecond
		f := over()
		var changes []string
		g := wrap.NewGuard(f, wrap.GuardConfig{Failures: 3, Pause: pause, OnChange: func(s string) { changes = append(changes, s) }})
		down := errors.New("down")
		f.set(down, false)
		for range 3 {
			if err := g.Apply(context.Background(), outer(noon, 10)); !errors.Is(err, down) {
				t.Fatal(err)
			}
		}
		refused := func(trips int64) {
			t.Helper()
			b := outer(noon, 10)
			err := g.Apply(context.Background(), b)
			if !errors.Is(err, core.ErrNotApplied) || !errors.Is(b.Rows[0].Err, core.ErrNotApplied) || f.trips.Load() != trips {
				t.Fatalf("open breaker: %v after %d trips", err, f.trips.Load())
			}
		}
		refused(3)
		time.Sleep(pause - time.Nanosecond)
		refused(3)
		time.Sleep(2 * time.Nanosecond)
		if err := g.Apply(context.Background(), outer(noon, 10)); !errors.Is(err, down) || f.trips.Load() != 4 {
			t.Fatalf("half open, still down: %v after %d trips", err, f.trips.Load())
		}
		refused(4)
		f.set(nil, false)
		time.Sleep(pause + time.Nanosecond)
		if err := g.Apply(context.Background(), outer(noon, 10)); err != nil || g.State() != "closed" {
			t.Fatalf("after a success: %s, %v", g.State(), err)
		}
		if want := []string{"open", "half-open", "open", "half-open", "closed"}; !slices.Equal(changes, want) {
			t.Errorf("told %v, want %v", changes, want)
		}
	})
}

// TestGuardIsNotFooled: a visitor who leaves, a spent budget and a row that the
// store cannot hold do not open the breaker.
func TestGuardIsNotFooled(t *testing.T) {
	t.Parallel()
	f := over()
	g := wrap.NewGuard(f, wrap.GuardConfig{Failures: 2, Pause: time.Hour})
	for _, err := range []error{context.Canceled, core.ErrUnsupported, core.ErrSpent, fmt.Errorf("row: %w", hot{})} {
		f.set(err, false)
		for range 5 {
			_ = g.Apply(context.Background(), outer(noon, 10))
		}
	}
	if g.State() != "closed" {
		t.Error(g.State())
	}
}

// hot is a store's error for a record that is written too often.
type hot struct{}

func (hot) Error() string   { return "aborted" }
func (hot) Throttled() bool { return true }

// TestGuardBoundsATrip: a black hole costs the deadline, and no more. A caller
// whose time is over costs the store nothing, its good name included.
func TestGuardBoundsATrip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 20 * time.Millisecond
		f := over()
		f.hold = make(chan struct{})
		g := wrap.NewGuard(f, wrap.GuardConfig{Timeout: limit, Failures: 2, Pause: time.Hour})
		began := time.Now()
		err := g.Apply(context.Background(), outer(noon, 10))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrNotApplied) || took != limit {
			t.Fatalf("%v after %v", err, took)
		}
		ctx, cancel := context.WithDeadline(context.Background(), began)
		defer cancel()
		for range 5 {
			b := outer(noon, 10)
			if err := g.Apply(ctx, b); !errors.Is(err, core.ErrNotApplied) || !errors.Is(b.Rows[0].Err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if f.trips.Load() != 1 || g.State() != "closed" {
			t.Errorf("%d trips, %s", f.trips.Load(), g.State())
		}
	})
}

func TestSpend(t *testing.T) {
	t.Parallel()
	f := over()
	var told []string
	s := wrap.NewSpend(f, wrap.SpendConfig{PerSecond: 3, PerDay: 5, OnSpent: func(b string) { told = append(told, b) }})
	ctx := context.Background()
	apply := func(at time.Time, add int64) error {
		b := outer(at, 100)
		b.Rows[0].Cells[0].Add = add
		return s.Apply(ctx, b)
	}
	for i := range 5 {
		err := apply(noon, 1)
		if (err != nil) != (i >= 3) || err != nil && !(errors.Is(err, core.ErrSpent) && errors.Is(err, core.ErrNotApplied)) {
			t.Fatalf("hit %d: %v", i, err)
		}
	}
	if err := apply(noon, -1); err != nil {
		t.Errorf("a refund is refused: %v", err)
	}
	if err := apply(noon.Add(time.Second), 1); err != nil {
		t.Errorf("the next second: %v", err)
	}
	if err := apply(noon.Add(2*time.Second), 1); !errors.Is(err, core.ErrSpent) {
		t.Errorf("the sixth of the day (refunds are booked): %v", err)
	}
	if err := apply(noon.Add(24*time.Hour), 1); err != nil {
		t.Errorf("the next day: %v", err)
	}
	if s.Refused() != 3 || len(told) != 1 {
		t.Errorf("%d refused, told %v", s.Refused(), told)
	}
}

func TestMeter(t *testing.T) {
	t.Parallel()
	f := over()
	m := wrap.NewMeter(f)
	ctx := context.Background()
	b := outer(noon, 10)
	read := b.Rows[0]
	read.Epoch, read.Cells = 0, []core.Cell{{}}
	b.Rows = append(b.Rows, read)
	_ = m.Apply(ctx, b)
	f.set(core.ErrNotApplied, false)
	_ = m.Apply(ctx, outer(noon, 10))
	f.set(errors.New("lost"), true)
	_ = m.Apply(ctx, outer(noon, 10))
	r := m.Read()
	if r.Trips != 3 || r.Writes != 3 || r.Reads != 1 || r.Failed != 1 || r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
	sum := int64(0)
	for _, n := range r.Latency {
		sum += n
	}
	if sum != 3 {
		t.Errorf("%d trips in the latency buckets", sum)
	}
}

// TestStackCostsNothingOverMemory: the wrappers of a store in this process
// allocate nothing for a row of their own, nor for a Settle with nothing due.
func TestStackCostsNothingOverMemory(t *testing.T) {
	s := wrap.Stack(memory.New(memory.Config{}), wrap.GuardConfig{}, wrap.SpendConfig{})
	b := &core.Batch{Now: noon, Rows: []core.Row{{Key: core.Key{Kind: rows.User, ID: "u"}, Until: noon.Unix() + 3600, Cells: []core.Cell{{Add: 1, Until: noon.Unix() + 3600}}}}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(200, func() { _ = s.Apply(ctx, b); _ = s.Settle(ctx) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
