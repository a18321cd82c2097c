package core

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// noRefund is the last stretch of a record's life in which nothing is given
// back: the record may expire on the way, and a refund must not create it.
const noRefund = 60 // seconds

// A party is everything one request may be charged to.
type party struct {
	own      Key
	anchor   int64        // Unix microseconds: a cookie's issue; 0 = none
	multiply int64        // of own limits
	network  netip.Prefix // around the client; invalid = unidentified
	asn      uint32
	request  *Request
	proven   bool // the peer may speak for others: its header keys count
}

// outerKey returns the key of an outer group; ok is false when it does not
// apply to this request.
func (p *party) outerKey(g *group, id func(uint32) string) (Key, bool) {
	switch g.kind {
	case rows.Network:
		return Key{Kind: rows.Network, Net: p.network}, p.network.IsValid()
	case rows.ASN:
		if p.asn == 0 {
			return Key{}, false
		}
		return Key{Kind: rows.ASN, ID: id(p.asn)}, true
	case rows.Header:
		v := ""
		if p.proven {
			v = p.request.first(g.header)
		}
		return Key{Kind: rows.Header, ID: g.header + ":" + v}, v != ""
	}
	return Key{Kind: rows.Global}, true
}

// A step is one trip of the charge loop: one row that is written, with the rows
// that are read beside it.
type step struct {
	group    *group
	stage    *stage // nil = clocks
	key      Key
	own      bool
	multiply int64
}

