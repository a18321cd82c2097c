package rows

import (
	"hash/fnv"
	"io"
	"strconv"
	"time"
)

// A Series is the windows of one bucket: which calendar they follow and how
// many of the past ones a decision reads.
type Series struct {
	Label   string         // what makes the series this one: name, algorithm; part of the fingerprint
	Window  time.Duration  // one window; whole days follow Zone
	Zone    *time.Location // nil = UTC
	History int            // past windows that are read: 0 fixed, 1 sliding counter, 60 log
}

// A Layout gives the windows of several series their places in the rows of one
// key: a row is an epoch of the calendar, a window lives wholly in the epoch in
// which it begins, and its slot is its number within that epoch. So nothing in
// a row is ever reset, and lengths need not divide one another. A Layout is
// immutable and safe for concurrent use.
type Layout struct {
	Plan   uint32 // fingerprint: rows of another layout have other names
	Slots  int    // places used, at most MaxSlots
	Epoch  *Calendar
	series []Series
	cals   []*Calendar
	base   []int   // first slot of each series
	width  []int   // slots of each series
	linger []int64 // how long after its epoch's end a series may still be asked
}

// A Place is where one window of one series is kept.
type Place struct {
	Window Window
	Epoch  int64
	Start  int64 // Unix seconds: when the epoch began
	Until  int64 // Unix seconds: when the whole row may go
	Slot   uint16
	Expiry int64 // Unix seconds: when this window is no longer asked for
}

// Layouts arranges series into as few layouts as it takes: one, unless the
// places of all of them exceed MaxSlots in any epoch that can hold the longest.
// The second result names, for each layout, the indexes of its series. Salt
// tells otherwise equal plans apart ("claims").
func Layouts(series []Series, salt string) ([]*Layout, [][]int) {
	idx := make([]int, len(series))
	for i := range idx {
		idx[i] = i
	}
	var layouts []*Layout
	var members [][]int
	for len(idx) > 0 {
		group := idx
		var l *Layout
		for {
			sub := make([]Series, len(group))
			for i, j := range group {
				sub[i] = series[j]
			}
			if l = newLayout(sub, salt); l != nil || len(group) == 1 {
				break
			}
			group = withoutShortest(series, group)
		}
		if l == nil { // one series alone always fits; see newLayout
			return layouts, members
		}
		layouts = append(layouts, l)
		members = append(members, group)
		idx = difference(idx, group)
	}
	return layouts, members
}

func withoutShortest(series []Series, group []int) []int {
	least := 0
	for i, j := range group {
		if series[j].Window < series[group[least]].Window {
			least = i
		}
	}
	out := make([]int, 0, len(group)-1)
	out = append(out, group[:least]...)
	return append(out, group[least+1:]...)
}

func difference(all, part []int) []int {
	var out []int
	for _, i := range all {
		found := false
		for _, j := range part {
			found = found || i == j
		}
		if !found {
			out = append(out, i)
		}
	}
	return out
}

// newLayout returns nil when no epoch both holds the longest window and needs
// no more than MaxSlots places.
func newLayout(series []Series, salt string) *Layout {
	l := &Layout{series: series}
	for _, s := range series {
		l.cals = append(l.cals, NewCalendar(s.Window, s.Zone))
	}
	for _, length := range epochCandidates(series) {
		l.Epoch = NewCalendar(length, epochZone(series))
		if l.assign() {
			l.Plan = l.fingerprint(salt)
			return l
		}
	}
	return nil
}

// epochCandidates lists possible epoch lengths, best first. Long epochs are
// better: a decision that looks back over an epoch's edge reads a second row.
// A day is the least that is asked for, and four times the span that is looked
// back over, so that at most every fourth decision pays for the second row.
func epochCandidates(series []Series) []time.Duration {
	longest, back := time.Duration(0), time.Duration(0)
	for _, s := range series {
		longest = max(longest, s.Window)
		back = max(back, time.Duration(s.History)*s.Window)
	}
	const aDay = 24 * time.Hour
	target := max(aDay, longest, 4*back)
	if target > aDay {
		target = (target + aDay - 1) / aDay * aDay
	}
	list := []time.Duration{target}
	for _, c := range []time.Duration{
		4 * aDay, 3 * aDay, 2 * aDay, aDay, 12 * time.Hour, 8 * time.Hour, 6 * time.Hour, 4 * time.Hour, 3 * time.Hour,
		2 * time.Hour, time.Hour, 30 * time.Minute, 15 * time.Minute, 10 * time.Minute, 5 * time.Minute, 4 * longest, 2 * longest, longest,
	} {
		if c < list[len(list)-1] && c >= longest {
			list = append(list, c)
		}
	}
	return list
}

