package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

// spreadSet and hotSet are the client sets of loads, apart from those of states.
const (
	spreadSet = 16
	hotSet    = 17
)

// load makes decisions from so many goroutines for d, over one key or many. Every
// key is counted once before, so that all are steady. Afterwards one more decision
// shows that every hit on the first key was counted exactly once.
func (g *rig) load(ctx context.Context, ways, keys int, d time.Duration) (Load, error) {
	limiter, err := g.limiter(wide, wide, nil)
	if err != nil {
		return Load{}, err
	}
	set, name := spreadSet, "spread"
	if keys == 1 {
		set, name = hotSet, "hot"
	}
	start := g.base
	v := newVisit()
	decide := func(n int, at time.Time) (core.Decision, error) {
		got := limiter.Decide(ctx, v.at(set, n, at))
		if got.Err == nil {
			got.Err = limiter.Settle(ctx)
		}
		return got, got.Err
	}
	for n := range keys {
		if _, err := decide(n, start); err != nil {
			return Load{}, fmt.Errorf("bench: load: warming up: %w", err)
		}
	}
	first, err := decide(0, start)
	if err != nil {
		return Load{}, err
	}

	var (
		next, failed, decided atomic.Int64
		onFirst               atomic.Int64 // decisions about client 0
		unknown               atomic.Int64 // of them, those that failed: counted or not
		mu                    sync.Mutex
		total                 histogram
		touched               = make([]atomic.Bool, keys)
		wg                    sync.WaitGroup
	)
	began := time.Now()
	for range ways {
		wg.Go(func() {
			v, h := newVisit(), &histogram{}
			for turn := 0; ; turn++ {
				elapsed := time.Since(began)
				if turn > 0 && elapsed >= d || ctx.Err() != nil { // one decision each, however busy the machine
					break
				}
				// An odd factor makes this a permutation of the keys.
				n := int(uint64(next.Add(1)) * 2654435761 & uint64(keys-1))
				if !touched[n].Load() {
					touched[n].Store(true)
				}
				r := v.at(set, n, start.Add(elapsed))
				from := time.Now()
				got := limiter.Decide(ctx, r)
				took := time.Since(from)
				if got.Err != nil || got.Outcome != core.Admit {
					failed.Add(1)
					if n == 0 {
						unknown.Add(1)
					}
					continue
				}
				h.add(took)
				decided.Add(1)
				if n == 0 {
					onFirst.Add(1)
				}
				_ = limiter.Settle(ctx) // what is left waits for the next one
			}
			mu.Lock()
			total.merge(h)
			mu.Unlock()
		})
	}
	wg.Wait()
	spent := time.Since(began)
	if err := ctx.Err(); err != nil {
		return Load{}, err
	}
	l := Load{
		Ways: ways, Keys: name, Decisions: decided.Load(), Errors: failed.Load(),
		Seconds: round3(spent.Seconds()), PerSecond: round3(float64(decided.Load()) / spent.Seconds()),
		Latency: total.latency(),
	}
	for i := range touched {
		if touched[i].Load() {
			l.Distinct++
		}
	}
	if want := min(int64(keys), next.Load()); int64(l.Distinct) != want {
		return l, fmt.Errorf("bench: load: %d distinct keys were asked for, want %d", l.Distinct, want)
	}
	if l.Decisions == 0 {
		return l, fmt.Errorf("bench: load: no decision in %s, %d errors", d, l.Errors)
	}
	last, err := decide(0, start.Add(spent))
	if err != nil {
		return l, fmt.Errorf("bench: load: counting at the end: %w", err)
	}
	day := func(d *core.Decision) int64 { return d.States[len(d.States)-1].Count }
	counted := day(&last) - day(&first) - 1
	if counted < onFirst.Load() || counted > onFirst.Load()+unknown.Load() {
		return l, fmt.Errorf("bench: load: %d decisions about one key, %d counted", onFirst.Load(), counted)
	}
	return l, nil
}
