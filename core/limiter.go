package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// Options are the parts that a Limiter works with. Only Store is required.
type Options struct {
	Store Store // the shared counters
	// Local holds what is this instance's own business: the claims bucket, and
	// the counters of FailLocal. Required unless claims are off and OnError is
	// not FailLocal.
	Local       Store
	Crawlers    CrawlerVerifier // nil = nobody is verified
	Identifiers []Identifier    // asked in order; the first that knows wins
	ASN         ASNSource       // nil = unknown

	// Control is how often, at most, an instance that refuses somebody reads the
	// control record, and so how soon [Limiter.Lift] and [Limiter.LiftAll] hold
	// here: one read each time, by a request that is refused anyway. 0 = never.
	Control time.Duration
}

// A Limiter decides about requests by one policy. It is safe for concurrent
// use. A new policy is a new Limiter over the same store: counts live there.
type Limiter struct {
	policy Policy
	store  Store
	local  Store
	pages  *plan
	claims *plan
	opts   Options

	control *control // nil = nobody tells this instance anything
	memory  *denyMemory
	credits *creditMemory

	made   time.Time // StoreTime is measured from here: one reading of the monotonic clock each
	began  sync.Once
	origin time.Time // of monotonic time: the first decision's

	refundLost    atomic.Int64
	refundUnknown atomic.Int64
}

// New returns a Limiter for a policy. The error lists everything that makes the
// policy impossible; package policy says the same of a file, with key paths.
func New(p Policy, o Options) (*Limiter, error) {
	if p.ClaimsFactor == 0 {
		p.ClaimsFactor = 20
	}
	if p.Scale == 0 {
		p.Scale = 1
	}
	if e := p.Count.Exclude; e != nil && slices.Equal(e.source, DefaultExcludeList) {
		p.Count.Exclude = nil // written out, the default is the default
	}
	if err := validate(&p, &o); err != nil {
		return nil, err
	}
	l := &Limiter{policy: p, store: o.Store, local: o.Local, opts: o, memory: newDenyMemory(), credits: newCreditMemory(), made: time.Now()}
	if o.Control > 0 {
		l.control = &control{every: o.Control.Microseconds()}
	}
	l.pages = newPlan(l.policy.Buckets, "")
	l.claims = newPlan(claimsBuckets(&l.policy), "claims")
	return l, nil
}

func validate(p *Policy, o *Options) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Store == nil {
		bad("no store")
	}
	if o.Local == nil && (p.Claims != ClaimsOff || p.OnError == FailLocal) {
		bad("no local store for the claims bucket or for local counting")
	}
	if p.Scale < 0 || p.Scale != p.Scale {
		bad("scale %v: must be above 0", p.Scale)
	}
	if p.ClaimsFactor < 0 {
		bad("claims factor %d: must be above 0", p.ClaimsFactor)
	}
	names := map[string]bool{}
	for i := range p.Buckets {
		b := &p.Buckets[i]
		if names[b.Name] {
			bad("two buckets named %q", b.Name)
		}
		names[b.Name] = true
		if err := b.validate(); err != nil {
			bad("bucket %q: %w", b.Name, err)
		}
	}
	return errors.Join(errs...)
}

func (b *Bucket) validate() error {
	switch {
	case b.Name == "":
		return errors.New("no name")
	case b.Key < rows.Address || b.Key > rows.Global:
		return fmt.Errorf("key %d is none", b.Key)
	case b.Key == rows.Header && b.Header == "":
		return errors.New("a header key needs the header's name")
	case b.Algorithm < FixedWindow || b.Algorithm > GCRA:
		return fmt.Errorf("algorithm %d is none", b.Algorithm)
	case b.Limit < 1 || b.Limit > maxLimit:
		return fmt.Errorf("limit %d: must be 1 to %d", b.Limit, int64(maxLimit))
	case b.Window < time.Second || b.Window%time.Second != 0 || b.Window > 400*24*time.Hour:
		return fmt.Errorf("window %v: must be whole seconds, 1 s to 400 days", b.Window)
	case b.Burst < 0 || b.Burst > maxLimit:
		return fmt.Errorf("burst %d: must be 0 to %d", b.Burst, int64(maxLimit))
	case b.Burst > 0 && !b.Algorithm.Clock():
		return fmt.Errorf("burst: %s has none", b.Algorithm)
	case b.FlushEvery < 0 || b.FlushEvery > 0 && b.Key.Own():
		return errors.New("flush_every: only for outer keys, and not negative")
	case b.Visitor && (b.Key != rows.Cookie || b.Window%(24*time.Hour) != 0):
		return errors.New("day: visitor is for cookie keys and whole days")
	}
	return nil
}

// Policy returns the limiter's policy, which must not be changed.
func (l *Limiter) Policy() *Policy { return &l.policy }

// Refunds returns how many refunds were lost: proven unsent, and sent with an
// unknown outcome. Each may leave one hit too many in a counter until its window
// ends.
func (l *Limiter) Refunds() (lost, unknown int64) {
	return l.refundLost.Load(), l.refundUnknown.Load()
}

// Forget drops what this instance remembers of a refused key, so that the next
// request asks the store again.
func (l *Limiter) Forget(k Key) { l.memory.forget(k) }

// Settle does the store's leftover work; see [Settler].
func (l *Limiter) Settle(ctx context.Context) error {
	if s, ok := l.store.(Settler); ok {
		return s.Settle(ctx)
	}
	return nil
}

// mono returns monotonic time since the first decision.
func (l *Limiter) mono(t time.Time) time.Duration {
	l.began.Do(func() { l.origin = t })
	return t.Sub(l.origin)
}

func (l *Limiter) asnID(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