// epochZone is the zone of the first series of whole days: its days then begin
// with their epoch.
func epochZone(series []Series) *time.Location {
	for _, s := range series {
		if s.Zone != nil && s.Zone != time.UTC && s.Window%(24*time.Hour) == 0 {
			return s.Zone
		}
	}
	return nil
}

// assign hands out slots and reports whether they fit.
func (l *Layout) assign() bool {
	l.base, l.width, l.linger = nil, nil, nil
	l.Slots = 0
	for i, c := range l.cals {
		longest := l.Epoch.length
		aligned := l.Epoch.length%c.length == 0
		if l.Epoch.days > 0 {
			if c.days == 0 {
				longest += 3 * 3600 * second // a local day may be longer than 24 h
				aligned = false
			} else {
				aligned = aligned && c.zone == l.Epoch.zone
			}
		} else if c.days > 0 {
			aligned = false
		}
		width := (longest + c.length - 1) / c.length
		if c.days > 0 && !aligned {
			width++ // 23-hour days begin more often
		}
		linger := int64(l.series[i].History) * c.length
		if !aligned {
			linger += c.length // a window that begins in the epoch may end after it
		}
		if c.days > 0 {
			linger += 2 * 3600 * second
		}
		if width > MaxSlots {
			return false
		}
		l.base = append(l.base, l.Slots)
		l.width = append(l.width, int(width))
		l.linger = append(l.linger, linger)
		l.Slots += int(width)
		if l.Slots > MaxSlots {
			return false
		}
	}
	return true
}

// fingerprint hashes what the slots mean, and nothing of limits or scale: a new
// limit keeps its counts, a new window opens new rows.
func (l *Layout) fingerprint(salt string) uint32 {
	h := fnv.New32a()
	write := func(s string) {
		io.WriteString(h, strconv.Itoa(len(s)))
		io.WriteString(h, ":")
		io.WriteString(h, s)
	}
	write(salt)
	write(strconv.FormatInt(l.Epoch.length, 10))
	write(zoneName(l.Epoch.zone))
	for i, s := range l.series {
		write(s.Label)
		write(strconv.FormatInt(l.cals[i].length, 10))
		write(zoneName(l.cals[i].zone))
		write(strconv.Itoa(l.base[i]))
	}
	return h.Sum32()
}

func zoneName(z *time.Location) string {
	if z == nil {
		return ""
	}
	return z.String()
}

// Series returns how many series the layout holds.
func (l *Layout) Series() int { return len(l.series) }

// History returns how many past windows of series i are read.
func (l *Layout) History(i int) int { return l.series[i].History }

// Current returns the window of series i that holds the instant t.
func (l *Layout) Current(i int, t int64) Window { return l.cals[i].At(t) }

// Next returns the window after w of series i.
func (l *Layout) Next(i int, w Window) Window { return l.cals[i].Nth(w.N + 1) }

// Place returns where window n of series i is kept.
func (l *Layout) Place(i int, n int64) Place {
	w := l.cals[i].Nth(n)
	e := l.Epoch.At(w.Start)
	// A freak of the calendar (a zone that changes its offset by more than three
	// hours) may have more windows than places; the last place then takes them
	// all, which counts too much and never too little.
	slot := min(w.N-l.cals[i].FirstFrom(e.Start), int64(l.width[i]-1))
	p := Place{
		Window: w,
		Epoch:  e.N,
		Start:  floorDiv(e.Start, second),
		Slot:   uint16(l.base[i] + int(max(slot, 0))),
		Expiry: ceilSeconds(w.End + int64(l.series[i].History)*l.cals[i].length),
	}
	for _, linger := range l.linger {
		p.Until = max(p.Until, ceilSeconds(e.End+linger))
	}
	return p
}

func ceilSeconds(t int64) int64 { return -floorDiv(-t, second) }
