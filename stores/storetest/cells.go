package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
)

// errStale stands in Row.Err before Apply: a store that leaves it there has not
// set the row's outcome.
var errStale = errors.New("storetest: Err was not set by Apply")

func cellsText(cells []core.Cell) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "{slot %d floor %d add %d}", c.Slot, c.Floor, c.Add)
	}
	return b.String()
}

// A step applies cells to the one row of a trace and names the values.
type step struct {
	cells []core.Cell
	want  []int64
}

func trace(steps ...step) func(*env) {
	return func(e *env) {
		for _, s := range steps {
			e.want(e.row("trace", s.cells...), s.want...)
		}
	}
}

func at(cells ...core.Cell) step { return step{cells: cells} }

func (s step) gives(want ...int64) step { s.want = want; return s }

// cellCases: what Apply does to one cell, and in which order.
var cellCases = []testCase{
	{"cell/count", trace(
		at(count(0)).gives(1),
		at(count(0)).gives(2),
		at(add(0, 5)).gives(7),
	)},
	{"cell/read", trace(
		at(count(3)).gives(1),
		at(read(3)).gives(1),
		at(read(4)).gives(0),
		at(read(3), count(3)).gives(1, 2),
	)},
	{"cell/refund", trace(
		at(add(0, 3)).gives(3),
		at(add(0, -1)).gives(2),
		at(add(0, -2)).gives(0),
		at(count(0)).gives(1),
	)},
	{"cell/not below zero", trace(
		at(add(0, 2), count(1)).gives(2, 1),
		at(add(0, -5)).gives(0),
		at(add(0, -1)).gives(0),
		at(count(0)).gives(1), // and not -4
		at(read(1)).gives(1),
	)},
	{"cell/refund of an absent cell in a present row", trace(
		at(count(0)).gives(1),
		at(add(1, -1)).gives(0),
		at(count(1)).gives(1),
	)},
	{"cell/hour, previous hour and day", trace(
		at(count(0), count(24)).gives(1, 1),
		at(count(0), count(24)).gives(2, 2),
		at(count(1), read(0), count(24)).gives(1, 2, 3),
		at(add(1, -1), add(24, -1)).gives(0, 2), // a denied hit's refund
		at(read(0), read(1), read(24)).gives(2, 0, 2),
	)},
	{"cell/order within a row", trace(
		at(count(9), count(2), count(5)).gives(1, 1, 1),
		at(add(5, 10), read(2), add(9, 100)).gives(11, 1, 101),
		at(read(2), read(9), read(5)).gives(1, 101, 11),
	)},
	{"cell/one slot twice in a row", trace(
		at(count(0), count(0)).gives(1, 2),
		at(read(0), count(0), read(0)).gives(2, 3, 3),
		at(count(0), add(0, -2)).gives(4, 2),
		at(count(0), count(1), add(0, 4)).gives(3, 1, 7),
	)},
	{"cell/large counts", trace(
		at(add(0, 1<<24-1)).gives(1<<24-1), // around the widths of compact layouts
		at(count(0)).gives(1<<24),
		at(add(0, 1<<31)).gives(1<<31+1<<24),
		at(add(0, 1<<45), count(1)).gives(1<<45+1<<31+1<<24, 1),
		at(add(0, -(1<<45+1<<31))).gives(1<<24),
		at(add(0, 1-1<<24), read(1)).gives(1, 1),
	)},
	{"cell/highest slot", trace(
		at(count(255), count(0)).gives(1, 1),
		at(read(255), count(0)).gives(1, 2),
	)},
}

