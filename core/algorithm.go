package core

import (
	"math/bits"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// logParts is into how many sub-windows the sliding log divides its window. It
// never admits more than the limit in any true window, and may hold a hit back
// for one sub-window longer than an exact log would.
const logParts = 60

// limits is a bucket's numbers for one decision: after scale, tier and budget.
type limits struct {
	limit int64
	burst int64 // clocks: hits that may come at once
	step  int64 // clocks: microseconds that one hit costs
}

// effective returns the bucket's numbers multiplied for one request.
func (b *Bucket) effective(scale float64, multiply int64) limits {
	l := limits{limit: scaled(b.Limit, scale, multiply)}
	if !b.Algorithm.Clock() {
		return l
	}
	switch {
	case b.Burst > 0:
		l.burst = scaled(b.Burst, scale, multiply)
	case b.Algorithm == TokenBucket:
		l.burst = l.limit
	default:
		l.burst = 1
	}
	window := int64(b.Window / time.Microsecond)
	l.step = max(1, (window+l.limit-1)/l.limit) // rounded up: never more than the limit
	return l
}

// maxLimit keeps every product below in 63 bits.
const maxLimit = 1 << 40

func scaled(limit int64, scale float64, multiply int64) int64 {
	v := float64(limit)
	if scale > 0 {
		v *= scale
	}
	if multiply > 1 {
		v *= float64(multiply)
	}
	n := int64(min(v, maxLimit))
	if float64(n) < v && n < maxLimit {
		n++
	}
	return max(n, 1)
}

// series is the bucket's windows as the planner needs them.
func (b *Bucket) series() rows.Series {
	s := rows.Series{Label: b.Name + "|" + b.Algorithm.String(), Window: b.Window, Zone: b.Zone}
	switch b.Algorithm {
	case SlidingWindowCounter:
		s.History = 1
	case SlidingWindowLog:
		s.History = logParts
		s.Zone = nil
		s.Window = (b.Window + logParts - 1) / logParts
		s.Window = (s.Window + time.Microsecond - 1) / time.Microsecond * time.Microsecond
	}
	return s
}

// state returns the state of a bucket of which nothing was read yet.
func (b *Bucket) state(lim limits) State {
	return State{Bucket: b.Name, Key: b.Key, Limit: lim.limit, Window: b.Window}
}

// judgeWindows writes what the values of a bucket's windows mean, oldest first and
// this hit included in the last, into its state. now is Unix microseconds.
func judgeWindows(s *State, b *Bucket, lim limits, l *rows.Layout, i int, cur rows.Window, values []int64, now int64) {
	count := values[len(values)-1]
	switch b.Algorithm {
	case FixedWindow:
		s.Count = count
		s.Reset = micros(cur.End - now)
		if count > lim.limit {
			s.RetryAfter = s.Reset
		}
	case SlidingWindowCounter:
		judgeCounter(s, lim.limit, values[0], count, cur, l.Next(i, cur), now)
	case SlidingWindowLog:
		judgeLog(s, lim.limit, l, i, cur, values, now)
	}
	s.Remaining = max(0, lim.limit-s.Count)
	if s.RetryAfter > 0 {
		s.Reset = s.RetryAfter // a full bucket has more when it admits again, not before
	}
}

// judgeCounter estimates the hits of the last window's length as this window's
// count plus the part of the previous one that it still overlaps. All of it is
// integer arithmetic in 128 bits, so that every instance agrees.
func judgeCounter(s *State, limit, prev, count int64, cur, next rows.Window, now int64) {
	length := max(1, cur.End-cur.Start)
	left := min(max(cur.End-now, 0), length)
	s.Count = count + mulDivUp(prev, left, length)
	switch {
	case count > 0 || prev == 0:
		s.Reset = micros(cur.End - now)
	default:
		s.Reset = micros(left)
	}
	if s.Count <= limit {
		return
	}
	// Without this hit, and with no other traffic, one more is admitted when
	// prev*left/length + count <= limit, that is when left has shrunk enough.
	if room := limit - count; room >= 0 {
		s.RetryAfter = micros(left - mulDivDown(room, length, prev))
	} else {
		// This window alone is full: the same sum in the next window, where what
		// was admitted here (count less this hit) is the previous one.
		nextLength := max(1, next.End-next.Start)
		s.RetryAfter = micros(cur.End - now + nextLength - min(nextLength, mulDivDown(limit-1, nextLength, count-1)))
	}
	if s.RetryAfter <= 0 {
		s.RetryAfter = time.Microsecond
	}
}

func judgeLog(s *State, limit int64, l *rows.Layout, i int, cur rows.Window, values []int64, now int64) {
	for _, v := range values {
		s.Count += v
	}
	part := cur.End - cur.Start
	// Sub-window k (0 = oldest) is left behind when k+1 further ones have begun.
	leaves := func(k int) time.Duration { return micros(cur.End + int64(k)*part - now) }
	for k, v := range values {
		if v > 0 {
			s.Reset = leaves(k)
			break
		}
	}
	if s.Count <= limit {
		return
	}
	left := s.Count // after the refund: Count-1 others and the next hit
	for k, v := range values {
		left -= v
		if k == len(values)-1 {
			left++ // this hit was refunded and does not leave
		}
		if left <= limit {
			s.RetryAfter = leaves(k)
			return
		}
	}
	s.RetryAfter = leaves(len(values) - 1)
}

// judgeClock does the same for a clock cell: value is the theoretical arrival time
// of the hit after this one (GCRA; a token bucket is the same clock).
func judgeClock(s *State, lim limits, value, now int64) {
	debt := max(0, value-now)
	depth := lim.burst * lim.step
	s.Count = (debt + lim.step - 1) / lim.step
	s.Reset = micros(debt)
	if debt > depth {
		s.RetryAfter = micros(debt - depth)
		s.Reset = s.RetryAfter
		return
	}
	s.Remaining = (depth - debt) / lim.step
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// mulDivUp returns a*b/c rounded up, for 0 <= b <= c, c > 0.
func mulDivUp(a, b, c int64) int64 {
	q, r := mulDiv(a, b, c)
	if r > 0 {
		q++
	}
	return q
}

// mulDivDown returns a*b/c rounded down. It saturates where the quotient would
// not fit, which only a c of 0 or an impossible count can cause.
func mulDivDown(a, b, c int64) int64 {
	q, _ := mulDiv(a, b, c)
	return q
}

func mulDiv(a, b, c int64) (q, r int64) {
	if a <= 0 || b <= 0 {
		return 0, 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if c <= 0 || hi >= uint64(c)/2 {
		return 1 << 61, 0
	}
	uq, ur := bits.Div64(hi, lo, uint64(c))
	return int64(min(uq, 1<<61)), int64(ur)
}
