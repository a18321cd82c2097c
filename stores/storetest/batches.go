package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// batchCases: several rows in a trip, and wide rows.
var batchCases = []testCase{
	{"batch/empty", func(e *env) {
		e.apply(&core.Batch{Now: e.now})
		r := e.row("no cells")
		e.apply(e.batch(r))
		e.exists(r, false)
	}},
	{"batch/several rows", func(e *env) {
		make3 := func() *core.Batch {
			return e.batch(
				e.row("own", count(3), read(2), count(24)),
				e.keyed(core.Key{Kind: rows.Global, ID: e.prefix}, count(0)),
				e.row("only read", read(0)),
			)
		}
		for i := int64(1); i <= 3; i++ {
			b := make3()
			e.apply(b)
			for j, want := range [][]int64{{i, 0, i}, {i}, {0}} {
				if got := values(&b.Rows[j]); !slices.Equal(got, want) {
					e.tb.Fatalf("trip %d, row %d: got %v, want %v", i, j, got, want)
				}
			}
		}
		e.exists(e.row("only read"), false)
	}},
	{"batch/many rows", func(e *env) {
		const n = 20
		list := make([]core.Row, n)
		for i := range list {
			list[i] = e.row(fmt.Sprint("row ", i), add(0, int64(i+1)))
		}
		e.apply(e.batch(list...))
		for i := range list {
			e.want(e.row(fmt.Sprint("row ", i), read(0)), int64(i+1))
		}
	}},
	{"batch/refunds beside counts", func(e *env) {
		e.want(e.row("a", add(0, 5)), 5)
		b := e.batch(e.row("a", add(0, -1)), e.row("b", add(0, -1)), e.row("c", count(0)))
		e.apply(b)
		for i, want := range []int64{4, 0, 1} {
			if got := b.Rows[i].Cells[0].Value; got != want {
				e.tb.Fatalf("row %d: got %d, want %d", i, got, want)
			}
		}
	}},
	{"batch/row outcomes are set anew", func(e *env) {
		b := e.batch(e.row("pooled", count(0)), e.row("pooled 2", count(0)))
		e.apply(b) // apply poisons Err and Value first
		e.apply(b)
		if got := b.Rows[0].Cells[0].Value; got != 2 {
			e.tb.Fatalf("got %d, want 2", got)
		}
	}},
	{"batch/a wide row", func(e *env) {
		n := 61 // the sliding log: 60 sub-windows and the one that leaves
		if m := e.features.MaxCells; m > 0 && m < n {
			n = m
			cells := make([]core.Cell, m+1)
			for i := range cells {
				cells[i] = count(uint16(i))
			}
			e.refuses(e.row("too wide", cells...))
		}
		cells := make([]core.Cell, n)
		want := make([]int64, n)
		for range 2 {
			for i := range e.repeat(n) {
				hit := i * 7 % n
				for j := range cells {
					cells[j] = read(uint16(j))
				}
				cells[hit] = count(uint16(hit))
				want[hit]++
				e.want(e.row("wide", cells...), want...)
			}
		}
		for j := range cells { // every cell at once
			cells[j] = add(uint16(j), int64(j))
			want[j] += int64(j)
		}
		e.want(e.row("wide", cells...), want...)
	}},
}

func (e *env) context() context.Context { return context.Background() }

// contextCases: calls that must change nothing, and the calls after them.
var contextCases = []testCase{
	{"context/cancelled before the call", func(e *env) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		e.untouched(ctx)
	}},
	{"context/deadline passed before the call", func(e *env) {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		e.untouched(ctx)
	}},
	{"close/apply afterwards", func(e *env) {
		st := e.h.Open(e.tb)
		b := e.batch(e.row("closed", count(0)))
		if err := st.Apply(context.Background(), b); err != nil {
			e.tb.Fatal(err)
		}
		if err := st.Close(); err != nil {
			e.tb.Fatalf("Close: %v", err)
		}
		b.Rows[0].Err = errStale
		err := st.Apply(context.Background(), b)
		if !errors.Is(err, core.ErrNotApplied) || !errors.Is(b.Rows[0].Err, core.ErrNotApplied) {
			e.tb.Fatalf("Apply after Close: error %v, Row.Err %v; both must wrap core.ErrNotApplied", err, b.Rows[0].Err)
		}
		st.Close() // twice is harmless, whatever it returns
	}},
}

// untouched applies two rows under a context that is over, and expects them
// unchanged, marked so, and a healthy store afterwards.
func (e *env) untouched(ctx context.Context) {
	e.tb.Helper()
	e.want(e.row("present", count(0)), 1)
	b := e.batch(e.row("present", count(0)), e.row("absent", count(0)))
	b.Rows[0].Err, b.Rows[1].Err = errStale, errStale
	err := e.st.Apply(ctx, b)
	if !errors.Is(err, core.ErrNotApplied) {
		e.tb.Fatalf("got error %v, want one that wraps core.ErrNotApplied", err)
	}
	for i := range b.Rows {
		if !errors.Is(b.Rows[i].Err, core.ErrNotApplied) {
			e.tb.Fatalf("row %d: Err %v, want one that wraps core.ErrNotApplied", i, b.Rows[i].Err)
		}
	}
	e.exists(b.Rows[1], false)
	e.want(e.row("present", read(0)), 1)
	e.want(e.row("absent", read(0)), 0)
	e.want(e.row("present", count(0)), 2)
	e.want(e.row("absent", count(0)), 1)
}
