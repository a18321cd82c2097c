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
// limit, and what a dead instance had not reported; one instance's share more
// where so many of its own hits overtake a report on its way that they fill the
// bucket's last 128 places before it arrives.
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

// Settle reports what is due and does the inner store's leftover work.
func (s *Behind) Settle(ctx context.Context) error {
	if s.size.Load() == 0 {
		return settle(ctx, s.inner)
	}
	return s.flush(ctx, time.Now(), false)
}

// Flush reports everything unsent, whatever its age: at the end of a process. An
// error that wraps core.ErrNotApplied proves that the report was not sent, and
// what it held is kept; after any other error it is dropped.
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
	if len(out.Rows) > 0 {
		err := s.inner.Apply(ctx, &out)
		s.mu.Lock()
		for i := range sent {
			s.learn(&sent[i], &out.Rows[i], &out)
		}
		s.mu.Unlock()
		if err != nil {
			// The inner store's leftovers wait for a better time. Were they tried
			// and refused now, that error would seem to prove this report unsent.
			return err
		}
	}
	return settle(ctx, s.inner)
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
