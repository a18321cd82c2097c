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

	memory  *denyMemory
	credits *creditMemory

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
	l := &Limiter{policy: p, store: o.Store, local: o.Local, opts: o, memory: newDenyMemory(), credits: newCreditMemory()}
	l.pages = newPlan(l.policy.Buckets, "")
	l.claims = newPlan(claimsBuckets(&l.policy), "claims")
	return l, nil
}

// claimsBuckets are the wide limits of what is not counted: the page limits of
// own keys, whatever their paths, times the factor.
func claimsBuckets(p *Policy) []Bucket {
	if p.Claims == ClaimsOff {
		return nil
	}
	var out []Bucket
	for _, b := range p.Buckets {
		if !b.Key.Own() || b.Paths != nil {
			continue
		}
		b.Limit *= p.ClaimsFactor
		b.Burst *= p.ClaimsFactor
		out = append(out, b)
	}
	return out
}

func validate(p *Policy, o *Options) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Store == nil {
		bad("core: no store")
	}
	if o.Local == nil && (p.Claims != ClaimsOff || p.OnError == FailLocal) {
		bad("core: no local store for the claims bucket or for local counting")
	}
	if p.Scale < 0 || p.Scale != p.Scale {
		bad("core: scale %v: must be above 0", p.Scale)
	}
	if p.ClaimsFactor < 0 {
		bad("core: claims factor %d: must be above 0", p.ClaimsFactor)
	}
	names := map[string]bool{}
	for i := range p.Buckets {
		b := &p.Buckets[i]
		if names[b.Name] {
			bad("core: two buckets named %q", b.Name)
		}
		names[b.Name] = true
		if err := b.validate(); err != nil {
			bad("core: bucket %q: %w", b.Name, err)
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

// Decide classifies a request, finds who it is from, and charges it. A request
// that is not counted costs no store operation and no allocation. Decide always
// decides: see [Decision]. The store's own deadline bounds it, and ctx.
func (l *Limiter) Decide(ctx context.Context, r *Request) Decision {
	d := Decision{Binding: -1, Observe: l.policy.Observe}
	d.Class, d.Reason = l.policy.Count.classify(r)
	if d.Class == Ignored {
		return d
	}
	who := l.identify(r, &d)
	if l.exempt(r, &d, &who) {
		return d
	}
	if d.Class == Counted {
		l.count(ctx, r, &d, &who)
	} else {
		l.countClaim(ctx, r, &d, &who)
	}
	return d
}

// identify fills in who the request is from. The precedence is the order of
// Options.Identifiers; the address comes last.
func (l *Limiter) identify(r *Request, d *Decision) party {
	d.Client = l.policy.Client.Resolve(r)
	who := party{own: d.Client.key(), multiply: 1, network: d.Client.Network, request: r}
	who.proven = d.Client.Problem != ClientUntrusted && l.policy.Client.Proven(r)
	if !d.Client.Addr.IsValid() {
		who.multiply = unidentifiedFactor
	}
	for _, id := range l.opts.Identifiers {
		if found := id.Identify(r, d.Client.Addr); found.Kind != 0 {
			d.Identity = found
			who.own = Key{Kind: found.Kind, ID: found.ID}
			who.multiply = max(1, found.Tier)
			if !found.Anchor.IsZero() {
				who.anchor = found.Anchor.UnixMicro()
			}
			break
		}
	}
	if l.opts.ASN != nil {
		who.asn = l.opts.ASN.LookupASN(r, d.Client.Addr)
	}
	d.Key = who.own
	return who
}

// exempt reports whether the request passes uncounted for who it is from, and
// widens the limits of those who get a budget.
func (l *Limiter) exempt(r *Request, d *Decision, who *party) bool {
	if l.policy.Networks != nil && d.Client.Addr.IsValid() {
		if n, ok := l.policy.Networks.LookupNetwork(d.Client.Addr); ok && (n.Until.IsZero() || r.Time.Before(n.Until)) {
			d.Network = n
			if n.Exempt {
				d.Reason = ReasonNetwork
				return true
			}
			who.multiply *= max(1, n.Multiply)
		}
	}
	if l.opts.Crawlers != nil {
		d.Crawler = l.opts.Crawlers.VerifyCrawler(r, d.Client.Addr)
		if d.Crawler.Verified {
			t := l.policy.Crawlers[d.Crawler.Class]
			if t.Exempt {
				d.Reason = ReasonCrawler
				return true
			}
			who.multiply *= max(1, t.Multiply)
		}
	}
	return false
}

// count charges a navigation.
func (l *Limiter) count(ctx context.Context, r *Request, d *Decision, who *party) {
	if l.credits.spend(who.own, r) {
		d.Reason = ReasonRedirect
		return
	}
	path := cleanPath(r.Path)
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.reset()
	now := r.Time.UnixMicro()
	l.steps(sc, l.pages, who, path, now)
	if len(sc.steps) == 0 {
		d.Reason = ReasonNoBucket
		return
	}
	mono := l.mono(r.Time)
	if l.remembered(sc, path, mono, now, d, ReasonRemembered) {
		return
	}
	states := make([]State, 0, len(l.policy.Buckets))
	began := time.Now()
	measure := func() time.Duration { return time.Since(began) }
	v := l.charge(ctx, l.store, sc, 0, states, r.Time, measure)
	d.StoreTime = v.spent
	if v.err != nil {
		d.Err = v.err
		l.fail(ctx, sc, &v, d, r.Time)
		return
	}
	d.settle(v.states, v.denied, ReasonWithin, ReasonOver)
	if v.denied {
		l.memory.remember(v.key, denial{
			group: v.group, states: v.states, binding: d.Binding, taken: now,
			retry: now + d.RetryAfter.Microseconds(),
		}, v.own, v.first, mono, now)
	}
}

// settle writes the outcome of a charge into the decision.
func (d *Decision) settle(states []State, denied bool, within, over Reason) {
	d.States = states
	d.Binding = binding(states)
	if !denied {
		d.Outcome, d.Reason = Admit, within
		return
	}
	d.Outcome, d.Reason = Refuse, over
	if d.Binding >= 0 {
		d.RetryAfter = states[d.Binding].RetryAfter
	}
}

// binding returns the index of the bucket that admits last, or of the one with
// the least room.
func binding(states []State) int {
	best := -1
	for i := range states {
		if best < 0 {
			best = i
			continue
		}
		a, b := &states[i], &states[best]
		switch {
		case a.RetryAfter != b.RetryAfter:
			if a.RetryAfter > b.RetryAfter {
				best = i
			}
		case a.Remaining < b.Remaining:
			best = i
		}
	}
	return best
}

// remembered answers from the deny memory for any key of the steps.
func (l *Limiter) remembered(sc *scratch, path string, mono time.Duration, now int64, d *Decision, reason Reason) bool {
	if l.memory.count.Load() == 0 {
		return false
	}
	for i := range sc.steps {
		if i > 0 && sc.steps[i].key == sc.steps[i-1].key {
			continue
		}
		den, ok := l.memory.lookup(sc.steps[i].key, path, mono, now)
		if !ok {
			continue
		}
		passed := micros(max(0, now-den.taken))
		d.States = make([]State, len(den.states))
		for j, s := range den.states {
			s.Reset = max(0, s.Reset-passed)
			if s.RetryAfter > 0 {
				s.RetryAfter = max(time.Microsecond, s.RetryAfter-passed)
			}
			d.States[j] = s
		}
		d.Binding = den.binding
		d.Outcome, d.Reason = Refuse, reason
		d.RetryAfter = max(time.Microsecond, micros(den.retry-now))
		return true
	}
	return false
}

// fail turns a store error into an outcome. What was charged before the error
// stays charged when the visitor is served, and is given back when not.
func (l *Limiter) fail(ctx context.Context, sc *scratch, v *verdict, d *Decision, t time.Time) {
	mode := l.policy.OnError
	if errors.Is(v.err, ErrSpent) && l.local != nil {
		mode = FailLocal
	}
	switch mode {
	case FailClosed:
		d.Outcome, d.Reason = Unavailable, ReasonStoreClosed
		if len(sc.charged) > 0 {
			l.giveBack(ctx, l.store, sc, len(sc.steps), nil, t.UnixMicro(), t)
		}
	case FailLocal:
		sc.charged = sc.charged[:0] // the shared rows keep what they got
		lv := l.charge(ctx, l.local, sc, v.at, v.states, t, func() time.Duration { return 0 })
		if lv.err != nil {
			d.settle(v.states, false, ReasonStoreOpen, "")
			return
		}
		d.settle(lv.states, lv.denied, ReasonStoreLocal, ReasonLocalOver)
	default:
		d.settle(v.states, false, ReasonStoreOpen, "")
	}
}

// countClaim charges a speculative request or a claim to the wide claims bucket
// in this instance's memory.
func (l *Limiter) countClaim(ctx context.Context, r *Request, d *Decision, who *party) {
	if d.Class == Speculative {
		d.Reason = ReasonPrefetch
	}
	path := cleanPath(r.Path)
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	now := r.Time.UnixMicro()
	if d.Class == Speculative && l.memory.count.Load() > 0 {
		// Refused when the client is limited already: its click will ask again.
		sc.reset()
		l.steps(sc, l.pages, who, path, now)
		if l.remembered(sc, path, l.mono(r.Time), now, d, ReasonSpeculating) {
			return
		}
	}
	if l.policy.Claims == ClaimsOff {
		return
	}
	sc.reset()
	l.steps(sc, l.claims, who, path, now)
	if len(sc.steps) == 0 {
		return
	}
	sc.claimStates = sc.claimStates[:0]
	v := l.charge(ctx, l.local, sc, 0, sc.claimStates, r.Time, func() time.Duration { return 0 })
	sc.claimStates = v.states[:0]
	if v.err != nil || !v.denied {
		return
	}
	d.settle(append([]State(nil), v.states...), true, "", ReasonClaims)
	if l.policy.Claims == ClaimsLog {
		d.Observe = true
	}
}
