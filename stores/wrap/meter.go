package wrap

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

// LatencyBounds are the upper bounds of the meter's latency buckets; a last one
// without bound follows.
var LatencyBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// A Meter counts what reaches the driver. It is safe for concurrent use and
// allocates nothing.
type Meter struct {
	inner core.Store

	trips, writes, reads          atomic.Int64
	failed, unknown, settleFailed atomic.Int64
	latency                       [len(LatencyBounds) + 1]atomic.Int64
	nanos                         atomic.Int64
}

// NewMeter returns a Meter over inner.
func NewMeter(inner core.Store) *Meter { return &Meter{inner: inner} }

// Apply counts and passes on.
func (m *Meter) Apply(ctx context.Context, b *core.Batch) error {
	writes, reads := int64(0), int64(0)
	for i := range b.Rows {
		if b.Rows[i].Writes() {
			writes++
		} else {
			reads++
		}
	}
	began := time.Now()
	err := m.inner.Apply(ctx, b)
	spent := time.Since(began)
	m.trips.Add(1)
	m.writes.Add(writes)
	m.reads.Add(reads)
	m.nanos.Add(int64(spent))
	at := 0
	for at < len(LatencyBounds) && spent > LatencyBounds[at] {
		at++
	}
	m.latency[at].Add(1)
	if err != nil {
		for i := range b.Rows {
			switch e := b.Rows[i].Err; {
			case e == nil:
			case errors.Is(e, core.ErrNotApplied):
				m.failed.Add(1)
			default:
				m.unknown.Add(1)
			}
		}
	}
	return err
}

// Settle passes on and counts failures.
func (m *Meter) Settle(ctx context.Context) error {
	err := settle(ctx, m.inner)
	if err != nil {
		m.settleFailed.Add(1)
	}
	return err
}

// Due reports whether Settle has something to do; it is the inner store\'s.
func (m *Meter) Due() bool { return due(m.inner) }

// Features are the inner store's.
func (m *Meter) Features() core.Features { return features(m.inner) }

// Close closes the inner store.
func (m *Meter) Close() error { return m.inner.Close() }

// Reading is what a Meter has counted since it was made.
type Reading struct {
	Trips   int64 // round trips
	Writes  int64 // rows that were written
	Reads   int64 // rows that were only read
	Failed  int64 // rows proven unchanged
	Unknown int64 // rows whose outcome is unknown
	Settle  int64 // failed settlements
	Latency [len(LatencyBounds) + 1]int64
	Spent   time.Duration // in all trips together
}

// Read returns the counts. Counters are read one after another, so a reading
// under load may be a trip apart from itself.
func (m *Meter) Read() Reading {
	r := Reading{
		Trips: m.trips.Load(), Writes: m.writes.Load(), Reads: m.reads.Load(),
		Failed: m.failed.Load(), Unknown: m.unknown.Load(), Settle: m.settleFailed.Load(), Spent: time.Duration(m.nanos.Load()),
	}
	for i := range m.latency {
		r.Latency[i] = m.latency[i].Load()
	}
	return r
}

var (
	_ core.Store    = (*Meter)(nil)
	_ core.Settler  = (*Meter)(nil)
	_ core.Featurer = (*Meter)(nil)
)
