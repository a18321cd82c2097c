package wrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

const (
	// share is the part of a bucket's remaining room that one instance may hold
	// unreported: 1/128. It bounds what n instances can admit too much together
	// to (n-1) x max(1, limit/128).
	share = 128
	// mostKnown bounds how many outer rows an instance remembers.
	mostKnown = 1 << 16
	// mostDue bounds how many due rows ride in another row's trip.
	mostDue = 8
)

// A Behind keeps the hits of outer buckets (a network, a site) in memory and
// reports many of them with one operation, since such rows are written by
// everybody and every write is paid for.
//
// A row takes part when its MaxAge and its cells' Ceiling are set. Its hits stay
// local while fewer than 1/128 of the room that is left are unreported and the
// oldest of them is younger than MaxAge; then the next hit reports them all in
// its own trip. In the last stretch of a bucket that is every hit, so that the
// limit holds. Refunds of such rows are local always. Due reports ride in the
// next trip of any other row, or go out with Settle; nothing runs by itself.
//
// What is lost: the unreported hits of an instance that dies, and those of a
// report whose outcome stays unknown (counted in Dropped). A report that was
// proven unsent is kept and sent again with the next one. So an outer bucket may
// admit at most (instances-1) x max(1, limit/128) navigations more than its
// limit, and what a dead instance had not reported.
//
// A Behind is safe for concurrent use.
type Behind struct {
	inner core.Store

	mu    sync.Mutex
	known map[rowID]*tally
	due   map[time.Duration]*dueQueue // by MaxAge, oldest first

	closed  atomic.Bool
	size    atomic.Int64 // of known, so that others need no lock
	local   atomic.Int64
	dropped atomic.Int64
}

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

// NewBehind returns a Behind over inner.
func NewBehind(inner core.Store) *Behind {
	return &Behind{inner: inner, known: map[rowID]*tally{}, due: map[time.Duration]*dueQueue{}}
}

// Apply answers coalesced rows from memory where it may, and sends the rest.
func (s *Behind) Apply(ctx context.Context, b *core.Batch) error {
	work := s.size.Load() > 0
	for i := range b.Rows {
		work = work || coalesces(&b.Rows[i])
	}
	if !work {
		return s.inner.Apply(ctx, b)
	}
	return s.apply(ctx, b)
}

// coalesces reports whether a row takes part. Clocks never do: their order with
// other instances' hits is their meaning.
func coalesces(r *core.Row) bool {
	if r.MaxAge <= 0 {
		return false
	}
	for i := range r.Cells {
		if r.Cells[i].Floor != 0 {
			return false
		}
	}
	return true
}

// A sending is one row of the trip that is really made.
type sending struct {
	from      int // its place in the caller's batch; -1 = a report riding along
	id        rowID
	coalesced bool
	tally     *tally // not nil: the row carries this tally's unsent hits
}

func (s *Behind) apply(ctx context.Context, b *core.Batch) error {
	if err := ctx.Err(); err != nil {
		return refuse(b, fmt.Errorf("store: %w: %w", err, core.ErrNotApplied))
	}
	if s.closed.Load() {
		return refuse(b, fmt.Errorf("store: closed: %w", core.ErrNotApplied))
	}
	out := core.Batch{Now: b.Now}
	var sent []sending
	s.mu.Lock()
	for i := range b.Rows {
		r := &b.Rows[i]
		r.Err = nil
		if !coalesces(r) {
			out.Rows = append(out.Rows, *r)
			sent = append(sent, sending{from: i})
			continue
		}
		id := rowID{r.Key, r.Plan, r.Epoch}
		t := s.known[id]
		if t != nil && s.answer(id, t, r, b.Now) {
			s.local.Add(1)
			continue
		}
		row := *r
		row.Cells = append([]core.Cell(nil), r.Cells...)
		if t != nil {
			row.Cells = t.takeAlong(row.Cells)
		}
		out.Rows = append(out.Rows, row)
		sent = append(sent, sending{from: i, id: id, coalesced: true, tally: t})
	}
	if len(out.Rows) > 0 {
		s.addDue(&out, &sent, b.Now)
	}
	s.mu.Unlock()
	if len(out.Rows) == 0 {
		return nil
	}
	_ = s.inner.Apply(ctx, &out) // every row carries its own error
	s.mu.Lock()
	defer s.mu.Unlock()
	var first error
	for i := range sent {
		r := &out.Rows[i]
		if sent[i].coalesced {
			s.learn(&sent[i], r, b)
		}
		if sent[i].from < 0 {
			continue
		}
		to := &b.Rows[sent[i].from]
		to.Err = r.Err
		for j := range to.Cells {
			to.Cells[j].Value = r.Cells[j].Value
		}
		if first == nil {
			first = r.Err
		}
	}
	return first
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
		if now.Unix() >= t.until || len(s.known) >= mostKnown && t.since.IsZero() {
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

// Settle reports what is due and does the inner store's leftover work.
func (s *Behind) Settle(ctx context.Context) error { return s.flush(ctx, time.Now(), false) }

// Flush reports everything unsent, whatever its age: at the end of a process.
func (s *Behind) Flush(ctx context.Context) error { return s.flush(ctx, time.Now(), true) }

func (s *Behind) flush(ctx context.Context, now time.Time, all bool) error {
	out := core.Batch{Now: now}
	var sent []sending
	s.mu.Lock()
	if all {
		for id, t := range s.known {
			if row, ok := t.report(id, now); ok {
				out.Rows = append(out.Rows, row)
				sent = append(sent, sending{from: -1, id: id, coalesced: true, tally: t})
			}
		}
	} else {
		s.addDue(&out, &sent, now)
	}
	s.mu.Unlock()
	var err error
	if len(out.Rows) > 0 {
		err = s.inner.Apply(ctx, &out)
		s.mu.Lock()
		for i := range sent {
			s.learn(&sent[i], &out.Rows[i], &out)
		}
		s.mu.Unlock()
	}
	return errors.Join(err, settle(ctx, s.inner))
}

// Counts returns how many rows were answered from memory, how many outer rows
// are known, and how many hits were dropped because the outcome of their report
// stayed unknown.
func (s *Behind) Counts() (local, known, dropped int64) {
	return s.local.Load(), s.size.Load(), s.dropped.Load()
}

// Features are the inner store's.
func (s *Behind) Features() core.Features { return features(s.inner) }

// Close reports what is unsent, within a second, and closes the inner store.
func (s *Behind) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.closed.Swap(true) {
		return s.inner.Close()
	}
	err := s.Flush(ctx)
	return errors.Join(err, s.inner.Close())
}

var (
	_ core.Store    = (*Behind)(nil)
	_ core.Settler  = (*Behind)(nil)
	_ core.Featurer = (*Behind)(nil)
)
