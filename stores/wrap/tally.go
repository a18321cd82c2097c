package wrap

import (
	"errors"
	"time"

	"github.com/stilehq/stile/core"
)

// rowID is what makes a row the same record.
type rowID struct {
	key   core.Key
	plan  uint32
	epoch int64
}

// A tally is what one instance knows of one outer row.
type tally struct {
	cells  []tallyCell
	since  time.Time // of the oldest unreported hit; zero = nothing unreported
	maxAge time.Duration
	start  int64
	until  int64
}

type tallyCell struct {
	slot     uint16
	until    int64
	ceiling  int64
	value    int64 // as the store last said
	seen     bool  // value is the store's
	unsent   int64 // local hits, less local refunds
	underway int64 // in trips that have not come back
}

// answer performs a row on the tally alone, if the rules allow it. Pure refunds
// always are: what they give back is in this tally, or in a report to come.
func (s *Behind) answer(id rowID, t *tally, r *core.Row, now time.Time) bool {
	refund := r.Writes() && !r.Creates()
	for i := range r.Cells {
		c := &r.Cells[i]
		k := t.cell(c.Slot)
		if k == nil || !k.seen {
			if refund {
				continue
			}
			return false
		}
		if c.Add > 0 {
			estimate := k.value + k.underway + k.unsent
			if c.Ceiling <= 0 || (k.unsent+c.Add)*share > c.Ceiling-estimate {
				return false
			}
		}
	}
	if r.Creates() && !t.since.IsZero() && now.Sub(t.since) >= t.maxAge {
		return false
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		k := t.ensure(c)
		k.unsent += c.Add
		if k.seen {
			k.unsent = max(k.unsent, -k.value-k.underway) // not below 0
		}
		c.Value = max(0, k.value+k.underway+k.unsent)
	}
	if r.Writes() {
		s.pending(id, t, now)
	}
	return true
}

// pending notes that a tally has something to report from now on.
func (s *Behind) pending(id rowID, t *tally, now time.Time) {
	if !t.since.IsZero() {
		return
	}
	t.since = now
	q := s.due[t.maxAge]
	if q == nil {
		q = &dueQueue{}
		s.due[t.maxAge] = q
	}
	q.push(id, now)
}

// ensure returns the tally's cell for c, a new one if need be.
func (t *tally) ensure(c *core.Cell) *tallyCell {
	if k := t.cell(c.Slot); k != nil {
		return k
	}
	t.cells = append(t.cells, tallyCell{slot: c.Slot, until: c.Until})
	return &t.cells[len(t.cells)-1]
}

func (t *tally) cell(slot uint16) *tallyCell {
	for i := range t.cells {
		if t.cells[i].slot == slot {
			return &t.cells[i]
		}
	}
	return nil
}

// takeAlong makes a row that is sent carry everything the tally has unsent, of
// windows that the row only reads or does not have too.
func (t *tally) takeAlong(cells []core.Cell) []core.Cell {
	for i := range cells {
		t.ensure(&cells[i])
	}
	for i := range t.cells {
		k := &t.cells[i]
		at := -1
		for j := range cells {
			if cells[j].Slot == k.slot {
				at = j
				break
			}
		}
		if at < 0 {
			if k.unsent == 0 {
				continue
			}
			cells = append(cells, core.Cell{Slot: k.slot, Until: k.until, Ceiling: k.ceiling})
			at = len(cells) - 1
		}
		cells[at].Add += k.unsent
		k.unsent = 0
		k.underway += cells[at].Add
	}
	t.since = time.Time{}
	return cells
}

// addDue lets rows whose oldest unreported hit is too old ride along.
func (s *Behind) addDue(out *core.Batch, sent *[]sending, now time.Time) {
	added := 0
	for age, q := range s.due {
		for added < mostDue {
			id, ok := q.pop(now.Add(-age))
			if !ok {
				break
			}
			t := s.known[id.row]
			if t == nil || t.since.IsZero() || t.since.After(id.at) {
				continue // reported meanwhile
			}
			if row, ok := t.report(id.row, now); ok {
				out.Rows = append(out.Rows, row)
				*sent = append(*sent, sending{from: -1, id: id.row, coalesced: true, tally: t})
				added++
			}
		}
	}
}

// idle reports whether a tally can be forgotten: nothing is unsent, and nothing is
// underway that may come back unsent.
func (t *tally) idle() bool {
	for i := range t.cells {
		if t.cells[i].unsent != 0 || t.cells[i].underway != 0 {
			return false
		}
	}
	return true
}

// report returns the row that tells the store of everything unsent.
func (t *tally) report(id rowID, now time.Time) (core.Row, bool) {
	row := core.Row{Key: id.key, Plan: id.plan, Epoch: id.epoch, Start: t.start, Until: t.until, MaxAge: t.maxAge}
	t.since = time.Time{}
	if now.Unix() >= t.until {
		return row, false // nobody will ask for it
	}
	for i := range t.cells {
		if k := &t.cells[i]; k.unsent != 0 {
			row.Cells = append(row.Cells, core.Cell{Slot: k.slot, Until: k.until, Add: k.unsent, Ceiling: k.ceiling})
			k.underway += k.unsent
			k.unsent = 0
		}
	}
	return row, len(row.Cells) > 0
}

// learn takes in what the store said of a coalesced row, or that it said
// nothing.
func (s *Behind) learn(sd *sending, r *core.Row, b *core.Batch) {
	if r.Err != nil {
		s.unlearn(sd, r, b)
		return
	}
	t := s.known[sd.id]
	if t == nil {
		if t = s.remember(sd.id, r, b.Now); t == nil {
			return
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		k := t.ensure(c)
		if sd.tally == t {
			k.underway -= c.Add
		}
		if c.Add < 0 || !k.seen {
			k.value, k.seen = c.Value, true
		} else {
			// Answers may arrive out of order. Too high a value costs a trip, too
			// low a one would admit.
			k.value = max(k.value, c.Value)
		}
		if c.Ceiling > 0 {
			k.ceiling = c.Ceiling
		}
	}
}

// unlearn puts the hits of a report that failed back, if it was proven unsent.
// The caller's own hit, which rode with it, is the caller's to account for.
func (s *Behind) unlearn(sd *sending, r *core.Row, b *core.Batch) {
	t := sd.tally
	if t == nil {
		return
	}
	again := errors.Is(r.Err, core.ErrNotApplied)
	for i := range r.Cells {
		c := &r.Cells[i]
		k := t.cell(c.Slot)
		if k == nil || c.Add == 0 {
			continue
		}
		k.underway -= c.Add
		extra := c.Add
		if sd.from >= 0 {
			if own := b.Rows[sd.from].Cells; i < len(own) {
				extra -= own[i].Add
			}
		}
		if again {
			k.unsent += extra
			if extra != 0 {
				s.pending(sd.id, t, b.Now)
			}
		} else {
			s.dropped.Add(max(extra, 0))
		}
	}
}

// remember makes room for a new tally: two old ones are looked at each time, and
// what is over or has nothing to report goes.
func (s *Behind) remember(id rowID, r *core.Row, now time.Time) *tally {
	looked := 0
	for old, t := range s.known {
		if now.Unix() >= t.until || len(s.known) >= mostKnown && t.idle() {
			delete(s.known, old)
		}
		if looked++; looked == 2 {
			break
		}
	}
	if len(s.known) >= mostKnown {
		return nil // the row is then sent hit by hit, which is only dearer
	}
	t := &tally{maxAge: r.MaxAge, start: r.Start, until: r.Until}
	s.known[id] = t
	s.size.Store(int64(len(s.known)))
	return t
}
