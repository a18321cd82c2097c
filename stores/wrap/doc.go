// Package wrap holds the wrappers that stand between the limiter and a store's
// driver. Each is a [core.Store] over another one, and each does one thing:
//
//	Behind -> Guard -> Spend -> Meter -> driver
//
// [Behind] keeps outer buckets in memory and reports many hits with one
// operation. [Guard] gives every trip a deadline and stops asking a store that
// does not answer. [Spend] stops paying beyond a limit. [Meter] counts what was
// really sent. [Stack] builds the whole.
package wrap

import (
	"context"

	"github.com/stilehq/stile/core"
)

// A Stacked is a store with all wrappers, outermost first.
type Stacked struct {
	core.Store // the outermost
	Behind     *Behind
	Guard      *Guard
	Spend      *Spend
	Meter      *Meter
}

// Stack puts all wrappers around a driver. Closing the result closes the driver.
func Stack(driver core.Store, guard GuardConfig, spend SpendConfig) *Stacked {
	s := &Stacked{Meter: NewMeter(driver)}
	s.Spend = NewSpend(s.Meter, spend)
	s.Guard = NewGuard(s.Spend, guard)
	s.Behind = NewBehind(s.Guard)
	s.Store = s.Behind
	return s
}

// Settle does the wrappers' and the driver's leftover work; see [core.Settler].
func (s *Stacked) Settle(ctx context.Context) error { return s.Behind.Settle(ctx) }

// Features are the driver's.
func (s *Stacked) Features() core.Features { return features(s.Store) }

var (
	_ core.Store    = (*Stacked)(nil)
	_ core.Settler  = (*Stacked)(nil)
	_ core.Featurer = (*Stacked)(nil)
)

// features passes an inner store's declaration on.
func features(s core.Store) core.Features {
	if f, ok := s.(core.Featurer); ok {
		return f.Features()
	}
	return core.Features{Clocks: true}
}

// settle passes leftover work on to an inner store.
func settle(ctx context.Context, s core.Store) error {
	if inner, ok := s.(core.Settler); ok {
		return inner.Settle(ctx)
	}
	return nil
}

// due reports whether a store may have leftover work. Asking costs nothing, where
// Settle would cost a deadline for every request.
func due(s core.Store) bool {
	if d, ok := s.(interface{ Due() bool }); ok {
		return d.Due()
	}
	_, ok := s.(core.Settler)
	return ok
}

// refuse gives every row the same error and returns it.
func refuse(b *core.Batch, err error) error {
	for i := range b.Rows {
		b.Rows[i].Err = err
	}
	return err
}
