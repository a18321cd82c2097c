package wrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/stilehq/stile/core"
)

// GuardConfig configures a Guard. The zero value is usable.
type GuardConfig struct {
	// Timeout is the longest that one trip may take; 0 = 150 ms. It is what a
	// visitor may lose to a store that does not answer.
	Timeout time.Duration
	// Failures in a row open the breaker; 0 = 5.
	Failures uint32
	// Pause is how long the breaker stays open before one trip may try again;
	// 0 = 2 s.
	Pause time.Duration
	// OnChange, if set, is told when the breaker opens, tries and closes ("open",
	// "half-open", "closed"). It must not block.
	OnChange func(state string)
}

// A Guard gives every trip a deadline and, after a row of failures, stops asking
// for a while: then rows fail at once with core.ErrNotApplied. One trip at a
// time tests whether the store is back. It never sends anything again, and holds
// no lock during a trip. It is safe for concurrent use.
type Guard struct {
	inner   core.Store
	timeout time.Duration
	local   bool // the store declares that it is not shared: its memory is ours
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
}

// NewGuard returns a Guard over inner.
func NewGuard(inner core.Store, c GuardConfig) *Guard {
	if c.Timeout <= 0 {
		c.Timeout = 150 * time.Millisecond
	}
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Pause <= 0 {
		c.Pause = 2 * time.Second
	}
	settings := gobreaker.Settings{
		Name:         "store",
		MaxRequests:  1,
		Timeout:      c.Pause,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= c.Failures },
		IsSuccessful: healthy,
	}
	if c.OnChange != nil {
		settings.OnStateChange = func(_ string, _, to gobreaker.State) { c.OnChange(to.String()) }
	}
	f, declared := inner.(core.Featurer)
	return &Guard{inner: inner, timeout: c.Timeout, local: declared && !f.Features().Shared, breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](settings)}
}

// Apply passes the batch on unless the breaker is open. A store in this process
// needs no guard, and gets none.
func (g *Guard) Apply(ctx context.Context, b *core.Batch) error {
	if g.local {
		return g.inner.Apply(ctx, b)
	}
	// A caller whose time is over says nothing about the store.
	if err := ctx.Err(); err != nil {
		return refuse(b, fmt.Errorf("store: %w: %w", err, core.ErrNotApplied))
	}
	done, err := g.breaker.Allow()
	if err != nil {
		return refuse(b, fmt.Errorf("store: not asked, it did not answer lately (%w): %w", err, core.ErrNotApplied))
	}
	p := newPatience(ctx, g.timeout)
	defer p.end()
	err = g.inner.Apply(p, b)
	done(err)
	return err
}

// Settle does the leftover work within the same deadline, unless the breaker is
// open: then it waits for a better time.
func (g *Guard) Settle(ctx context.Context) error {
	if !due(g.inner) || g.breaker.State() == gobreaker.StateOpen {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	return settle(ctx, g.inner)
}

// healthy reports whether an outcome says that the store is there. A row that it
// cannot hold, a visitor who went away, and one record too hot to be written at
// this moment (a Throttled error) do not open the breaker: coalescing makes the
// best of the last, and the other rows need the store.
func healthy(err error) bool {
	var hot interface{ Throttled() bool }
	return err == nil || errors.Is(err, core.ErrUnsupported) || errors.Is(err, context.Canceled) || errors.Is(err, core.ErrSpent) ||
		errors.As(err, &hot) && hot.Throttled()
}

// State returns "closed", "half-open" or "open".
func (g *Guard) State() string { return g.breaker.State().String() }

// Due reports whether Settle has something to do; it is the inner store\'s.
func (g *Guard) Due() bool { return due(g.inner) }

// Features are the inner store's.
func (g *Guard) Features() core.Features { return features(g.inner) }

// Close closes the inner store.
func (g *Guard) Close() error { return g.inner.Close() }

var (
	_ core.Store    = (*Guard)(nil)
	_ core.Settler  = (*Guard)(nil)
	_ core.Featurer = (*Guard)(nil)
)
