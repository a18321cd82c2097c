package wrap_test

import (
	"context"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
	"github.com/stilehq/stile/stores/upstash/upstashtest"
	"github.com/stilehq/stile/stores/wrap"
)

// A wrapper under the suite. Open stores get a guard that waits long: what they
// show is counting, on a machine that may be busy. The stores behind the fault
// proxy get one that is quick to try again, so that the faults meet a breaker
// that opens; the calls' own deadlines are short there. A single failure opens
// both: a wrapper that takes for a failure what is none refuses the next hits.
type wrapper struct {
	open, through func(core.Store) core.Store
	// flush is set where the wrapper holds hits back, which is by design.
	flush func(context.Context, core.Store) error
}

var (
	patient = wrap.GuardConfig{Timeout: time.Minute, Failures: 1, Pause: time.Hour}
	quick   = wrap.GuardConfig{Timeout: 20 * time.Second, Failures: 1, Pause: 100 * time.Millisecond}
	plenty  = wrap.SpendConfig{PerSecond: 1 << 40, PerDay: 1 << 40}
)

// same is a wrapper without a configuration of its own.
func same(f func(core.Store) core.Store) wrapper { return wrapper{open: f, through: f} }

func wrappers() map[string]wrapper {
	behind := same(func(s core.Store) core.Store { return wrap.NewBehind(s) })
	behind.flush = func(ctx context.Context, s core.Store) error { return s.(*wrap.Behind).Flush(ctx) }
	return map[string]wrapper{
		"meter":  same(func(s core.Store) core.Store { return wrap.NewMeter(s) }),
		"spend":  same(func(s core.Store) core.Store { return wrap.NewSpend(s, plenty) }),
		"behind": behind,
		"guard": {
			open:    func(s core.Store) core.Store { return wrap.NewGuard(s, patient) },
			through: func(s core.Store) core.Store { return wrap.NewGuard(s, quick) },
		},
		"stack": stack(),
	}
}

// stack is all wrappers, as package wire puts them around a driver.
func stack() wrapper {
	return wrapper{
		open:    func(s core.Store) core.Store { return wrap.Stack(s, patient, plenty) },
		through: func(s core.Store) core.Store { return wrap.Stack(s, quick, plenty) },
		flush:   func(ctx context.Context, s core.Store) error { return s.(*wrap.Stacked).Behind.Flush(ctx) },
	}
}

// over returns the harness of the wrapper over another store's.
func (w wrapper) over(h storetest.Harness) storetest.Harness {
	out := h.With(w.open)
	if h.Through != nil {
		out.Through = h.With(w.through).Through
	}
	out.Flush = w.flush
	return out
}

// TestConformance runs the stores' suite over every wrapper.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, w := range wrappers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := base()
			h.Slow = name != "stack" // one of them goes the whole length
			storetest.Run(t, w.over(h))
		})
	}
}

// TestConformanceOverRedis runs it over a real server and through the fault
// proxy, which loses replies after the apply: exactly one at the server, whatever
// stands in between.
func TestConformanceOverRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	h := network(t, server.Addr, func(addr string) place { return place{url: "redis://" + addr} })
	h.Expiry = func(_ core.Store, r *core.Row) (time.Time, bool) {
		at, ok := server.Do("EXPIRETIME", namer.Name(r)).(int64)
		return time.Unix(at, 0), ok && at > 0
	}
	for name, w := range wrappers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, w.over(h))
		})
	}
}

// TestConformanceOfTheStack runs the suite over all wrappers together around
// other stores. Firestore is not among them: its emulator locks a document for
// seconds where the suite has 64 callers write it.
func TestConformanceOfTheStack(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "local") // the SDK has its own way to them
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	t.Run("upstash", func(t *testing.T) {
		t.Parallel()
		front := upstashtest.Start(t, redistest.Start(t).Client())
		h := network(t, front.Addr, func(addr string) place {
			return place{"http://" + addr, map[string]string{"UPSTASH_REDIS_REST_TOKEN": front.Token}}
		})
		storetest.Run(t, stack().over(h))
	})
	t.Run("dynamodb", func(t *testing.T) {
		t.Parallel()
		server := dynamodbtest.Start(t)
		server.CreateTable(t, "wrapped")
		h := network(t, server.Addr, func(addr string) place {
			return place{url: "dynamodb://wrapped?region=eu-west-1&endpoint=http://" + addr}
		})
		storetest.Run(t, stack().over(h))
	})
}

var namer = rows.Namer{Site: "wrapped"}

// A place is how a store is named: by URL and environment.
type place struct {
	url string
	env map[string]string
}

// network is the harness of a store as its URL opens it, the opener included.
func network(t *testing.T, addr string, by func(addr string) place) storetest.Harness {
	t.Helper()
	registry, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	store := func(tb testing.TB, at string) core.Store {
		p := by(at)
		s, err := open.Store(context.Background(), p.url, registry, open.Options{
			Namer: namer, ConnectTimeout: 20 * time.Second, Timeout: 20 * time.Second,
			Getenv: func(name string) string { return p.env[name] },
		})
		if s == nil {
			tb.Fatal(err)
		}
		return s // beside an error it is usable: these servers have no TTL policy, say
	}
	return storetest.Harness{
		Slow:    true, // the stores' own tests have the long runs
		Open:    func(tb testing.TB) core.Store { return store(tb, addr) },
		Backend: addr,
		Through: store,
	}
}
