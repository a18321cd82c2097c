package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

const (
	// outerAge is the MaxAge of outer rows: longer than any case takes.
	outerAge = 10 * time.Minute
	// heldShare is the part of a bucket's remaining room that one instance may
	// hold unreported, 1/128: the bound that `stile explain` prints.
	heldShare = 128
	// outerLimit is wide enough that some tens of hits may be held.
	outerLimit = 12_800
)

// outerCases: rows whose hits may wait for others ([core.Row].MaxAge). Every
// store takes them. One that holds hits back says so in Harness.Flush, and then
// what is promised instead is asserted: its own callers see every hit, it holds
// no more than its share, the last stretch of a bucket goes hit by hit, and what
// it holds is reported once.
var outerCases = []testCase{
	{"outer/its own callers see every hit", func(e *env) {
		n := int64(e.repeat(400))
		for i := int64(1); i <= n; i++ {
			e.want(e.outer("own", outerLimit, 1), i)
			if i%40 == 1 {
				e.holds("own", outerLimit, i)
			}
		}
		e.flushed("own", n)
	}},
	{"outer/the last stretch is told hit by hit", func(e *env) {
		const limit = 60 // its whole room is below one share
		n := int64(e.repeat(limit + 4))
		for i := int64(1); i <= n; i++ {
			e.want(e.outer("last", limit, 1), i)
			e.told("last", i)
		}
	}},
	{"outer/a refund is seen at once", func(e *env) {
		for i := int64(1); i <= 20; i++ {
			e.want(e.outer("refund", outerLimit, 1), i)
		}
		for i := int64(19); i >= 15; i-- {
			e.want(e.outer("refund", outerLimit, -1), i)
		}
		e.want(e.outer("refund", outerLimit, 1), 16)
		e.want(e.outer("refund", outerLimit, 0), 16)
		e.flushed("refund", 16)
		e.want(e.outer("refund", outerLimit, 1), 17)
		e.flushed("refund", 17)
	}},
	{"outer/told when it is old, in another row's trip", func(e *env) {
		for i := int64(1); i <= 5; i++ {
			e.want(e.outer("old", outerLimit, 1), i)
		}
		b := e.batch(e.row("another", count(0)))
		b.Now = e.now.Add(outerAge)
		e.apply(b)
		if got := b.Rows[0].Cells[0].Value; got != 1 {
			e.tb.Fatalf("the other row got %d, want 1", got)
		}
		e.told("old", 5)
		e.flushed("old", 5)
	}},
	{"outer/hits and refunds of many callers", func(e *env) {
		per := e.repeat(24)
		var net atomic.Int64
		e.parallel(func(g int) {
			for i := range per {
				if !e.applied(e.batch(e.outer("crowd", outerLimit, 1))) {
					continue
				}
				net.Add(1)
				if (g+i)%3 == 0 && e.applied(e.batch(e.outer("crowd", outerLimit, -1))) {
					net.Add(-1)
				}
			}
		})
		e.flushed("crowd", net.Load())
	}},
	{"outer/one instance admits the limit", func(e *env) {
		const limit = 150
		per := max(e.repeat(8), limit/ways+2)
		var admitted atomic.Int64
		e.parallel(func(int) {
			for range per {
				b := e.batch(e.outer("limit", limit, 1))
				switch {
				case !e.insist(b):
				case b.Rows[0].Cells[0].Value <= limit:
					admitted.Add(1)
				default:
					e.insist(e.batch(e.outer("limit", limit, -1)))
				}
			}
		})
		got := admitted.Load()
		if got < limit || got > limit+e.share(limit) {
			e.tb.Fatalf("%d of %d hits were admitted, want %d to %d", got, ways*per, limit, limit+e.share(limit))
		}
		e.flushed("limit", got)
	}},
	{"outer/several instances", func(e *env) {
		if !e.features.Shared {
			return
		}
		limit := int64(e.repeat(1280))
		instances := []core.Store{e.st}
		for range 3 {
			st := e.h.Open(e.tb)
			e.tb.Cleanup(func() { st.Close() })
			instances = append(instances, st)
		}
		rnd := rand.New(rand.NewPCG(uint64(e.now.UnixNano()), 1))
		admitted := int64(0)
		for range limit + limit/4 {
			st := instances[rnd.IntN(1+rnd.IntN(len(instances)))] // some are seldom asked
			b := e.batch(e.outer("several", limit, 1))
			e.applyTo(st, b)
			if b.Rows[0].Cells[0].Value <= limit {
				admitted++
				continue
			}
			e.applyTo(st, e.batch(e.outer("several", limit, -1)))
		}
		over := int64(len(instances)-1) * e.share(limit)
		if admitted < limit || admitted > limit+over {
			e.tb.Fatalf("%d instances admitted %d, want %d to %d", len(instances), admitted, limit, limit+over)
		}
		for _, st := range instances {
			e.flush(st)
		}
		e.told("several", admitted)
	}},
}

