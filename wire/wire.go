package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/identity"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/wrap"
)

// DefaultStoreURL is the store when none is named: this process's memory.
const DefaultStoreURL = "memory:"

// Config says what to wire. Policy, Stores and HitLog are required.
type Config struct {
	Policy *policy.File
	Stores *open.Registry
	// HitLog gets the lines of the hit log; see hitlog.NewHandler.
	HitLog slog.Handler

	StoreURL string              // "" = DefaultStoreURL
	Getenv   func(string) string // for what store URLs leave to the environment; nil = an empty one

	// What knows clients by more than their address, where the program knows
	// better than the policy: a platform's own claims, a verifier for tests.
	Crawlers    core.CrawlerVerifier // nil = the policy's own; see NewCrawlers
	Identifiers []core.Identifier    // nil, and ASN too = the policy's own; see NewIdentities
	ASN         core.ASNSource
	// PlatformUsers also takes the users that the adapter reads from its
	// platform's own claims; see identity.WithPlatformUser.
	PlatformUsers bool
	// Proving says with what the policy's own crawlers are verified; its Logger
	// and Now default to those of this Config. Nothing is fetched but by
	// Ready.Refresh and Ready.Run.
	Proving CrawlerConfig

	// Logger hears what an operator must know of the store while it runs: that it
	// stopped answering, that a spending limit was reached. Nil = nobody.
	Logger *slog.Logger

	Now func() time.Time // nil = time.Now; asked once a policy is taken, never for a hit
}

// Parts are what one policy made. They are immutable and safe for concurrent use.
type Parts struct {
	Policy  *policy.File
	Limiter *core.Limiter
	Answer  *answer.Writer
	Log     *hitlog.Log
	Cookies *identity.Cookies // nil = the policy signs none
	// Crawlers is the policy's own verifier; nil when it treats none specially, or
	// when the program brought another.
	Crawlers *crawlers.Verifier

	known *Identities // what Cookies and the limiter's identifiers belong to; never nil
}

// Ready is a limiter ready to be asked. It is safe for concurrent use, and is
// itself a limiter for adapters: each call goes to the parts of the policy that
// holds at that moment.
type Ready struct {
	// Warnings are what the policy does on this store that was probably not
	// meant. They are for the operator, once, at start.
	Warnings []policy.Warning
	// StoreProblem is why the store was not found in order at start, nil if it
	// was. Ready works all the same, by the policy's store.on_error, and the
	// store goes on trying. It belongs in the log.
	StoreProblem error

	cfg      Config
	store    *wrap.Stacked
	driver   core.Store // without its wrappers
	local    *memory.Store
	features core.Features
	reload   sync.Mutex
	parts    atomic.Pointer[Parts]

	waiting   sync.Mutex
	exchanged chan struct{} // closed when the parts are exchanged; nil = nobody waits
}

// New opens the store and builds the parts. The error joins all that is wrong
// with the policy on this store, or is about the store's URL (it then wraps
// open.ErrURL). A store that cannot be reached is no error.
func New(ctx context.Context, cfg Config) (*Ready, error) {
	if cfg.Policy == nil || cfg.Stores == nil || cfg.HitLog == nil {
		return nil, errors.New("wire: Policy, Stores and HitLog are required")
	}
	if cfg.StoreURL == "" {
		cfg.StoreURL = DefaultStoreURL
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Ready{cfg: cfg}
	var err error
	r.store, r.driver, err = openStore(ctx, cfg)
	if r.store == nil {
		return nil, err
	}
	r.StoreProblem = err
	r.features = featuresOf(r.store)
	// The claims bucket and local counting have a table of their own, whatever
	// the store: a flood of claims must not displace the counters of pages.
	r.local = memory.New(memory.Config{MaxKeys: int(cfg.Policy.Store.MaxKeys)})
	parts, warnings, err := r.build(cfg.Policy, nil)
	if err != nil {
		return nil, errors.Join(err, r.closeStores())
	}
	r.Warnings = warnings
	r.parts.Store(parts)
	return r, nil
}

// Parts returns what holds now. A request that takes them once sees one policy
// from beginning to end.
func (r *Ready) Parts() *Parts { return r.parts.Load() }

// Features returns what the store can do.
func (r *Ready) Features() core.Features { return r.features }

// Store returns the shared counters with their wrappers, for commands that look
// at single keys and for metrics. Ready closes it.
func (r *Ready) Store() *wrap.Stacked { return r.store }

// Local tells how full this instance's own memory is: claims, and counting while
// the store fails.
func (r *Ready) Local() memory.Stats { return r.local.Stats() }

// Decide implements the adapters' limiter; see core.Limiter.
func (r *Ready) Decide(ctx context.Context, q *core.Request) core.Decision {
	return r.Parts().Limiter.Decide(ctx, q)
}

// Answered implements the adapters' limiter; see core.Limiter.
func (r *Ready) Answered(ctx context.Context, q *core.Request, d *core.Decision, a core.Answer) bool {
	return r.Parts().Limiter.Answered(ctx, q, d, a)
}

// Settle implements the adapters' limiter; see core.Limiter.
func (r *Ready) Settle(ctx context.Context) error { return r.Parts().Limiter.Settle(ctx) }

// Explain implements the adapters' limiter; see core.Limiter.
func (r *Ready) Explain(ctx context.Context, q *core.Request) core.Explanation {
	return r.Parts().Limiter.Explain(ctx, q)
}

// Policy implements the adapters' limiter; see core.Limiter.
func (r *Ready) Policy() *core.Policy { return r.Parts().Limiter.Policy() }

// Close writes what the log holds back and closes the store. Nothing may be
// asked of Ready afterwards.
func (r *Ready) Close(ctx context.Context) error {
	settled := r.Settle(ctx) // hits that were coalesced, expiries that are due
	r.Parts().Log.Flush(ctx)
	if settled != nil {
		settled = fmt.Errorf("wire: last flush: %w", settled)
	}
	return errors.Join(settled, r.closeStores())
}

func (r *Ready) closeStores() error { return errors.Join(r.store.Close(), r.local.Close()) }
