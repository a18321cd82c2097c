package redis

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// A Store keeps rows in one Redis or Valkey server or cluster. It is safe for
// concurrent use.
type Store struct {
	cfg    Config
	nodes  *nodes
	stats  stats
	closed atomic.Bool
}

var (
	_ core.Store    = (*Store)(nil)
	_ core.Settler  = (*Store)(nil)
	_ core.Featurer = (*Store)(nil)
)

// New returns a store for c without any network: the first call connects. It
// fails only if c.Validate does.
func New(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: c.withDefaults()}
	s.nodes = newNodes(s.cfg, &s.stats)
	return s, nil
}

// Open returns a store and connects to it, within c.ConnectTimeout and ctx. If
// c is invalid, the store is nil. Any other error is that of [Store.Probe], and
// the store beside it is usable: it connects as soon as the server can be
// reached, so a caller that must start without its store logs the error and goes
// on.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout)
	defer cancel()
	return s, s.Probe(ctx)
}

// Features implements core.Featurer: all algorithms, shared by all instances.
func (s *Store) Features() core.Features {
	return core.Features{Name: "redis", Shared: true, Clocks: true, RetainsRows: true}
}

// Commands returns the number of commands sent so far to change or read rows
// and to set expiries: what a server billed by command would bill.
func (s *Store) Commands() int64 { return s.stats.commands.Load() }

// Trips returns the number of requests sent so far, each one round trip.
func (s *Store) Trips() int64 { return s.stats.trips.Load() }

// Due reports whether Settle has anything to send.
func (s *Store) Due() bool {
	if l := s.nodes.only; l != nil {
		return l.expiries.Waiting() > 0
	}
	waiting, _ := s.Pending()
	return waiting > 0
}

// Pending returns the number of expiries that wait for [Store.Settle] or for the
// next Apply, and how many were given up because too many waited or the server
// refused them several times.
func (s *Store) Pending() (waiting int, dropped int64) {
	for _, l := range s.nodes.all() {
		w, d := l.expiries.Len()
		waiting, dropped = waiting+w, dropped+d
	}
	return waiting, dropped
}

// Apply implements core.Store. The batch's commands go out together, in
// a cluster per node and in parallel; expiries that wait for the same server
// ride along. It waits until ctx is done or Config.Timeout has passed. A context
// that is cancelled without a deadline is heard before the request is written;
// afterwards the reply is awaited, since the count has been charged.
func (s *Store) Apply(ctx context.Context, b *core.Batch) error {
	if s.closed.Load() {
		return failAll(b, notApplied(errClosed))
	}
	if err := s.nodes.ready(ctx); err != nil {
		return failAll(b, notApplied(err))
	}
	var tripsBuf [4]*request
	var namesBuf [4]string
	trips, names := tripsBuf[:0], namesBuf[:0]
	for i := range b.Rows {
		r := &b.Rows[i]
		r.Err = nil
		name := s.cfg.Namer.Name(r)
		names = append(names, name)
		if len(r.Cells) == 0 {
			continue
		}
		l := s.nodes.lane(name)
		if l == nil {
			r.Err = notApplied(errUnserved)
			s.nodes.suspect()
			continue
		}
		trips = board(trips, l, i, name, r)
	}
	run(ctx, trips)

	var again []*request
	for _, t := range trips {
		again = s.receive(t, b, names, again, true)
	}
	if len(again) > 0 {
		// The slot has moved, and the refusal proves that nothing was applied:
		// once more to where it is now. A second refusal is the row's error.
		run(ctx, again)
		for _, t := range again {
			s.receive(t, b, names, nil, false)
		}
	}
	for i := range b.Rows {
		if err := b.Rows[i].Err; err != nil {
			return err
		}
	}
	return nil
}

// run sends the requests in parallel and waits for all of them. Expiries that
// wait for the same server ride along.
func run(ctx context.Context, trips []*request) {
	for _, t := range trips {
		for _, e := range t.lane.expiries.Take(bitfield.MaxRide) {
			t.addExpiry(e)
		}
	}
	if len(trips) == 1 {
		trips[0].run(ctx)
		return
	}
	var wg sync.WaitGroup
	for _, t := range trips {
		wg.Go(func() { t.run(ctx) })
	}
	wg.Wait()
}

// receive reads the replies of a request into its rows. Rows whose slot has moved
// on are boarded again, if they may be: they are appended to again.
func (s *Store) receive(t *request, b *core.Batch, names []string, again []*request, may bool) []*request {
	for k, i := range t.rows {
		r := &b.Rows[i]
		if t.err != nil {
			r.Err = t.err
			s.nodes.failed(t.err)
			continue
		}
		var buf [8]int64
		numbers, err := t.integers(buf[:0], k+t.lead)
		if err != nil {
			r.Err = classify(err)
			if l, ask := s.nodes.redirect(err); l != nil && may {
				again = boardAgain(again, l, ask, i, names[i], r)
				continue
			}
			s.nodes.failed(err)
			continue
		}
		previous, err := bitfield.Decode(r, numbers)
		if err != nil {
			r.Err = unknown(err)
			continue
		}
		r.Err = nil
		t.lane.expiries.Note(names[i], r, previous, int64(s.cfg.Repair))
	}
	return again
}

// failAll gives every row of b the same error.
func failAll(b *core.Batch, err error) error {
	for i := range b.Rows {
		b.Rows[i].Err = err
	}
	return err
}

// Settle implements core.Settler: it sends the EXPIREATs that are due, in one
// round trip, and waits for them. Those that fail are kept for the next Settle
// or Apply. It returns the first error.
func (s *Store) Settle(ctx context.Context) error {
	var trips []*request
	for _, l := range s.nodes.all() {
		list := l.expiries.Take(bitfield.MaxSettle)
		if len(list) == 0 {
			continue
		}
		t := newRequest(l)
		for _, e := range list {
			t.addExpiry(e)
		}
		trips = append(trips, t)
	}
	if len(trips) == 0 {
		return nil
	}
	run(ctx, trips)
	for _, t := range trips {
		if t.err != nil {
			s.nodes.failed(t.err)
			return t.err
		}
		for i := range t.replies {
			if err := t.replies[i].Error(); err != nil {
				s.nodes.redirect(err)
				return classify(err)
			}
		}
	}
	return nil
}

// Close sends the expiries that are still due, if the server answers within
// Config.Timeout, and closes all connections. Apply afterwards returns an error
// that wraps core.ErrNotApplied.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.Settle(context.Background())
	for _, l := range s.nodes.all() {
		l.close()
	}
	return err
}
