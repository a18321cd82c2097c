package wrap

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stilehq/stile/core"
)

// SpendConfig bounds the operations of this instance. Zero means no bound.
type SpendConfig struct {
	PerSecond int64
	PerDay    int64 // of a UTC day of the batch's clock
	// OnSpent, if set, is told when a bound is reached, at most once a minute. It
	// must not block.
	OnSpent func(bound string)
}

// A Spend refuses rows beyond a number of operations, with core.ErrSpent, so
// that counting goes on locally. Batches with refunds are let through: they give
// back what was paid for. The bounds are this instance's; with n instances the bill is
// bounded by n times as much. It is safe for concurrent use.
type Spend struct {
	inner core.Store
	c     SpendConfig

	mu              sync.Mutex
	second, day     int64
	inSecond, inDay int64
	told            time.Time
	refused         int64
}

// NewSpend returns a Spend over inner.
func NewSpend(inner core.Store, c SpendConfig) *Spend { return &Spend{inner: inner, c: c} }

// Apply passes the batch on while there is something left to spend.
func (s *Spend) Apply(ctx context.Context, b *core.Batch) error {
	if s.c.PerSecond <= 0 && s.c.PerDay <= 0 {
		return s.inner.Apply(ctx, b)
	}
	if bound := s.take(b); bound != "" {
		return refuse(b, fmt.Errorf("store: %s reached: %w, %w", bound, core.ErrSpent, core.ErrNotApplied))
	}
	return s.inner.Apply(ctx, b)
}

// take books the batch's rows, or names the bound that is reached.
func (s *Spend) take(b *core.Batch) string {
	n, refund := int64(len(b.Rows)), false
	for i := range b.Rows {
		refund = refund || b.Rows[i].Writes() && !b.Rows[i].Creates()
	}
	now := b.Now.Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now != s.second {
		s.second, s.inSecond = now, 0
	}
	if day := now / 86400; day != s.day {
		s.day, s.inDay = day, 0
	}
	bound := ""
	switch {
	case refund:
	case s.c.PerSecond > 0 && s.inSecond+n > s.c.PerSecond:
		bound = "max_ops_per_second"
	case s.c.PerDay > 0 && s.inDay+n > s.c.PerDay:
		bound = "max_ops_per_day"
	}
	if bound == "" {
		s.inSecond += n
		s.inDay += n
		return ""
	}
	s.refused += n
	if s.c.OnSpent != nil && (s.told.IsZero() || b.Now.Sub(s.told) >= time.Minute || b.Now.Before(s.told)) {
		s.told = b.Now
		s.c.OnSpent(bound)
	}
	return bound
}

// Refused returns how many rows were not sent because a bound was reached.
func (s *Spend) Refused() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Settle passes on: the expiry of a record is always paid for.
func (s *Spend) Settle(ctx context.Context) error { return settle(ctx, s.inner) }

// Due reports whether Settle has something to do; it is the inner store\'s.
func (s *Spend) Due() bool { return due(s.inner) }

// Features are the inner store's.
func (s *Spend) Features() core.Features { return features(s.inner) }

// Close closes the inner store.
func (s *Spend) Close() error { return s.inner.Close() }

var (
	_ core.Store    = (*Spend)(nil)
	_ core.Settler  = (*Spend)(nil)
	_ core.Featurer = (*Spend)(nil)
)