// clockCases: cells with a Floor. A store without clocks must refuse them and
// leave the row as it was.
var clockCases = []testCase{
	{"clock/floor then add", func(e *env) {
		now := e.now.UnixMicro()
		const interval = 60_000_000
		r := e.clockRow("gcra", clock(0, now, interval))
		if !e.features.Clocks {
			e.refuses(r)
			e.want(e.clockRow("gcra", read(0)), 0)
			return
		}
		e.want(r, now+interval)
		e.want(r, now+2*interval) // the floor is below the cell now
		later := now + 10*interval
		e.want(e.clockRow("gcra", clock(0, later, interval)), later+interval)
		e.want(e.clockRow("gcra", add(0, -interval)), later) // refund
		e.want(e.clockRow("gcra", read(0)), later)
		e.want(e.clockRow("gcra", clock(0, now, 0)), later) // a clock set back changes nothing
	}},
	{"clock/floor alone creates", func(e *env) {
		r := e.clockRow("floor", clock(0, 1234, 0))
		if !e.features.Clocks {
			e.refuses(r)
			return
		}
		e.want(r, 1234)
		e.want(e.clockRow("floor", count(0)), 1235)
	}},
	{"clock/two clocks in one row", func(e *env) {
		r := e.clockRow("two", clock(0, 1<<50, 7), clock(1, 1<<49, 9))
		if !e.features.Clocks {
			e.refuses(r)
			return
		}
		e.want(r, 1<<50+7, 1<<49+9)
		e.want(r, 1<<50+14, 1<<49+18)
		e.want(e.clockRow("two", clock(0, 1<<51, 1), read(1), clock(0, 1, 1)), 1<<51+1, 1<<49+18, 1<<51+2)
	}},
}

// refuses asserts that the store cannot hold r and says so: an error that is
// both core.ErrUnsupported and proof that nothing was applied.
func (e *env) refuses(r core.Row) {
	e.tb.Helper()
	b := e.batch(r)
	err := e.st.Apply(e.context(), b)
	if !errors.Is(err, core.ErrUnsupported) {
		e.tb.Fatalf("cells %s: got error %v, want core.ErrUnsupported", cellsText(r.Cells), err)
	}
	if !errors.Is(b.Rows[0].Err, core.ErrUnsupported) {
		e.tb.Fatalf("cells %s: got Row.Err %v, want core.ErrUnsupported", cellsText(r.Cells), b.Rows[0].Err)
	}
	e.exists(r, false)
}

// absenceCases: what must not come into being, and when a record ends.
var absenceCases = []testCase{
	{"absence/a read creates nothing", func(e *env) {
		r := e.row("read", read(0), read(24))
		e.want(r, 0, 0)
		e.exists(r, false)
		e.want(e.row("read", count(0), read(24)), 1, 0)
		e.exists(r, true)
	}},
	{"absence/a refund creates nothing", func(e *env) {
		r := e.row("refund", add(0, -1), add(24, -1))
		e.want(r, 0, 0)
		e.exists(r, false)
		e.want(e.row("refund", count(0), count(24)), 1, 1) // and not 0
	}},
	{"absence/a refund with a read creates nothing", func(e *env) {
		r := e.row("mixed", read(0), add(1, -3))
		e.want(r, 0, 0)
		e.exists(r, false)
		e.want(e.row("mixed", count(1)), 1)
	}},
	{"absence/a record expires", func(e *env) {
		r := e.row("expiry", count(0), count(24))
		e.want(r, 1, 1)
		e.settle()
		e.expires(r)
		e.want(r, 2, 2)
		e.settle()
		e.expires(r)
	}},
	{"absence/a record of clocks expires later with each hit", func(e *env) {
		if !e.features.Clocks {
			return
		}
		r := e.clockRow("expiry", clock(0, e.now.UnixMicro(), 1))
		e.do(r)
		e.settle()
		e.expires(r)
		r.Until += 600
		e.do(r)
		e.settle()
		e.expires(r)
	}},
}

// expires asserts, where the harness can see it, that the record lives at least
// to r.Until and at most two minutes longer.
func (e *env) expires(r core.Row) {
	e.tb.Helper()
	if e.h.Expiry == nil {
		return
	}
	got, ok := e.h.Expiry(e.st, &r)
	if !ok {
		e.tb.Fatalf("the record of %s has no expiry", r.Key)
	}
	if late := got.Sub(time.Unix(r.Until, 0)); late < 0 || late > 2*time.Minute {
		e.tb.Fatalf("the record expires at %v, want %v or up to two minutes later", got, time.Unix(r.Until, 0))
	}
}
