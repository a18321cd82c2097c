package reliability

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
	"github.com/stilehq/stile/wire"
)

// timeout is the deadline of one trip in these tests; patience is how much more
// a decision may take on a busy machine before the test calls it unbounded.
const (
	timeout  = 150 * time.Millisecond
	patience = 2 * time.Second
)

// A fault is something that goes wrong between a limiter and its Redis.
type fault struct {
	name   string
	inject func(t *testing.T, s *redistest.Server, p *storetest.FaultProxy)
	heal   func(t *testing.T, s *redistest.Server, p *storetest.FaultProxy)
	// loses says that the server forgets its counters with the fault.
	loses bool
	// counts says that hits during the fault may be counted at the server.
	counts bool
}

func faults() []fault {
	do := func(args ...any) func(*testing.T, *redistest.Server, *storetest.FaultProxy) {
		return func(_ *testing.T, s *redistest.Server, _ *storetest.FaultProxy) { s.Do(args...) }
	}
	return []fault{
		{
			name:   "killed, started again empty",
			inject: func(_ *testing.T, s *redistest.Server, _ *storetest.FaultProxy) { s.Kill() },
			heal:   func(_ *testing.T, s *redistest.Server, _ *storetest.FaultProxy) { s.Restart() },
			loses:  true,
		},
		{
			name:   "black-holed",
			inject: func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.BlackHole() },
			heal:   func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.Pass() },
		},
		{
			name:   "connections refused",
			inject: func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.Refuse() },
			heal:   func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.Pass() },
		},
		{
			name:   "replies lost after the apply",
			inject: func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.SwallowReplies() },
			heal:   func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.Pass() },
			counts: true,
		},
		{
			name:   "300 ms slow",
			inject: func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.Delay(300 * time.Millisecond) },
			heal:   func(_ *testing.T, _ *redistest.Server, p *storetest.FaultProxy) { p.Delay(0); p.Pass() },
			counts: true,
		},
		{
			name:   "process stopped (SIGSTOP)",
			inject: func(_ *testing.T, s *redistest.Server, _ *storetest.FaultProxy) { s.Freeze() },
			heal:   func(_ *testing.T, s *redistest.Server, _ *storetest.FaultProxy) { s.Thaw() },
			counts: true,
		},
		{
			name: "password rotated",
			inject: func(_ *testing.T, s *redistest.Server, _ *storetest.FaultProxy) {
				s.Do("CONFIG", "SET", "requirepass", "another")
				s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			},
			heal: do("CONFIG", "SET", "requirepass", ""),
		},
		{
			name:   "maxmemory reached, noeviction",
			inject: do("CONFIG", "SET", "maxmemory", "1"),
			heal:   do("CONFIG", "SET", "maxmemory", "0"),
		},
		{
			name:   "read-only replica",
			inject: do("REPLICAOF", "127.0.0.1", "1"),
			heal:   do("REPLICAOF", "NO", "ONE"),
		},
	}
}

// seen is one line of the table in docs/reliability.md.
type seen struct {
	hits, errors int
	slowest      time.Duration
	recovery     time.Duration
}

// TestFaultMatrix puts every fault between a limiter and a real Redis: the
// visitor is served within the deadline, nothing is counted twice, and counting
// goes on by itself when the fault is over.
func TestFaultMatrix(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := storetest.NewFaultProxy(t, server.Addr)
			r, err := limiter("redis://"+proxy.Addr(), policyText(100_000, "open", timeout))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close(context.Background()) })
			// Five counted hits. On a busy machine one may miss its deadline before
			// there is any fault, counted or not.
			before, missed := int64(0), 0
			for counted := 0; counted < 5; {
				d := hit(t, r)
				if d.Err == nil {
					counted++
					if n := d.States[1].Count; n <= before || n > int64(counted+missed) {
						t.Fatalf("before the fault the counter says %d after %d hits", n, counted+missed)
					}
					before = d.States[1].Count
				} else if missed++; missed > 100 {
					t.Fatalf("before the fault: %+v", d)
				} else {
					time.Sleep(20 * time.Millisecond) // the breaker's pause, if it came to that
				}
			}
			f.inject(t, server, proxy)
			got := seen{}
			for range 12 {
				began := time.Now()
				d := hit(t, r)
				got.slowest = max(got.slowest, time.Since(began))
				got.hits++
				if d.Err != nil {
					got.errors++
				}
				if d.Outcome != core.Admit {
					t.Fatalf("a visitor was turned away: %s (%v)", d.Reason, d.Err)
				}
			}
			if got.errors == 0 {
				t.Fatal("the fault was not felt: the test shows nothing")
			}
			if got.slowest > timeout+patience {
				t.Errorf("a decision took %v with a deadline of %v", got.slowest, timeout)
			}
			f.heal(t, server, proxy)
			healed := time.Now()
			var d core.Decision
			tries := 0
			for d = hit(t, r); d.Err != nil; d = hit(t, r) {
				tries++
				if time.Since(healed) > 60*time.Second {
					t.Fatalf("no recovery: %v", d.Err)
				}
				time.Sleep(20 * time.Millisecond) // the breaker's pause runs on the real clock
			}
			got.recovery = time.Since(healed)
			// Each hit of the fault and of the recovery was counted once at most.
			least, most := before+1, before+1+int64(missed)
			if f.loses {
				least, most = 1, 1
			}
			most += int64(got.hits - got.errors)
			if f.counts {
				most += int64(got.errors + tries)
			} else {
				least += int64(got.hits - got.errors)
				most += int64(tries) // of a try that the recovery overtook
			}
			if n := d.States[1].Count; n < least || n > most {
				t.Errorf("after the fault the counter says %d, want %d to %d", n, least, most)
			}
			t.Logf("| %s | %d of %d served by the failure policy | %v | %v |", f.name, got.errors, got.hits, got.slowest.Round(time.Millisecond), got.recovery.Round(10*time.Millisecond))
		})
	}
}

