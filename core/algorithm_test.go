package core

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// TestTraces holds every algorithm against whole histories worked out by hand:
// one line for each hit.
func TestTraces(t *testing.T) {
	t.Parallel()
	type line struct {
		at        string // since 12:00:00
		admitted  bool
		remaining int64
		reset     string
		retry     string // of a refusal
	}
	for _, tt := range []struct {
		name   string
		bucket Bucket
		lines  []line
	}{
		{"fixed window of a minute, 2", Bucket{Algorithm: FixedWindow, Limit: 2, Window: time.Minute}, []line{
			{"0s", true, 1, "60s", ""},
			{"59.995s", true, 0, "5ms", ""},
			{"59.999s", false, 0, "1ms", "1ms"},
			{"60.005s", true, 1, "59.995s", ""}, // twice the limit around an edge: what a fixed window does
			{"61s", true, 0, "59s", ""},
			{"62s", false, 0, "58s", "58s"},
		}},
		{"sliding counter of a minute, 2", Bucket{Algorithm: SlidingWindowCounter, Limit: 2, Window: time.Minute}, []line{
			{"30s", true, 1, "30s", ""},
			{"30s", true, 0, "30s", ""},
			{"59.999s", false, 0, "1ms", "30.001s"}, // in the next window: 2*left/60 + 1 <= 2 when left <= 30
			{"89.999s", false, 0, "30.001s", "1ms"},
			{"90s", true, 0, "30s", ""},
			{"119s", false, 0, "1s", "1s"}, // 2*1/60 + 2 > 2 until the window ends
			{"120s", true, 0, "60s", ""},   // then 1*60/60 + 1
		}},
		{"sliding log of a minute, 2", Bucket{Algorithm: SlidingWindowLog, Limit: 2, Window: time.Minute}, []line{
			{"0.5s", true, 1, "60.5s", ""},
			{"30.5s", true, 0, "30.5s", ""},
			{"59s", false, 0, "2s", "2s"},
			{"60.9s", false, 0, "100ms", "100ms"}, // an exact log admits at 60.5: a sub-window late
			{"61s", true, 0, "30s", ""},
			{"62s", false, 0, "29s", "29s"},
			{"91s", true, 0, "31s", ""},
		}},
		{"token bucket of a minute, 2", Bucket{Algorithm: TokenBucket, Limit: 2, Window: time.Minute}, []line{
			{"0s", true, 1, "30s", ""},
			{"0s", true, 0, "60s", ""},
			{"0s", false, 0, "60s", "30s"},
			{"29.999s", false, 0, "30.001s", "1ms"},
			{"30s", true, 0, "60s", ""},
			{"300s", true, 1, "30s", ""}, // idle time does not pile up beyond the bucket
		}},
		{"gcra of a minute, 6, burst 2", Bucket{Algorithm: GCRA, Limit: 6, Window: time.Minute, Burst: 2}, []line{
			{"0s", true, 1, "10s", ""},
			{"0s", true, 0, "20s", ""},
			{"1s", false, 0, "19s", "9s"},
			{"10s", true, 0, "20s", ""},
			{"25s", true, 0, "15s", ""},
			{"60s", true, 1, "10s", ""},
		}},
	} {
		tt.bucket.Name, tt.bucket.Key = "b", rows.Address
		r := newRig(t, Policy{Buckets: []Bucket{tt.bucket}}, Options{})
		for i, l := range tt.lines {
			r.memory = newDenyMemory() // the algorithm is asked, not the memory
			d := r.hit("203.0.113.9", noon.Add(duration(t, l.at)))
			s := d.States[0]
			got := line{l.at, d.Outcome == Admit, s.Remaining, l.reset, ""}
			if reset := s.Reset; d.Outcome == Admit && reset != duration(t, l.reset) {
				got.reset = reset.String()
			}
			if d.Outcome == Refuse {
				got.retry = l.retry
				if d.RetryAfter != duration(t, l.retry) {
					got.retry = d.RetryAfter.String()
				}
			}
			if got != l {
				t.Errorf("%s, line %d:\n got %+v\nwant %+v", tt.name, i, got, l)
			}
		}
	}
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// random traffic of one key over a policy, with pauses around the windows.
func pause(rng *rand.Rand, window time.Duration) time.Duration {
	switch rng.IntN(6) {
	case 0:
		return 0
	case 1:
		return time.Duration(rng.Int64N(int64(window)))
	case 2:
		return time.Duration(rng.Int64N(int64(3 * window)))
	default:
		return time.Duration(rng.Int64N(int64(window / 20)))
	}
}

func randomBuckets(rng *rand.Rand) []Bucket {
	var out []Bucket
	algorithms := []AlgorithmKind{FixedWindow, SlidingWindowLog, SlidingWindowCounter, TokenBucket, GCRA}
	windows := []time.Duration{time.Minute, 7 * time.Minute, time.Hour, 5 * time.Hour, day}
	zones := []string{"", "America/Havana", "Asia/Kathmandu", "Australia/Lord_Howe"}
	for i := range 1 + rng.IntN(3) {
		b := Bucket{
			Name: fmt.Sprint("b", i), Key: rows.Address,
			Algorithm: algorithms[rng.IntN(len(algorithms))], Limit: 1 + rng.Int64N(12), Window: windows[rng.IntN(len(windows))],
		}
		if b.Algorithm.Clock() && rng.IntN(2) == 0 {
			b.Burst = 1 + rng.Int64N(5)
		}
		if z := zones[rng.IntN(len(zones))]; z != "" {
			b.Zone, _ = time.LoadLocation(z)
		}
		if rng.IntN(4) == 0 {
			b.Key = rows.Network
		}
		out = append(out, b)
	}
	return out
}

// TestRetryAfterSuffices: after that many seconds without other traffic, the
// next navigation is admitted; and a moment earlier it was not.
func TestRetryAfterSuffices(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 800
	if testing.Short() || RaceDetector {
		rounds = 100
	}
	refused, early := 0, 0
	for round := range rounds {
		buckets := randomBuckets(rng)
		p := Policy{Buckets: buckets}
		r := newRig(t, p, Options{})
		// Days around a change of clocks too.
		now := time.Date(2026, 3, 7, 20, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(48 * time.Hour))))
		for range 40 {
			now = now.Add(pause(rng, buckets[0].Window))
			d := r.hit("203.0.113.9", now)
			if d.Outcome != Refuse {
				continue
			}
			refused++
			if d.RetryAfter <= 0 {
				t.Fatalf("round %d: refused, and may come back in %v", round, d.RetryAfter)
			}
			back := now.Add(d.RetryAfter)
			snapshot := r.clone(t, p)
			if d := snapshot.hit("203.0.113.9", back.Add(-time.Microsecond)); d.Outcome == Refuse {
				early++
			} else {
				t.Fatalf("round %d: refused at %v for %v, but admitted a moment earlier\n%+v", round, now, d.RetryAfter, buckets)
			}
			snapshot = r.clone(t, p)
			if after := snapshot.hit("203.0.113.9", back); after.Outcome != Admit {
				t.Fatalf("round %d: refused at %v for %v, and then again for %v\n%+v\nfirst %+v\nthen  %+v", round, now, d.RetryAfter, after.RetryAfter, buckets, d.States, after.States)
			}
			// The deny memory must say the same.
			if rng.IntN(4) == 0 {
				if after := r.hit("203.0.113.9", back); after.Outcome != Admit {
					t.Fatalf("round %d: the memory still refuses at %v: %s", round, back, after.Reason)
				}
				now = back
			}
		}
	}
	if refused < rounds || early != refused {
		t.Fatalf("%d refusals in %d rounds, %d checked early", refused, rounds, early)
	}
}

