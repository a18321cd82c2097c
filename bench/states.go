package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// The states of a navigation, by what it finds in the store.
const (
	StateFirst   = "first"              // the client's first of the day
	StateSteady  = "steady"             // any later one
	StateEdge    = "epoch-first-hour"   // a later one within an hour after midnight
	StateDenied  = "denied"             // the one that goes over a limit
	StateRepeat  = "denied-repeat"      // every further one
	StateEven2   = "outer-even-2"       // steady, and the /24 is limited as well; two an hour from it, evenly spread
	StateOuter2  = "outer-coalesced-2"  // the same in sessions of four pages: N navigations an hour from each /24
	StateOuter20 = "outer-coalesced-20" //
	StateOuter80 = "outer-coalesced-80" //
)

const (
	// wide is a limit that no measurement reaches.
	wide = 1 << 40
	// tight is the limit of the states that go over it. A store that sets the
	// expiry by an operation of its own may repair one that was lost while a
	// count is at most 3; it is higher, so that counts of operations are exact.
	tight = 5
)

// states plays n navigations in each state, one at a time.
func (g *rig) states(ctx context.Context, n int) ([]State, error) {
	free, err := g.limiter(wide, wide, nil)
	if err != nil {
		return nil, err
	}
	strict, err := g.limiter(tight, wide, nil)
	if err != nil {
		return nil, err
	}
	midnight := g.base.Add(12*time.Hour + 10*time.Minute)
	var plays []play
	add := func(p play) { plays = append(plays, p) }
	lead := func(l *core.Limiter, set, times int, at time.Time) {
		for k := range times {
			add(play{"", "", l, set, at.Add(time.Duration(k) * time.Minute), core.Admit})
		}
	}
	add(play{StateFirst, "a client's first navigation of the day; the record is made", free, 0, g.base, core.Admit})
	lead(free, 0, 2, g.base.Add(time.Minute))
	add(play{StateSteady, "a later one of the same day", free, 0, g.base.Add(4 * time.Minute), core.Admit})
	lead(free, 2, 3, midnight)
	add(play{StateEdge, "a later one in the hour after midnight: the record of the day before is read too", free, 2, midnight.Add(4 * time.Minute), core.Admit})
	lead(strict, 3, tight, g.base)
	add(play{StateDenied, "the navigation that goes over the limit: charged, and given back", strict, 3, g.base.Add(6 * time.Minute), core.Refuse})
	add(play{StateRepeat, "a further one of a refused client: answered from this instance's memory", strict, 3, g.base.Add(7 * time.Minute), core.Refuse})
	var out []State
	for _, p := range plays {
		s, err := g.play(ctx, p, n)
		if err != nil {
			return nil, err
		}
		if p.name != "" {
			out = append(out, s)
		}
	}
	networks, hours := max(1, n/16), min(4, max(2, n/64))
	for i, o := range []outer{
		{StateEven2, 2, 1, networks, hours}, {StateOuter2, 2, 4, networks, hours}, {StateOuter20, 20, 4, networks, hours}, {StateOuter80, 80, 4, networks, hours},
	} {
		s, err := g.outer(ctx, o, 4+i)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// A play is one navigation of each client of a set. Without a name it prepares the
// next one.
type play struct {
	name, meaning string
	limiter       *core.Limiter
	set           int
	at            time.Time
	want          core.Outcome
}

func (g *rig) play(ctx context.Context, p play, n int) (State, error) {
	t := g.tally(p.name, p.meaning)
	v := newVisit()
	seen := make(map[core.Key]bool, n)
	for i := range n {
		// Time moves within a play too.
		d, err := t.decide(ctx, p.limiter, v.at(p.set, i, p.at.Add(time.Duration(i)*time.Millisecond)))
		if err != nil {
			return State{}, err
		}
		if d.Outcome != p.want {
			return State{}, fmt.Errorf("bench: state %s: %s (%s), want %s", p.name, d.Outcome, d.Reason, p.want)
		}
		seen[d.Key] = true
	}
	if len(seen) != n {
		return State{}, fmt.Errorf("bench: state %s: %d distinct keys, want %d", p.name, len(seen), n)
	}
	return t.state(), nil
}

const (
	outerClients = 4 // of each network
	outerLimit   = 2000
	outerFlush   = 10 * time.Minute // how long the bucket may leave hits unreported, if not for 1/128 of the room left
	outerThink   = 30 * time.Second // between two pages of a session
)

// An outer is traffic of limited networks: sessions of so many pages, evenly
// spread, so many pages an hour from each network.
type outer struct {
	name             string
	perHour, session int
	networks, hours  int
}

// outer plays steady navigations from networks that have a bucket of their own,
// in order of time.
func (g *rig) outer(ctx context.Context, o outer, set int) (State, error) {
	limiter, err := g.limiter(wide, wide, &core.Bucket{
		Name: "network-day", Key: rows.Network, Algorithm: core.FixedWindow,
		Limit: outerLimit, Window: 24 * time.Hour, FlushEvery: outerFlush,
	})
	if err != nil {
		return State{}, err
	}
	type hit struct {
		at              time.Duration
		network, client int
	}
	var hits []hit
	every := time.Duration(o.session) * time.Hour / time.Duration(o.perHour)
	for network := range o.networks {
		// Networks begin apart from one another, as visitors do.
		begin := every * time.Duration(network) / time.Duration(o.networks)
		for k := range o.perHour * o.hours {
			session := k / o.session
			hits = append(hits, hit{begin + time.Duration(session)*every + time.Duration(k%o.session)*outerThink, network, session % outerClients})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.at, b.at) })

	v := newVisit()
	begin := g.base.Add(-11 * time.Hour) // one o'clock: past the epoch's first hour
	warm := g.tally(o.name, "")
	for k := range 4 {
		for i := range o.networks * outerClients {
			if _, err := warm.decide(ctx, limiter, v.at(set, i/outerClients<<8|i%outerClients, begin.Add(time.Duration(k)*time.Second))); err != nil {
				return State{}, err
			}
		}
	}
	begin = begin.Add(time.Hour)
	t := g.tally(o.name, fmt.Sprintf("a later one, with a coalesced bucket of the /24 (up to %s); %d pages an hour from each /24, in sessions of %d", outerFlush, o.perHour, o.session))
	for _, h := range hits {
		d, err := t.decide(ctx, limiter, v.at(set, h.network<<8|h.client, begin.Add(h.at)))
		if err != nil {
			return State{}, err
		}
		if d.Outcome != core.Admit || len(d.States) != 3 {
			return State{}, fmt.Errorf("bench: state %s: %s (%s) with %d buckets", o.name, d.Outcome, d.Reason, len(d.States))
		}
	}
	return t.state(), nil
}

// A tally adds up what a number of decisions cost.
type tally struct {
	rig           *rig
	name, meaning string
	before        counts
	out, in       int64
	n             int64
	times         histogram
}

func (g *rig) tally(name, meaning string) *tally {
	t := &tally{rig: g, name: name, meaning: meaning, before: g.count()}
	if g.wire != nil {
		t.out, t.in = g.wire.out.Load(), g.wire.in.Load()
	}
	return t
}

// decide makes one decision and then settles, as an adapter does beside the
// origin's answer. Only the decision is timed: it is what the visitor waits for.
func (t *tally) decide(ctx context.Context, l *core.Limiter, r *core.Request) (core.Decision, error) {
	began := time.Now()
	d := l.Decide(ctx, r)
	t.times.add(time.Since(began))
	t.n++
	if d.Err != nil {
		return d, fmt.Errorf("bench: state %s: %w", t.name, d.Err)
	}
	if err := l.Settle(ctx); err != nil {
		return d, fmt.Errorf("bench: state %s: settling: %w", t.name, err)
	}
	return d, nil
}

func (t *tally) state() State {
	now := t.rig.count()
	s := State{
		Name: t.name, Meaning: t.meaning, Navigations: t.n,
		Writes: now.writes - t.before.writes, Reads: now.reads - t.before.reads,
		Expiries: now.expiries - t.before.expiries, Trips: now.trips - t.before.trips,
		Latency: t.times.latency(),
	}
	if f := t.rig.wire; f != nil {
		out, in := f.out.Load()-t.out, f.in.Load()-t.in
		s.BytesOut, s.BytesIn = &out, &in
	}
	return s
}
