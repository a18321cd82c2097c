package core

import (
	"context"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// mostTakenBack bounds the cells of one row of a lift: some stores need a
// condition for each, and have a bound on those.
const mostTakenBack = 32

// Lift ends a refusal: the counters of the windows that hold now, and of those
// that a decision still reads beside them, are set back to nothing, and a
// suspension is taken out. Hits that arrive meanwhile are kept. Other instances,
// which remember refusals so that repeats cost nothing, hear of it within
// [Options].Control of theirs; this one forgets at once. Anchor is as for
// [Limiter.Suspend]. A record in the last minute of its life is left alone.
//
// It costs three trips: what there is, taking it back, and the note to the
// instances. The error is the store's; the call may be repeated.
func (l *Limiter) Lift(ctx context.Context, k Key, anchor, t time.Time) error {
	if err := l.setBack(ctx, k, anchor, t, false); err != nil {
		return err
	}
	l.memory.forget(k)
	return l.announceLift(ctx, t)
}

// setBack takes away what the counters of a key hold, or only its suspension.
func (l *Limiter) setBack(ctx context.Context, k Key, anchor, t time.Time, suspensionOnly bool) error {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.reset()
	now, from := t.UnixMicro(), anchorMicros(anchor)
	for _, g := range l.pages.groupsOf(k) {
		sc.addSteps(g, k, k.Kind.Own(), 1, now, from)
	}
	for i := range sc.steps {
		l.append(sc, &sc.steps[i], now, false)
	}
	if len(sc.rows) == 0 {
		return nil
	}
	for i := range sc.rows {
		sc.rows[i].MaxAge = 0 // the store's own value, not what this instance has heard of it
	}
	b := sc.trip(0, t)
	if err := l.store.Apply(ctx, b); err != nil {
		return err
	}
	later, err := l.laterMarks(ctx, k, b.Rows, from, t)
	if err != nil {
		return err
	}
	back := takeBack(append(b.Rows, later...), now, suspensionOnly)
	if len(back) == 0 {
		return nil
	}
	return l.store.Apply(ctx, &Batch{Now: t, Rows: back})
}

// laterMarks reads the windows to come that a suspension found in got has marked.
func (l *Limiter) laterMarks(ctx context.Context, k Key, got []Row, anchor int64, t time.Time) ([]Row, error) {
	end := int64(0)
	for i := range got {
		for _, c := range got[i].Cells {
			if clockRow(&got[i]) {
				continue
			}
			_, until := suspended(c.Value)
			end = max(end, until)
		}
	}
	g, bucket, ok := l.pages.refuser(k)
	if now := t.UnixMicro(); !ok || end <= now {
		return nil, nil
	}
	b := Batch{Now: t}
	for _, m := range marks(g, bucket, k, t.UnixMicro(), end, anchor) {
		b.Rows = append(b.Rows, m.row)
	}
	if len(b.Rows) < 2 {
		return nil, nil
	}
	b.Rows = b.Rows[1:] // the window that holds now has been read
	err := l.store.Apply(ctx, &b)
	return b.Rows, err
}

// clockRow reports whether a row holds clocks; those have no epoch.
func clockRow(r *Row) bool { return r.Epoch == 0 && r.Start == 0 }

// takeBack returns the rows that undo what got holds. A counter that was read
// twice is taken back once.
func takeBack(got []Row, now int64, suspensionOnly bool) (out []Row) {
	type cellID struct {
		plan  uint32
		epoch int64
		slot  uint16
	}
	done := map[cellID]bool{}
	for i := range got {
		r := got[i]
		if r.Until-now/1_000_000 < noRefund {
			continue
		}
		var cells []Cell
		for _, c := range r.Cells {
			id := cellID{r.Plan, r.Epoch, c.Slot}
			take := c.Value
			if clockRow(&r) {
				take = c.Value - now
			}
			if suspensionOnly {
				hits, until := suspended(c.Value)
				if take = c.Value - hits; clockRow(&r) || until == 0 {
					take = 0
				}
			}
			if take <= 0 || done[id] {
				continue
			}
			done[id] = true
			cells = append(cells, Cell{Slot: c.Slot, Until: c.Until, Add: -take})
		}
		for len(cells) > 0 {
			n := min(len(cells), mostTakenBack)
			part := r
			part.Cells, part.Err, part.MaxAge = cells[:n:n], nil, 0
			out = append(out, part)
			cells = cells[n:]
		}
	}
	return out
}

// controlKey is the one record that is about all keys. Only the site's own
// buckets have keys of kind Global, and those have no ID.
var controlKey = Key{Kind: rows.Global, ID: "control"}
