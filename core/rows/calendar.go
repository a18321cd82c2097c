package rows

import (
	"sync/atomic"
	"time"
)

// All instants in this package are Unix microseconds, so that windows, clocks
// and epochs share one integer arithmetic.
const (
	second = int64(time.Second / time.Microsecond)
	day    = 24 * 3600 * second
)

// A Window is one period [Start, End) of a calendar, with its number. Numbers
// count up by one from window to window; 0 begins at the Unix epoch.
type Window struct {
	N, Start, End int64
}

// A Calendar divides time into consecutive windows without gaps. Windows that
// are whole days follow the local dates of a zone, so that they last 23 to 25
// hours where clocks change; all others have one absolute length. A Calendar is
// safe for concurrent use.
type Calendar struct {
	length int64          // microseconds
	days   int64          // > 0: so many local dates instead
	zone   *time.Location // with days only
	last   atomic.Pointer[Window]
}

// NewCalendar returns the calendar of windows of the given length, which must
// be positive. A zone matters only to whole days; nil and UTC make them
// absolute, which they are.
func NewCalendar(length time.Duration, zone *time.Location) *Calendar {
	c := &Calendar{length: int64(length / time.Microsecond)}
	if c.length < 1 {
		c.length = 1
	}
	if zone != nil && zone != time.UTC && c.length%day == 0 {
		c.days, c.zone = c.length/day, zone
	}
	return c
}

// Length is the nominal length; a local day may be longer or shorter.
func (c *Calendar) Length() time.Duration { return time.Duration(c.length) * time.Microsecond }

// At returns the window that holds the instant t.
func (c *Calendar) At(t int64) Window {
	if c.days == 0 {
		n := floorDiv(t, c.length)
		return Window{N: n, Start: n * c.length, End: (n + 1) * c.length}
	}
	if w := c.last.Load(); w != nil && t >= w.Start && t < w.End {
		return *w
	}
	w := c.search(t)
	c.last.Store(&w)
	return w
}

// search finds a local window by its date and then by its bounds: where clocks
// go back over midnight, the hour that comes twice belongs to the date that
// began first; a date that a zone skipped is an empty window that holds nothing.
func (c *Calendar) search(t int64) Window {
	_, offset := time.UnixMicro(t).In(c.zone).Zone()
	date := floorDiv(t+int64(offset)*second, day)
	w := c.Nth(floorDiv(date, c.days))
	for t >= w.End {
		w = c.Nth(w.N + 1)
	}
	for t < w.Start {
		w = c.Nth(w.N - 1)
	}
	return w
}

// Nth returns the window of number n.
func (c *Calendar) Nth(n int64) Window {
	if c.days == 0 {
		return Window{N: n, Start: n * c.length, End: (n + 1) * c.length}
	}
	return Window{N: n, Start: c.dateStart(n * c.days), End: c.dateStart((n + 1) * c.days)}
}

// FirstFrom returns the number of the first window that begins at t or later.
func (c *Calendar) FirstFrom(t int64) int64 {
	w := c.At(t)
	if w.Start >= t {
		return w.N
	}
	return w.N + 1
}

// dateStart returns the first instant of a local date, given as days since
// 1970-01-01. It walks the zone's intervals of constant offset: asking
// time.Date for midnight gives 23:00 of the day before where midnight does not
// exist (Havana, Santiago).
func (c *Calendar) dateStart(date int64) int64 {
	at := date*86400 - 26*3600 // before the date has begun anywhere
	for {
		t := time.Unix(at, 0).In(c.zone)
		_, offset := t.Zone()
		midnight := date*86400 - int64(offset)
		if midnight <= at {
			return at * second // the change of offset jumped over midnight
		}
		_, end := t.ZoneBounds()
		if end.IsZero() || midnight < end.Unix() {
			return midnight * second
		}
		at = end.Unix()
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}
