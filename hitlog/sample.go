package hitlog

import (
	"hash/maphash"
	"time"

	"github.com/stilehq/stile/core"
)

// sampleSlots bounds the keys whose refusals are thinned out at a time; a key
// that loses its slot begins anew, and its count is written first.
const sampleSlots = 512

const sampleWindow = time.Minute

// A sampler thins out the refusals of one key: the first of each minute are
// written, then one of many. It counts what it leaves out, and everything it
// counted is written in the end: with the next line of the key, when another key
// takes the slot, when the minute is long over, or by drain.
type sampler struct {
	after, every int
	seed         maphash.Seed
	slots        []slot
	hand         int // of the clock that looks for forgotten slots
}

type slot struct {
	used    bool
	key     core.Key
	event   Event
	began   time.Time
	seen    int
	leftOut int64
	last    Entry // the latest that was left out
}

func newSampler(after, every int) *sampler {
	return &sampler{after: after, every: every, seed: maphash.MakeSeed(), slots: make([]slot, sampleSlots)}
}

// take returns the lines to write now, at most three. The caller holds the lock.
func (s *sampler) take(e Entry, key core.Key) []Entry {
	var out []Entry
	s.hand = (s.hand + 1) % len(s.slots)
	if old := &s.slots[s.hand]; old.used && !within(old.began, e.Time) {
		out = old.tail(out)
		*old = slot{}
	}
	at := &s.slots[maphash.Comparable(s.seed, key)%uint64(len(s.slots))]
	if at.used && (at.key != key || at.event != e.Event) {
		out = at.tail(out)
		*at = slot{}
	}
	switch {
	case !at.used:
		*at = slot{used: true, key: key, event: e.Event, began: e.Time}
	case !within(at.began, e.Time):
		at.began, at.seen = e.Time, 0
	}
	at.seen++
	if at.seen > s.after && (at.seen-s.after)%s.every != 0 {
		at.leftOut++
		at.last = e
		return out
	}
	e.LeftOut = at.leftOut
	at.leftOut, at.last = 0, Entry{}
	return append(out, e)
}

func within(began, now time.Time) bool {
	d := now.Sub(began)
	return d >= 0 && d < sampleWindow
}

// tail appends the line that accounts for what a slot left out.
func (sl *slot) tail(out []Entry) []Entry {
	if sl.leftOut == 0 {
		return out
	}
	e := sl.last
	e.LeftOut = sl.leftOut - 1
	return append(out, e)
}

func (s *sampler) drain() []Entry {
	var out []Entry
	for i := range s.slots {
		out = s.slots[i].tail(out)
		s.slots[i] = slot{}
	}
	return out
}
