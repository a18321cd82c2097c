package core

import (
	"slices"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// A frame is what a hit at any instant of [from, until) touches in a group of
// window counters: the same cells for everyone. It is computed when a window
// ends, not for each hit.
type frame struct {
	from, until int64 // Unix microseconds
	stages      []stage
}

// A stage is one row that is written, and the rows of other epochs that are
// only read beside it. A group has one stage, but for the minutes in which a
// window of an earlier epoch has not ended yet: then there are two, the earlier
// epoch first.
type stage struct {
	rows    []rows.Row // templates without key; rows[0] is the one written
	buckets []placed
}

// placed says where a bucket's values are found in the rows of its stage.
type placed struct {
	index   int // of the bucket in the group
	current rows.Window
	refs    []cellRef // oldest window first; the last one is the current window
}

type cellRef struct{ row, cell int }

// frameAt returns the frame for now (Unix microseconds). Anchored groups have
// one for each visitor, which is not kept.
func (g *group) frameAt(now, anchor int64) *frame {
	if g.anchored {
		if now < anchor {
			now = anchor // a cookie from the future of a clock that runs behind
		}
		f := g.buildFrame(now - anchor)
		f.shift(anchor)
		return f
	}
	if f := g.frame.Load(); f != nil && now >= f.from && now < f.until {
		return f
	}
	f := g.buildFrame(now)
	g.frame.Store(f)
	return f
}

func (g *group) buildFrame(now int64) *frame {
	f := &frame{from: now, until: 1<<62 - 1}
	first := true
	type at struct {
		index int
		cur   rows.Window
		epoch int64
	}
	var current []at
	for i := range g.buckets {
		w := g.layout.Current(i, now)
		if first || w.Start > f.from {
			f.from = w.Start
		}
		first = false
		f.until = min(f.until, w.End)
		current = append(current, at{i, w, g.layout.Place(i, w.N).Epoch})
	}
	slices.SortStableFunc(current, func(a, b at) int { return int(a.epoch - b.epoch) })
	for len(current) > 0 {
		n := 1
		for n < len(current) && current[n].epoch == current[0].epoch {
			n++
		}
		var s stage
		for _, c := range current[:n] {
			g.placeCurrent(&s, c.index, c.cur)
		}
		for _, c := range current[:n] {
			g.placeHistory(&s, c.index, c.cur)
		}
		f.stages = append(f.stages, s)
		current = current[n:]
	}
	return f
}

// placeCurrent adds the cell that a hit of the bucket writes.
func (g *group) placeCurrent(s *stage, index int, cur rows.Window) {
	b := placed{index: index, current: cur, refs: make([]cellRef, g.layout.History(index)+1)}
	b.refs[len(b.refs)-1] = s.add(g.layout, g.layout.Place(index, cur.N), 1)
	s.buckets = append(s.buckets, b)
}

// placeHistory adds the past windows that the bucket reads.
func (g *group) placeHistory(s *stage, index int, cur rows.Window) {
	at := slices.IndexFunc(s.buckets, func(b placed) bool { return b.index == index })
	refs := s.buckets[at].refs
	for back := len(refs) - 1; back >= 1; back-- {
		refs[len(refs)-1-back] = s.add(g.layout, g.layout.Place(index, cur.N-int64(back)), 0)
	}
}

// add puts one cell into the row of its epoch and returns where.
func (s *stage) add(l *rows.Layout, p rows.Place, add int64) cellRef {
	at := slices.IndexFunc(s.rows, func(r rows.Row) bool { return r.Epoch == p.Epoch })
	if at < 0 {
		at = len(s.rows)
		s.rows = append(s.rows, rows.Row{Plan: l.Plan, Epoch: p.Epoch, Start: p.Start, Until: p.Until})
	}
	r := &s.rows[at]
	r.Cells = append(r.Cells, rows.Cell{Slot: p.Slot, Until: p.Expiry, Add: add})
	return cellRef{at, len(r.Cells) - 1}
}

// shift moves a frame that was computed from 0 to begin at anchor.
func (f *frame) shift(anchor int64) {
	seconds := anchor / int64(time.Second/time.Microsecond)
	f.from += anchor
	f.until += anchor
	for i := range f.stages {
		s := &f.stages[i]
		for j := range s.rows {
			r := &s.rows[j]
			r.Start += seconds
			r.Until += seconds + 1
			for k := range r.Cells {
				r.Cells[k].Until += seconds + 1
			}
		}
		for j := range s.buckets {
			s.buckets[j].current.Start += anchor
			s.buckets[j].current.End += anchor
		}
	}
}