// scratch is the memory of one charge, pooled so that a decision allocates
// nothing but its states.
type scratch struct {
	steps   []step
	batch   Batch // its rows are the last ones of rows
	rows    []Row // of all trips
	cells   []Cell
	charged []int // which rows were charged, in order
	values  []int64

	claimStates []State // of claims, which report none unless refused
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (sc *scratch) reset() {
	sc.steps, sc.rows, sc.cells, sc.charged = sc.steps[:0], sc.rows[:0], sc.cells[:0], sc.charged[:0]
}

// trip makes a batch of the rows from index at.
func (sc *scratch) trip(at int, t time.Time) *Batch {
	sc.batch.Now, sc.batch.Rows = t, sc.rows[at:len(sc.rows):len(sc.rows)]
	return &sc.batch
}

// A verdict is what the charge loop found.
type verdict struct {
	states []State
	denied bool
	group  *group // the refusing one
	key    Key
	own    bool
	first  time.Duration // the earliest of the refusing buckets' times
	err    error         // of the store: the loop ended early
	at     int           // index of the step that failed
}

// steps lists what a request for path is charged to, in order.
func (l *Limiter) steps(sc *scratch, p *plan, who *party, path string, now int64) {
	for _, g := range p.own[who.own.Kind] {
		if g.applies(path) {
			sc.addSteps(g, who.own, true, who.multiply, now, who.anchor)
		}
	}
	for _, g := range p.outer {
		if !g.applies(path) {
			continue
		}
		if key, ok := who.outerKey(g, l.asnID); ok {
			sc.addSteps(g, key, false, 1, now, 0)
		}
	}
}

func (sc *scratch) addSteps(g *group, key Key, own bool, multiply, now, anchor int64) {
	if g.layout == nil {
		sc.steps = append(sc.steps, step{group: g, key: key, own: own, multiply: multiply})
		return
	}
	f := g.frameAt(now, anchor)
	for i := range f.stages {
		sc.steps = append(sc.steps, step{group: g, stage: &f.stages[i], key: key, own: own, multiply: multiply})
	}
}

// charge runs the staged protocol over steps[from:]: the own rows first, outer
// rows only once those admit. At the first refusal everything charged is given
// back, and awaited, so that a refused hit leaves every bucket as it was. The
// caller holds steps in sc.
func (l *Limiter) charge(ctx context.Context, store Store, sc *scratch, from int, states []State, t time.Time) verdict {
	v := verdict{states: states}
	now := t.UnixMicro()
	for i := from; i < len(sc.steps); i++ {
		st := &sc.steps[i]
		at := len(sc.rows)
		l.append(sc, st, now, true)
		err := store.Apply(ctx, sc.trip(at, t))
		if err == nil || sc.rows[at].Err == nil {
			sc.charged = append(sc.charged, at)
		}
		if err != nil {
			v.err, v.at = err, i
			return v
		}
		before := len(v.states)
		v.states = l.judge(v.states, sc, st, sc.rows[at:], now, false)
		first := time.Duration(0)
		for j := before; j < len(v.states); j++ {
			if retry := v.states[j].RetryAfter; retry > 0 && (first == 0 || retry < first) {
				first = retry
			}
		}
		if first == 0 {
			continue
		}
		v.denied, v.group, v.key, v.own, v.first = true, st.group, st.key, st.own && !st.group.fuzzy, first
		v.states = l.giveBack(ctx, store, sc, i+1, v.states, now, t)
		break
	}
	return v
}

// append adds the rows of a step to the scratch's: charging, or only reading.
func (l *Limiter) append(sc *scratch, st *step, now int64, charging bool) {
	g := st.group
	if st.stage == nil {
		at := len(sc.cells)
		until := clockUntil(g, now)
		for i, b := range g.buckets {
			c := Cell{Slot: uint16(i), Until: until}
			if lim := b.effective(l.policy.Scale, st.multiply); charging {
				c.Floor, c.Add, c.Ceiling = now, lim.step, 0
			}
			sc.cells = append(sc.cells, c)
		}
		sc.rows = append(sc.rows, Row{Key: st.key, Plan: g.plan, Until: until, Cells: sc.cells[at:len(sc.cells):len(sc.cells)]})
		return
	}
	base := len(sc.rows)
	sc.rows = append(sc.rows, st.stage.rows...)
	for i := base; i < len(sc.rows); i++ {
		r := &sc.rows[i]
		r.Key, r.MaxAge = st.key, g.maxAge
		at := len(sc.cells)
		sc.cells = append(sc.cells, r.Cells...)
		r.Cells = sc.cells[at:len(sc.cells):len(sc.cells)]
		if !charging {
			for j := range r.Cells {
				r.Cells[j].Add = 0
			}
		}
	}
	if charging && g.maxAge > 0 {
		for _, b := range st.stage.buckets {
			ref := b.refs[len(b.refs)-1]
			sc.rows[base+ref.row].Cells[ref.cell].Ceiling = g.buckets[b.index].effective(l.policy.Scale, st.multiply).limit
		}
	}
}

// clockUntil is when a row of clocks may go. It moves on in steps of a day or
// more, so that a store sets the expiry of a busy record once in each.
func clockUntil(g *group, now int64) int64 {
	period := int64(24 * 3600)
	for _, b := range g.buckets {
		depth := int64(b.Window / time.Second)
		if b.Burst > b.Limit {
			depth = depth * (b.Burst/b.Limit + 1)
		}
		period = max(period, depth)
	}
	return (now/1_000_000/period + 2) * period
}

// judge appends the states of a step's buckets. With peek the rows were only
// read, and the states are those that the next hit would meet.
func (l *Limiter) judge(states []State, sc *scratch, st *step, got []Row, now int64, peek bool) []State {
	g := st.group
	if st.stage == nil {
		for i, b := range g.buckets {
			lim := b.effective(l.policy.Scale, st.multiply)
			value := got[0].Cells[i].Value
			if peek {
				value = max(value, now) + lim.step
			}
			states = append(states, b.state(lim))
			judgeClock(&states[len(states)-1], lim, value, now)
		}
		return states
	}
	for i := range st.stage.buckets {
		p := &st.stage.buckets[i]
		b := g.buckets[p.index]
		sc.values = sc.values[:0]
		end := int64(0) // of a suspension
		for _, ref := range p.refs {
			v := got[ref.row].Cells[ref.cell].Value
			if v >= suspendedBit {
				hits, until := suspended(v)
				v, end = hits, max(end, until)
			}
			sc.values = append(sc.values, v)
		}
		if peek {
			sc.values[len(sc.values)-1]++
		}
		lim := b.effective(l.policy.Scale, st.multiply)
		states = append(states, b.state(lim))
		s := &states[len(states)-1]
		judgeWindows(s, b, lim, g.layout, p.index, p.current, sc.values, now)
		if end > 0 {
			s.suspend(end, now)
		}
	}
	return states
}

// giveBack refunds every charged row in one trip and, in the same trip, reads
// the rows that were not reached, so that RetryAfter holds for them too. A
// refund is sent once: after an unknown outcome it may have arrived.
func (l *Limiter) giveBack(ctx context.Context, store Store, sc *scratch, next int, states []State, now int64, t time.Time) []State {
	for i := range states {
		forget(&states[i])
	}
	began := len(sc.rows)
	for i := len(sc.charged) - 1; i >= 0; i-- {
		if r, ok := refund(sc, sc.rows[sc.charged[i]], now); ok {
			sc.rows = append(sc.rows, r)
		}
	}
	at := len(sc.rows) // the refunds end here
	for i := next; i < len(sc.steps); i++ {
		l.append(sc, &sc.steps[i], now, false)
	}
	if len(sc.rows) == began {
		return states
	}
	err := store.Apply(ctx, sc.trip(began, t))
	for i := began; i < at; i++ {
		if e := sc.rows[i].Err; e != nil && !errors.Is(e, ErrNotApplied) {
			l.refundUnknown.Add(1)
		} else if e != nil {
			l.refundLost.Add(1)
		}
	}
	if err != nil {
		return states
	}
	for i := next; i < len(sc.steps); i++ {
		n := 1
		if s := sc.steps[i].stage; s != nil {
			n = len(s.rows)
		}
		before := len(states)
		states = l.judge(states, sc, &sc.steps[i], sc.rows[at:at+n], now, true)
		for j := before; j < len(states); j++ {
			forget(&states[j])
		}
		at += n
	}
	return states
}

// forget takes this hit out of a state: it was given back.
func forget(s *State) {
	s.Count = max(0, s.Count-1)
	if s.RetryAfter > 0 {
		s.Remaining = 0
	} else {
		s.Remaining = min(s.Limit, s.Remaining+1)
	}
}

// refund returns the row that takes a charged row back: the same cells, nothing
// else, and not in the last stretch of the record's life.
func refund(sc *scratch, r Row, now int64) (Row, bool) {
	if r.Until-now/1_000_000 < noRefund {
		return Row{}, false
	}
	at := len(sc.cells)
	for _, c := range r.Cells {
		if c.Add != 0 {
			sc.cells = append(sc.cells, Cell{Slot: c.Slot, Until: c.Until, Add: -c.Add, Ceiling: c.Ceiling})
		}
	}
	r.Cells, r.Err = sc.cells[at:len(sc.cells):len(sc.cells)], nil
	return r, true
}
