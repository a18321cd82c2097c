package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stilehq/stile/core"
)

const ways = 64 // as many callers at once as the suite tries

// concurrencyCases: no hit is lost or doubled, and each hit sees a count that
// nobody else saw, so exactly `limit` of them are admitted.
var concurrencyCases = []testCase{
	{"concurrency/one key", func(e *env) {
		per := e.repeat(50)
		t := tally{seen: map[int64]int{}}
		e.parallel(func(int) {
			for range per {
				b := e.batch(e.row("hot", count(0), count(24)))
				if !e.applied(b) {
					continue
				}
				c := b.Rows[0].Cells
				if c[0].Value != c[1].Value {
					e.tb.Errorf("two cells of one row moved apart: %d and %d", c[0].Value, c[1].Value)
				}
				t.add(c[0].Value)
			}
		})
		t.check(e, "hot")
	}},
	{"concurrency/many keys", func(e *env) {
		const keys = 16
		turns := e.repeat(8)
		var tallies [keys]tally
		for i := range tallies {
			tallies[i].seen = map[int64]int{}
		}
		e.parallel(func(g int) {
			for turn := range turns {
				for i := range keys {
					k := (i*5 + g + turn) % keys
					b := e.batch(e.row(fmt.Sprint("spread ", k), count(0)))
					if e.applied(b) {
						tallies[k].add(b.Rows[0].Cells[0].Value)
					}
				}
			}
		})
		for k := range tallies {
			tallies[k].check(e, fmt.Sprint("spread ", k))
		}
	}},
	{"concurrency/batches that share a row", func(e *env) {
		per := e.repeat(16)
		t := tally{seen: map[int64]int{}}
		e.parallel(func(g int) {
			own := fmt.Sprint("own ", g)
			for i := range per {
				b := e.batch(e.row(own, count(0)), e.row("shared", count(0)))
				if !e.applied(b) {
					if b.Rows[1].Err == nil {
						t.add(b.Rows[1].Cells[0].Value)
					}
					continue
				}
				t.add(b.Rows[1].Cells[0].Value)
				if got := b.Rows[0].Cells[0].Value; !e.h.Contention && got != int64(i+1) {
					e.tb.Errorf("%s: got %d, want %d", own, got, i+1)
				}
			}
		})
		t.check(e, "shared")
	}},
	{"concurrency/counts and refunds", func(e *env) {
		// Every caller counts and takes it back; what stays is what was there.
		e.want(e.row("balance", add(0, 1000)), 1000)
		per := e.repeat(16)
		e.parallel(func(int) {
			for range per {
				if !e.applied(e.batch(e.row("balance", count(0)))) {
					continue
				}
				e.insist(e.batch(e.row("balance", add(0, -1))))
			}
		})
		e.want(e.row("balance", read(0)), 1000)
	}},
	{"concurrency/clock", func(e *env) {
		if !e.features.Clocks {
			return
		}
		now, per := e.now.UnixMicro(), e.repeat(16)
		t := tally{seen: map[int64]int{}}
		e.parallel(func(int) {
			for range per {
				b := e.batch(e.clockRow("clock", clock(0, now, 10)))
				if e.applied(b) {
					t.add((b.Rows[0].Cells[0].Value - now) / 10)
				}
			}
		})
		e.want(e.clockRow("clock", read(0)), now+10*t.total())
		t.unique(e)
	}},
}

// parallel runs f on many goroutines that start together.
func (e *env) parallel(f func(g int)) {
	e.tb.Helper()
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for g := range ways {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			f(g)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	if e.tb.Failed() {
		e.tb.FailNow()
	}
}

// applied applies b and reports success. Only where the harness declares
// contention may it fail, and then it must be proven unchanged.
func (e *env) applied(b *core.Batch) bool {
	err := e.st.Apply(context.Background(), b)
	if err == nil {
		return true
	}
	if !e.h.Contention || !errors.Is(err, core.ErrNotApplied) {
		e.tb.Errorf("Apply: %v", err)
	}
	return false
}

// insist applies b until it is applied: what is proven unchanged may be sent
// again. It gives up, and returns false, when the case has failed.
func (e *env) insist(b *core.Batch) bool {
	for !e.applied(b) {
		if e.tb.Failed() {
			return false
		}
	}
	return true
}

// tally collects the values that concurrent hits returned.
type tally struct {
	mu   sync.Mutex
	seen map[int64]int
	hits int64
}

func (t *tally) add(v int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[v]++
	t.hits++
}

func (t *tally) total() int64 { return t.hits }

// unique asserts that no value was returned twice and none is missing.
func (t *tally) unique(e *env) {
	e.tb.Helper()
	if t.hits == 0 {
		e.tb.Fatal("no hit was applied")
	}
	for v := int64(1); v <= t.hits; v++ {
		if t.seen[v] != 1 {
			e.tb.Fatalf("value %d was returned %d times over %d hits, want once", v, t.seen[v], t.hits)
		}
	}
}

// check asserts unique values and that the row under id holds as many hits.
func (t *tally) check(e *env, id string) {
	e.tb.Helper()
	t.unique(e)
	e.want(e.row(id, read(0)), t.hits)
}
