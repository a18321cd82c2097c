package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A flight is the context of one request on its way: a deadline and nothing
// else. A caller that goes away earlier is not heard any more, since the count has
// been charged and the reply says whether the record needs its expiry.
//
// Flights are used again. The timer is only started when somebody asks for Done,
// which the client library does not do while a request is alone on its connection.
type flight struct {
	until   time.Time
	armed   bool
	timer   *time.Timer
	done    chan struct{}
	expired atomic.Bool
}

var _ context.Context = (*flight)(nil)

var flights = sync.Pool{New: func() any { return new(flight) }}

func newFlight(until time.Time) *flight {
	f := flights.Get().(*flight)
	f.until = until
	return f
}

// land gives the flight back, unless its time ran out: then its channel is closed.
func (f *flight) land() {
	if f.armed && !f.timer.Stop() {
		return
	}
	f.armed = false
	flights.Put(f)
}

func (f *flight) Deadline() (time.Time, bool) { return f.until, true }

// Done starts the timer. Only the request's own goroutine calls it.
func (f *flight) Done() <-chan struct{} {
	if !f.armed {
		f.armed = true
		left := time.Until(f.until)
		if f.timer == nil {
			f.done = make(chan struct{})
			f.timer = time.AfterFunc(left, func() {
				f.expired.Store(true)
				close(f.done)
			})
		} else {
			f.timer.Reset(left)
		}
	}
	return f.done
}

func (f *flight) Err() error {
	if f.expired.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

func (f *flight) Value(any) any { return nil }

// deadline returns that of ctx, or d from now if that is earlier.
func deadline(ctx context.Context, d time.Duration) time.Time {
	until := time.Now().Add(d)
	if t, ok := ctx.Deadline(); ok && t.Before(until) {
		return t
	}
	return until
}
