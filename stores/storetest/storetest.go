// Package storetest is the conformance suite of core.Store. Every store and
// every wrapper runs it, so that "what a store does" is written once, as tests:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			Open: func(tb testing.TB) core.Store { return memory.New(memory.Config{}) },
//		})
//	}
//
// A store that cannot do something says so in its core.Features; the suite then
// asserts that the store refuses it cleanly instead. Nothing is left out by a
// store's name. A wrapper runs the suite over any store with [Harness.With].
//
// Keys are unique per case and run (a random plan and id prefix), so cases run
// in parallel against one server, and what an earlier run left there is harmless.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

// A Harness tells the suite how to reach one kind of store. Only Open is
// required. Its functions are called from many goroutines.
type Harness struct {
	// Open returns a working store; the suite closes it, more than once.
	// If the store's features say Shared or RetainsRows, two opened stores must
	// see the same rows.
	Open func(tb testing.TB) core.Store

	// Exists reports whether the store holds a record for row, looked up beside
	// st (at the server). Nil: only what later values reveal is asserted.
	Exists func(st core.Store, row *core.Row) (bool, error)

	// Expiry returns the time at which the record of row expires, and false when
	// there is no record or it has no expiry. Nil: expiry is not asserted.
	Expiry func(st core.Store, row *core.Row) (time.Time, bool)

	// Backend is the TCP address of the server, and Through opens a store whose
	// every connection goes to addr, a fault proxy in front of Backend. Through
	// must give the store no retries of its own making beyond what production
	// has. With both set, the fault cases run; they compare with Open, which
	// must reach the same rows directly.
	Backend string
	Through func(tb testing.TB, addr string) core.Store

	// Timeout is the deadline of one call in the fault cases. Default 1 s.
	Timeout time.Duration

	// Contention declares that a row hit by many at once may answer an error
	// that wraps core.ErrNotApplied (optimistic locking). The suite then counts
	// what was applied; without it any error fails.
	Contention bool

	// Flush declares that the store holds hits of rows with a MaxAge back to
	// report many at once, as a coalescing wrapper does; it makes st report all of
	// them. The suite then asserts what such a store promises instead (see the
	// cases "outer"). Nil: every hit is at the server when Apply returns.
	Flush func(ctx context.Context, st core.Store) error

	// Slow trims repetitions, for emulators that take milliseconds per call.
	Slow bool

	// BenchKeys is the number of distinct keys of the spread benchmarks.
	// Default 1<<16.
	BenchKeys int
}

// With returns a harness for a wrapper over the same store. The probes still
// look at the wrapped store's rows.
func (h Harness) With(wrap func(inner core.Store) core.Store) Harness {
	var inners sync.Map // outer store -> inner store
	enclose := func(inner core.Store) core.Store {
		outer := wrap(inner)
		inners.Store(outer, inner)
		return outer
	}
	inside := func(st core.Store) core.Store {
		if inner, ok := inners.Load(st); ok {
			return inner.(core.Store)
		}
		return st
	}
	w := h
	w.Open = func(tb testing.TB) core.Store { return enclose(h.Open(tb)) }
	if h.Through != nil {
		w.Through = func(tb testing.TB, addr string) core.Store { return enclose(h.Through(tb, addr)) }
	}
	if h.Exists != nil {
		w.Exists = func(st core.Store, row *core.Row) (bool, error) { return h.Exists(inside(st), row) }
	}
	if h.Expiry != nil {
		w.Expiry = func(st core.Store, row *core.Row) (time.Time, bool) { return h.Expiry(inside(st), row) }
	}
	if h.Flush != nil {
		w.Flush = func(ctx context.Context, st core.Store) error { return h.Flush(ctx, inside(st)) }
	}
	return w
}

// Run runs the whole suite as parallel subtests of t.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range cases(h) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newEnv(t, h))
		})
	}
}

// A testCase is one named part of the suite. Cases take an env and not a
// *testing.T so that the suite's own tests can run them over broken stores and
// see them fail.
type testCase struct {
	name string
	run  func(e *env)
}

func cases(h Harness) []testCase {
	var list []testCase
	for _, group := range [][]testCase{
		cellCases, absenceCases, clockCases, isolationCases, batchCases, contextCases, concurrencyCases, outerCases, modelCases,
	} {
		list = append(list, group...)
	}
	if h.Backend != "" && h.Through != nil {
		list = append(list, faultCases...)
		if h.Flush != nil {
			list = append(list, outerFaultCases...)
		}
	}
	return list
}