// clone is a limiter without memory over a copy of the counters.
func (r *rig) clone(t testing.TB, p Policy) *rig {
	c := newRig(t, p, Options{})
	for k, v := range r.store.cells {
		c.store.cells[k] = v
		c.store.known[mapCell{key: k.key, plan: k.plan, epoch: k.epoch}] = true
	}
	return c
}

// TestNeverAboveTheLimit holds the algorithms against the exact log of what was
// admitted, each by what it promises.
func TestNeverAboveTheLimit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	rounds := 120
	if RaceDetector {
		rounds = 10
	}
	for round := range rounds {
		window := []time.Duration{time.Minute, time.Hour}[rng.IntN(2)]
		limit := 1 + rng.Int64N(20)
		for _, alg := range []AlgorithmKind{FixedWindow, SlidingWindowLog, SlidingWindowCounter, TokenBucket, GCRA} {
			b := Bucket{Name: "b", Key: rows.Address, Algorithm: alg, Limit: limit, Window: window}
			r := newRig(t, Policy{Buckets: []Bucket{b}}, Options{})
			now := noon.Add(time.Duration(rng.Int64N(int64(window))))
			var admitted []time.Time
			for range 200 {
				now = now.Add(pause(rng, window) / 8)
				if r.hit("203.0.113.9", now).Outcome == Admit {
					admitted = append(admitted, now)
				}
			}
			worst := int64(0)
			for i := range admitted {
				n := int64(0)
				for _, at := range admitted[i:] {
					if at.Sub(admitted[i]) < window {
						n++
					}
				}
				worst = max(worst, n)
			}
			bound := limit
			switch alg {
			case FixedWindow, TokenBucket:
				bound = 2 * limit
			case SlidingWindowCounter:
				bound = 2*limit - 1 + btoi64(limit == 1) // all at the end of one window, then as the weight falls
			case GCRA:
				bound = limit + 1 // a pace, not a count: one in hand
			}
			if worst > bound {
				t.Fatalf("round %d: %s of %d per %v admitted %d within one window, promised at most %d", round, alg, limit, window, worst, bound)
			}
		}
	}
}

func btoi64(b bool) int64 { return int64(btoi(b)) }

// TestOneClientNeverChangesAnother: with own keys only, a client's outcomes are
// the same whoever else comes, in whatever order.
func TestOneClientNeverChangesAnother(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	rounds := 200
	if RaceDetector {
		rounds = 30
	}
	for range rounds {
		buckets := randomBuckets(rng)
		for i := range buckets {
			buckets[i].Key = rows.Address
		}
		alone := newRig(t, Policy{Buckets: buckets}, Options{})
		crowd := newRig(t, Policy{Buckets: buckets}, Options{})
		now := noon
		for range 60 {
			now = now.Add(pause(rng, buckets[0].Window) / 3)
			for range rng.IntN(8) {
				crowd.hit(fmt.Sprintf("203.0.113.%d", 10+rng.IntN(5)), now)
			}
			a, b := alone.hit("203.0.113.9", now), crowd.hit("203.0.113.9", now)
			if a.Outcome != b.Outcome || a.RetryAfter != b.RetryAfter || fmt.Sprint(a.States) != fmt.Sprint(b.States) {
				t.Fatalf("alone %+v\nin a crowd %+v", a, b)
			}
		}
	}
}
