package wire

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stilehq/stile/crawlers"
)

// Crawlers returns the verifier of the policy that holds now; nil when it treats
// no crawlers specially, or when the program brought its own.
func (r *Ready) Crawlers() *crawlers.Verifier { return r.Parts().Crawlers }

// Due reports whether [Ready.Refresh] would find work. It costs a few atomic
// reads, so it may be asked with every request.
func (r *Ready) Due() bool {
	p := r.Parts()
	return p.Crawlers != nil && p.Crawlers.Due() || p.known.keys != nil && p.known.keys.Due()
}

// Refresh does what is due within a budget: tables of crawlers, proofs by DNS,
// keys of signers and of the sign-in service. Request-billed adapters call it
// beside the origin call, and await it before the handler returns, since nothing
// runs there afterwards. With nothing due it returns at once. What failed has
// been logged, and what was held serves on: the error may be ignored.
func (r *Ready) Refresh(ctx context.Context, budget time.Duration) error {
	p := r.Parts()
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var wg sync.WaitGroup
	var keys, tables error
	if p.known.keys != nil && p.known.keys.Due() {
		wg.Go(func() { keys = p.known.Refresh(ctx) })
	}
	if p.Crawlers != nil && p.Crawlers.Due() {
		wg.Go(func() { tables = p.Crawlers.Refresh(ctx, budget) })
	}
	wg.Wait()
	return errors.Join(keys, tables)
}

// Run does the same on a timer, until ctx ends: for programs that keep their CPU
// between requests. Start it once, in a goroutine; it follows reloads.
func (r *Ready) Run(ctx context.Context) {
	for ctx.Err() == nil {
		exchanged := r.exchange()
		r.runParts(ctx, r.Parts(), exchanged)
	}
}

// runParts keeps one policy's parts fresh until they are exchanged.
func (r *Ready) runParts(ctx context.Context, p *Parts, exchanged <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if p.Crawlers != nil {
		wg.Go(func() { p.Crawlers.Run(ctx) })
	}
	wg.Go(func() { p.known.Run(ctx) })
	select {
	case <-ctx.Done():
	case <-exchanged:
	}
	cancel()
	wg.Wait()
}

// exchange returns a channel that is closed when the parts are exchanged.
func (r *Ready) exchange() <-chan struct{} {
	r.waiting.Lock()
	defer r.waiting.Unlock()
	if r.exchanged == nil {
		r.exchanged = make(chan struct{})
	}
	return r.exchanged
}

// exchangeDone wakes Run after the parts were exchanged.
func (r *Ready) exchangeDone() {
	r.waiting.Lock()
	defer r.waiting.Unlock()
	if r.exchanged != nil {
		close(r.exchanged)
		r.exchanged = nil
	}
}

func (r *Ready) logger() *slog.Logger {
	if r.cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.cfg.Logger
}