func hit(t *testing.T, r *wire.Ready) core.Decision {
	t.Helper()
	d := visit(r, "203.0.113.9", time.Now())
	_ = r.Settle(context.Background())
	return d
}

// TestDownAtStart: a limiter starts without its store, serves by the failure
// policy, and counts once the store is there.
func TestDownAtStart(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]core.Outcome{"open": core.Admit, "closed": core.Unavailable, "local": core.Admit} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			server.Kill()
			r, err := limiter("redis://"+server.Addr, policyText(3, policy, timeout))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close(context.Background()) })
			if r.StoreProblem == nil {
				t.Error("the operator is not told")
			}
			refused := 0
			for i := range 6 {
				d := hit(t, r)
				switch {
				case policy == "local" && i >= 3:
					if d.Outcome != core.Refuse || d.Reason != core.ReasonLocalOver {
						t.Errorf("local, hit %d: %s (%s)", i, d.Outcome, d.Reason)
					}
					refused++
				case d.Outcome != want || d.Err == nil:
					t.Errorf("hit %d: %s (%s), %v", i, d.Outcome, d.Reason, d.Err)
				}
			}
			server.Restart()
			deadline := time.Now().Add(60 * time.Second)
			for d := hit(t, r); d.Reason != core.ReasonWithin; d = hit(t, r) {
				if time.Now().After(deadline) {
					t.Fatalf("never counted: %s, %v", d.Reason, d.Err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
}

// TestFlapping: a store that comes and goes turns nobody away and counts nothing
// twice.
func TestFlapping(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := storetest.NewFaultProxy(t, server.Addr)
	r, err := limiter("redis://"+proxy.Addr(), policyText(100_000, "open", timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	counted, total, last := int64(0), int64(0), int64(0)
	for range 10 {
		for range 8 {
			d := hit(t, r)
			total++
			if d.Outcome != core.Admit {
				t.Fatalf("turned away: %s", d.Reason)
			}
			if d.Err == nil {
				counted++
				last = d.States[1].Count
			}
		}
		proxy.Refuse()
		hit(t, r)
		total++
		proxy.Pass()
	}
	if counted == 0 || last < counted || last > total {
		t.Errorf("%d hits, %d of them counted, the counter says %d", total, counted, last)
	}
	t.Logf("| flapping | %d of %d hits counted | counter %d |", counted, total, last)
}

// TestSkewedClocks: instances five seconds apart admit exactly the limit in the
// middle of a window, and only open it that much early at its edge.
func TestSkewedClocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	url, text := "redis://"+server.Addr, policyText(20, "open", 10*time.Second)
	admitted := int64(0)
	for _, skew := range []time.Duration{-5 * time.Second, 0, 5 * time.Second} {
		cmd, out := start(t, job{Store: url, Policy: text, Hits: 20, Ways: 4, Skew: skew})
		admitted += finish(t, cmd, out).Admitted
	}
	// Around a full hour the skewed instances may see two different hours.
	edge := time.Now().Add(time.Minute).Hour() != time.Now().Add(-time.Minute).Hour()
	if admitted != 20 && !edge {
		t.Errorf("admitted %d of 20", admitted)
	}
}

// TestFrozenAfterTheResponse: the record has its expiry before the process
// loses its CPU.
func TestFrozenAfterTheResponse(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cmd, out := start(t, job{Store: "redis://" + server.Addr, Policy: policyText(20, "open", 10*time.Second), Hits: 1, Ways: 1, Stop: true})
	deadline := time.Now().Add(30 * time.Second)
	for server.Client().DBSize(context.Background()).Val() == 0 || !stopped(cmd.Process.Pid) {
		if time.Now().After(deadline) {
			t.Fatalf("the worker never stopped itself: %s", out)
		}
		time.Sleep(10 * time.Millisecond) // another process
	}
	keys, err := server.Client().Keys(context.Background(), "*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	ttl := server.Client().TTL(context.Background(), keys[0]).Val()
	if ttl <= 0 || ttl > 50*time.Hour {
		t.Errorf("%s expires in %v", keys[0], ttl)
	}
}

// TestFreshProcessEachTime: a slow crawler that meets a cold instance with every
// page, 30 ms from the store, is counted to its limit.
func TestFreshProcessEachTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := storetest.NewFaultProxy(t, server.Addr)
	proxy.Delay(30 * time.Millisecond)
	// The production deadline would make this a test of the machine's load; that
	// connecting has a budget of its own is what is shown: the dial and the
	// greeting alone take several round trips.
	text := policyText(8, "open", time.Second)
	got := done{}
	for range 12 {
		cmd, out := start(t, job{Store: "redis://" + proxy.Addr(), Policy: text, Hits: 1, Ways: 1})
		d := finish(t, cmd, out)
		got.Admitted += d.Admitted
		got.Refused += d.Refused
		got.Errors += d.Errors
	}
	if got != (done{Admitted: 8, Refused: 4}) {
		t.Errorf("%+v, want 8 admitted and 4 refused", got)
	}
	t.Logf("| a cold instance each time, 30 ms away | %d admitted, %d refused of 12, limit 8 |", got.Admitted, got.Refused)
}
