package wrap

import (
	"context"
	"sync"
	"time"
)

// A patience is a context with a deadline of its own whose timer is only started
// when somebody asks for Done. A store that reads the deadline and keeps it by
// its own means, as that of Redis does, is spared the timer of every hit.
type patience struct {
	context.Context // the caller's
	until           time.Time

	mu     sync.Mutex
	timed  context.Context // nil until Done is asked for
	cancel context.CancelFunc
}

var _ context.Context = (*patience)(nil)

// newPatience returns a context that ends after d, or with ctx if that is
// earlier. The caller must call end.
func newPatience(ctx context.Context, d time.Duration) *patience {
	until := time.Now().Add(d)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(until) {
		until = earlier
	}
	return &patience{Context: ctx, until: until}
}

// end frees the timer, if there is one. What still holds the context finds it
// cancelled, as after a context.CancelFunc, only if it had asked for Done.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}

// Deadline implements context.Context.
func (p *patience) Deadline() (time.Time, bool) { return p.until, true }

// Done implements context.Context.
func (p *patience) Done() <-chan struct{} { return p.context().Done() }

// context returns the context that the standard library knows how to derive
// others from, with its timer running.
func (p *patience) context() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.cancel = context.WithDeadline(p.Context, p.until)
	}
	return p.timed
}

// Err implements context.Context.
func (p *patience) Err() error {
	p.mu.Lock()
	timed := p.timed
	p.mu.Unlock()
	if timed != nil {
		return timed.Err()
	}
	if err := p.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(p.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. Once the timer runs it is the timed context's:
// the standard library finds there what it derives contexts from.
func (p *patience) Value(key any) any {
	p.mu.Lock()
	timed := p.timed
	p.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return p.Context.Value(key)
}