// outerFaultCases run where a store holds hits back: a report is one row that
// carries many, and what the network does to it happens to all of them.
var outerFaultCases = []testCase{
	{"outer fault/report's reply lost", func(e *env) { e.loseReport((*FaultProxy).LoseReply) }},
	{"outer fault/report's reply lost, connection open", func(e *env) { e.loseReport((*FaultProxy).SwallowReplies) }},
	{"outer fault/reply of a hit that carries others lost", func(e *env) {
		p, st := e.hold("carry", 9)
		p.LoseReply()
		b := e.batch(e.outer("carry", outerLimit, 1))
		b.Now = e.now.Add(outerAge)
		if err := e.call(st, b); err == nil || b.Rows[0].Err == nil {
			e.tb.Fatalf("Apply returned %v and Row.Err %v without an answer of the server", err, b.Rows[0].Err)
		}
		e.atServer("carry", 10)
		p.Pass()
		e.recovers(st)
		e.flush(st)
		e.nothingLate("carry", 10)
	}},
	{"outer fault/report refused", func(e *env) {
		p, st := e.hold("refused", 9)
		p.Refuse()
		err := e.flushWithin(st)
		if err == nil {
			e.tb.Fatal("Flush returned nil, though nothing reached the server")
		}
		e.atServer("refused", 1)
		p.Pass()
		e.recovers(st)
		e.flush(st)
		// Proven unsent, it is kept; otherwise it may have arrived, and is not
		// sent again.
		want := int64(1)
		if unsent(err) {
			want = 9
		}
		e.nothingLate("refused", want)
	}},
	{"outer fault/report not sent", func(e *env) {
		_, st := e.hold("kept", 9)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := e.h.Flush(ctx, st); !unsent(err) {
			e.tb.Fatalf("Flush with a cancelled context returned %v, want core.ErrNotApplied", err)
		}
		e.atServer("kept", 1)
		e.flush(st)
		e.atServer("kept", 9)
		e.flush(st)
		e.nothingLate("kept", 9)
	}},
}

// outer returns a row that may wait: n hits of a bucket of many.
func (e *env) outer(id string, limit, n int64) core.Row {
	r := e.row(id, add(0, n))
	r.MaxAge = outerAge
	if n > 0 {
		r.Cells[0].Ceiling = limit
	}
	return r
}

// share is what one instance may hold of a bucket, and admit too much: hits that
// others do not know of, or that its own later hits overtake on the way.
func (e *env) share(limit int64) int64 {
	if e.h.Flush == nil {
		return 0
	}
	return max(1, limit/heldShare)
}

// asTold returns what the record of an outer row holds: a read without a MaxAge
// is answered by the server.
func (e *env) asTold(id string) int64 {
	e.tb.Helper()
	return e.do(e.row(id, read(0)))[0]
}

func (e *env) told(id string, want int64) {
	e.tb.Helper()
	if got := e.asTold(id); got != want {
		e.tb.Fatalf("the record holds %d, want %d", got, want)
	}
}

// holds asserts, after total hits of one instance, that the record holds them
// all but what the harness's declaration allows.
func (e *env) holds(id string, limit, total int64) {
	e.tb.Helper()
	most := int64(0)
	if e.h.Flush != nil {
		most = max(0, limit-total+1) / heldShare
	}
	if held := total - e.asTold(id); held < 0 || held > most {
		e.tb.Fatalf("after %d hits of a limit of %d, %d are held back, want 0 to %d", total, limit, held, most)
	}
}

// flush has st report what it holds, if it holds anything back.
func (e *env) flush(st core.Store) {
	e.tb.Helper()
	if e.h.Flush == nil {
		return
	}
	// A hot record may refuse a report; it is kept, and told again.
	for try := 0; ; try++ {
		err := e.h.Flush(context.Background(), st)
		if err == nil {
			return
		}
		if !e.h.Contention || !unsent(err) || try == 20 {
			e.tb.Fatalf("Flush: %v", err)
		}
	}
}

// flushed flushes and asserts what the record then holds; a second flush has
// nothing to say.
func (e *env) flushed(id string, want int64) {
	e.tb.Helper()
	for range 2 {
		e.flush(e.st)
		e.told(id, want)
	}
}

func (e *env) applyTo(st core.Store, b *core.Batch) {
	e.tb.Helper()
	for {
		err := st.Apply(context.Background(), b)
		if err == nil {
			return
		}
		if !e.h.Contention || !unsent(err) {
			e.tb.Fatalf("Apply: %v", err)
		}
	}
}

// hold opens a store behind a proxy and gives it n hits, of which the first is
// told and the rest are held.
func (e *env) hold(id string, n int64) (*FaultProxy, core.Store) {
	e.tb.Helper()
	p, st := e.through()
	for i := int64(1); i <= n; i++ {
		b := e.batch(e.outer(id, outerLimit, 1))
		e.applyTo(st, b)
		if got := b.Rows[0].Cells[0].Value; got != i {
			e.tb.Fatalf("hit %d got %d", i, got)
		}
	}
	e.told(id, 1)
	return p, st
}

// loseReport loses the reply of a report of eight hits, and asserts that they
// are at the server once, whatever is flushed afterwards.
func (e *env) loseReport(lose func(*FaultProxy)) {
	e.tb.Helper()
	p, st := e.hold("report", 9)
	lose(p)
	err := e.flushWithin(st)
	if err == nil || unsent(err) {
		e.tb.Fatalf("a report that was applied: Flush returned %v", err)
	}
	e.played(p)
	e.atServer("report", 9)
	p.Pass()
	e.recovers(st)
	e.flush(st)
	e.nothingLate("report", 9)
	b := e.batch(e.outer("report", outerLimit, 1))
	e.applyTo(st, b)
	e.flush(st)
	e.nothingLate("report", 10)
}

func (e *env) flushWithin(st core.Store) error {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), e.h.Timeout)
	defer cancel()
	return e.h.Flush(ctx, st)
}

// unsent reports whether an error proves that nothing was applied.
func unsent(err error) bool { return errors.Is(err, core.ErrNotApplied) }
