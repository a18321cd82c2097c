package core

import (
	"context"
	"errors"
	"time"
)

// Decide classifies a request, finds who it is from, and charges it. A request
// that is not counted costs no store operation and no allocation. Decide always
// decides: see [Decision]. The store's own deadline bounds it, and ctx.
func (l *Limiter) Decide(ctx context.Context, r *Request) (d Decision) {
	d.Binding, d.Observe = -1, l.policy.Observe
	if l.policy.Off {
		d.Reason = ReasonOff
		return d
	}
	d.Class, d.Reason = l.policy.Count.classify(r)
	if d.Class == Ignored {
		return d
	}
	who := l.identify(r, &d)
	if l.exempt(r, &d, &who) {
		return d
	}
	l.decide(ctx, r, &d, &who)
	return d
}

// decide charges, and reviews a refusal.
func (l *Limiter) decide(ctx context.Context, r *Request, d *Decision, who *party) {
	if l.control == nil {
		l.charges(ctx, r, d, who)
		return
	}
	generation := l.control.generation.Load()
	l.charges(ctx, r, d, who)
	if d.Outcome == Refuse {
		l.review(ctx, r, d, who, generation)
	}
}

// charges charges a request to what its class is charged to.
func (l *Limiter) charges(ctx context.Context, r *Request, d *Decision, who *party) {
	if d.Class == Counted {
		l.count(ctx, r, d, who)
	} else {
		l.countClaim(ctx, r, d, who)
	}
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
			if len(l.pages.own[found.Kind]) == 0 {
				break // no bucket counts it: being known must not mean being unlimited
			}
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
	began := time.Since(l.made)
	v := l.charge(ctx, l.store, sc, 0, states, r.Time)
	d.StoreTime = max(1, time.Since(l.made)-began) // never 0: the store was asked
	if v.err != nil {
		d.Err = v.err
		l.fail(ctx, sc, &v, d, r.Time)
		return
	}
	d.settle(v.states, v.denied, ReasonWithin, ReasonOver)
	if d.Outcome == Refuse && d.Binding >= 0 && d.States[d.Binding].Suspended {
		d.Reason = ReasonSuspended
	}
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
		copy(d.States, den.states)
		for j := range d.States {
			s := &d.States[j]
			s.Reset = max(0, s.Reset-passed)
			if s.RetryAfter > 0 {
				s.RetryAfter = max(time.Microsecond, s.RetryAfter-passed)
			}
		}
		d.Binding = den.binding
		d.Outcome, d.Reason = Refuse, reason
		if reason == ReasonRemembered && den.binding >= 0 && d.States[den.binding].Suspended {
			d.Reason = ReasonSuspended
		}
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
		lv := l.charge(ctx, l.local, sc, v.at, v.states, t)
		if lv.err != nil {
			d.settle(v.states, false, ReasonStoreOpen, "")
			return
		}
		d.settle(lv.states, lv.denied, ReasonStoreLocal, ReasonLocalOver)
	default:
		d.settle(v.states, false, ReasonStoreOpen, "")
	}
}
