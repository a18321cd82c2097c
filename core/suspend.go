package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// A suspension is kept where every hit of the key looks anyway: in one of the
// key's own window counters. So it costs no store operation per navigation,
// and holds on every instance from the key's next trip on. The counter's low
// bits go on counting; above them stand the minute at which the suspension
// ends, and a bit that no count reaches:
//
//	bit 61      suspended
//	bits 36-60  minutes since 2020, up to the year 2083
//	bits 0-35   hits
//
// Later windows until the end get the mark too, in advance.
const (
	suspendedBit   = 1 << 61
	suspendedShift = 36
	suspendedHits  = 1<<suspendedShift - 1
	suspendedBase  = 26_297_280 // minutes from 1970 to 2020
)

// MaxSuspension is the longest time for which a key can be suspended: the mark
// is written into every window until then.
const MaxSuspension = 90 * 24 * time.Hour

// ErrCannotSuspend marks a key that no bucket of the policy can refuse: none
// counts its kind over every page by windows.
var ErrCannotSuspend = errors.New("no bucket can refuse this key")

// suspension returns the mark of a suspension that ends at until, rounded up to
// whole minutes.
func suspension(until time.Time) int64 {
	minutes := (until.Unix()+59)/60 - suspendedBase
	return suspendedBit | max(0, min(minutes, 1<<25-1))<<suspendedShift
}

// suspended splits a counter into its hits and the end of its suspension in
// Unix microseconds, 0 if there is none.
func suspended(value int64) (hits, until int64) {
	if value < suspendedBit {
		return value, 0
	}
	minutes := (value - suspendedBit) >> suspendedShift
	return value & suspendedHits, (minutes + suspendedBase) * 60_000_000
}

// suspend refuses until then, whatever was counted.
func (s *State) suspend(until, now int64) {
	if left := micros(until - now); left > 0 {
		s.Suspended, s.Remaining = true, 0
		s.RetryAfter = max(s.RetryAfter, left)
		s.Reset = max(s.Reset, left)
	}
}

// groupsOf returns the groups that count k.
func (p *plan) groupsOf(k Key) []*group {
	if k.Kind.Own() {
		return p.own[k.Kind]
	}
	var out []*group
	for _, g := range p.outer {
		if g.kind == k.Kind && (k.Kind != rows.Header || strings.HasPrefix(k.ID, g.header+":")) {
			out = append(out, g)
		}
	}
	return out
}

// refuser returns the bucket that carries a key's suspension: of those that
// every page of the key charges, the one with the longest window, which has the
// fewest to mark.
func (p *plan) refuser(k Key) (*group, int, bool) {
	var best *group
	at := 0
	for _, g := range p.groupsOf(k) {
		if g.paths != nil || g.layout == nil {
			continue
		}
		for i, b := range g.buckets {
			if b.Limit > suspendedHits>>1 {
				continue
			}
			if best == nil || b.series().Window > best.buckets[at].series().Window {
				best, at = g, i
			}
		}
	}
	return best, at, best != nil
}

// A mark is one counter that may carry a suspension.
type mark struct {
	row rows.Row // with that one cell, nothing added
}

// marks lists the counters of a bucket's windows from the one that holds from
// to the one that holds to, both Unix microseconds.
func marks(g *group, bucket int, k Key, from, to, anchor int64) (out []mark) {
	for at := from; ; {
		end := int64(0)
		for _, s := range g.frameAfter(at, anchor).stages {
			for _, b := range s.buckets {
				if b.index != bucket {
					continue
				}
				ref := b.refs[len(b.refs)-1]
				row := s.rows[ref.row]
				c := row.Cells[ref.cell]
				c.Add = 0
				row.Key, row.Cells = k, []Cell{c}
				out = append(out, mark{row})
				end = b.current.End
			}
		}
		if end <= at || end > to {
			return out
		}
		at = end
	}
}

// frameAfter is frameAt for a time to come: what the group keeps for now stays.
func (g *group) frameAfter(at, anchor int64) *frame {
	if g.anchored {
		return g.frameAt(at, anchor)
	}
	return g.buildFrame(at)
}

// Suspend refuses every counted page of a key until then, on every instance that
// shares the store: from the key's next navigation on, and where hits of an outer
// key are coalesced, once an instance has reported its own (flush_every). Anchor
// is a cookie's issue where the policy counts the visitor's days, zero otherwise.
// It ends by itself, or with [Limiter.Lift]; a second call replaces the first.
//
// It costs two trips, with one operation per stored record until then, and
// nothing per navigation. A policy that observes refuses nobody, and what is
// exempt is not counted, so it is not refused. The error wraps ErrCannotSuspend,
// or is the store's: then the outcome is unknown and the call may be repeated.
func (l *Limiter) Suspend(ctx context.Context, k Key, anchor, t, until time.Time) error {
	length := until.Sub(t)
	if length <= 0 || length > MaxSuspension {
		return fmt.Errorf("a suspension of %v: want more than 0 and at most %v", length, MaxSuspension)
	}
	g, bucket, ok := l.pages.refuser(k)
	if !ok {
		return fmt.Errorf("%w: want a bucket of windows with key: %s and without paths", ErrCannotSuspend, k.Kind)
	}
	if err := l.setBack(ctx, k, anchor, t, true); err != nil {
		return err
	}
	b := Batch{Now: t}
	for _, m := range marks(g, bucket, k, t.UnixMicro(), until.UnixMicro(), anchorMicros(anchor)) {
		m.row.Cells[0].Add = suspension(until)
		b.Rows = append(b.Rows, m.row)
	}
	l.memory.forget(k)
	return l.store.Apply(ctx, &b)
}

func anchorMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
