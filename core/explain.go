package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Step is one sentence of an explanation.
type Step struct {
	Topic string // "client", "class", "identity", "exempt", "buckets", "outcome"
	Text  string // for the operator; may quote the request, so escape it when shown
}

// An Explanation is what a request would meet, and why.
type Explanation struct {
	Decision Decision // as if the request were made now; nothing was charged
	Steps    []Step
}

func (e *Explanation) say(topic, format string, args ...any) {
	e.Steps = append(e.Steps, Step{topic, fmt.Sprintf(format, args...)})
}

// Explain says what Decide would do with a request and why, header by header.
// It reads the store once for each row and charges nothing; what this instance
// remembers of refused keys is used, and left as it is.
func (l *Limiter) Explain(ctx context.Context, r *Request) Explanation {
	e := Explanation{Decision: Decision{Binding: -1, Observe: l.policy.Observe}}
	d := &e.Decision
	if l.policy.Off {
		d.Reason = ReasonOff
		e.say("outcome", "passes: the policy is switched off (mode: off)")
		return e
	}
	d.Class, d.Reason = l.policy.Count.classify(r)
	l.explainClass(&e, r)
	who := l.identify(r, d)
	l.explainClient(&e, r, &who)
	if d.Class == Ignored {
		e.say("outcome", "passes: it is not for a page, and touches no bucket")
		return e
	}
	if l.exempt(r, d, &who) {
		e.explainExempt()
		return e
	}
	e.explainCrawler(&who)
	plan, store := l.pages, l.store
	if d.Class != Counted {
		plan, store = l.claims, l.local
		if l.policy.Claims == ClaimsOff {
			e.say("outcome", "passes: claims are not counted (count.claims: off)")
			return e
		}
		e.say("buckets", "asked of the claims bucket of this instance: %d times the page limits, no store operation", l.policy.ClaimsFactor)
	}
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.reset()
	path, now := cleanPath(r.Path), r.Time.UnixMicro()
	l.steps(sc, plan, &who, path, now)
	if len(sc.steps) == 0 {
		if d.Class == Counted {
			d.Reason = ReasonNoBucket
		}
		e.say("outcome", "passes: no bucket applies to this client and path")
		return e
	}
	if d.Class == Counted && l.remembered(sc, path, l.mono(r.Time), now, d, ReasonRemembered) {
		e.say("buckets", "this instance remembers the refusal: no store operation until it ends")
		l.explainControl(ctx, &e, r.Time)
		l.explainOutcome(&e)
		return e
	}
	states, err := l.peek(ctx, store, sc, now, r.Time)
	if err != nil {
		d.Err = err
		e.say("store", "could not be read: %v", err)
		l.explainFailure(ctx, &e, sc, now, r.Time)
		return e
	}
	denied := false
	for _, s := range states {
		denied = denied || s.RetryAfter > 0
	}
	within, over := ReasonWithin, ReasonOver
	if i := binding(states); d.Class == Counted && i >= 0 && states[i].Suspended {
		over = ReasonSuspended
	}
	if d.Class != Counted {
		within, over = d.Reason, ReasonClaims
		d.Observe = d.Observe || l.policy.Claims == ClaimsLog
	}
	d.settle(states, denied, within, over)
	if d.Class != Counted && !denied {
		d.Outcome = Pass
	}
	l.explainControl(ctx, &e, r.Time)
	l.explainOutcome(&e)
	return e
}

// explainFailure says what the failure policy makes of a store that cannot be
// read: what Decide would.
func (l *Limiter) explainFailure(ctx context.Context, e *Explanation, sc *scratch, now int64, t time.Time) {
	d, mode := &e.Decision, l.policy.OnError
	if errors.Is(d.Err, ErrSpent) && l.local != nil {
		mode = FailLocal
	}
	switch mode {
	case FailClosed:
		d.Outcome, d.Reason = Unavailable, ReasonStoreClosed
		e.say("outcome", "answered with 503 while that lasts (store.on_error: closed)")
		return
	case FailLocal:
		states, err := l.peek(ctx, l.local, sc, now, t)
		if err == nil {
			denied := slices.ContainsFunc(states, func(s State) bool { return s.RetryAfter > 0 })
			d.settle(states, denied, ReasonStoreLocal, ReasonLocalOver)
			e.say("store", "this instance counts by itself meanwhile (store.on_error: local, or a spending limit)")
			l.explainOutcome(e)
			return
		}
	}
	d.settle(nil, false, ReasonStoreOpen, "")
	e.say("outcome", "admitted uncounted while that lasts (store.on_error: open)")
}

// explainControl adds what the control record says of a refusal.
func (l *Limiter) explainControl(ctx context.Context, e *Explanation, t time.Time) {
	if l.control == nil || e.Decision.Outcome != Refuse {
		return
	}
	if c, err := l.Control(ctx, t); err == nil && c.OpenUntil.After(t) {
		e.Decision.Observe = true
		e.say("outcome", "the operator lets nobody be refused until %s", c.OpenUntil.UTC().Format(time.RFC3339))
	}
}

// peek reads the rows of all steps in one trip and returns the states that the
// next hit would meet.
func (l *Limiter) peek(ctx context.Context, store Store, sc *scratch, now int64, t time.Time) ([]State, error) {
	at := len(sc.rows)
	for i := range sc.steps {
		l.append(sc, &sc.steps[i], now, false)
	}
	if err := store.Apply(ctx, sc.trip(at, t)); err != nil {
		return nil, err
	}
	var states []State
	for i := range sc.steps {
		n := 1
		if s := sc.steps[i].stage; s != nil {
			n = len(s.rows)
		}
		states = l.judge(states, sc, &sc.steps[i], sc.rows[at:at+n], now, true)
		at += n
	}
	return states, nil
}

// Peek returns the states that the next navigation of a key would meet, charging
// nothing. Anchor is a cookie's issue, zero for other keys. The error is the
// store's. Network, ASN and global keys work as own ones do.
func (l *Limiter) Peek(ctx context.Context, k Key, anchor, t time.Time) ([]State, error) {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.reset()
	now, at := t.UnixMicro(), anchorMicros(anchor)
	for _, g := range l.pages.groupsOf(k) {
		sc.addSteps(g, k, k.Kind.Own(), 1, now, at)
	}
	return l.peek(ctx, l.store, sc, now, t)
}

func (l *Limiter) explainClass(e *Explanation, r *Request) {
	d := &e.Decision
	dest, purpose := r.first("Sec-Fetch-Dest"), r.first("Sec-Purpose")
	switch {
	case d.Class == Counted && dest == "":
		e.say("class", "counted: a page path, and no Sec-Fetch-Dest says otherwise (bots and old browsers send none)")
	case d.Class == Counted && dest == "document":
		e.say("class", "counted: Sec-Fetch-Dest: document is a top-level navigation")
	case d.Class == Counted:
		e.say("class", "counted: Sec-Fetch-Dest: %s with Upgrade-Insecure-Requests: 1 and Accept text/html is a navigation that a service worker passes on", dest)
	case d.Class == Speculative:
		e.say("class", "speculative: Sec-Purpose or a predecessor says prefetch (%q); never counted as a page", purpose)
	case d.Reason == ReasonDestination:
		e.say("class", "claim: Sec-Fetch-Dest: %s is not a top-level navigation", dest)
	case d.Reason == ReasonAccept:
		e.say("class", "claim: Accept asks for something that is no page (%q)", r.first("Accept"))
	case d.Reason == ReasonUpgrade:
		e.say("class", "ignored: a WebSocket handshake")
	case d.Reason == ReasonMethod:
		e.say("class", "ignored: method %s is not counted (count.methods)", r.Method)
	case d.Reason == ReasonFeed && d.Class == Claim:
		e.say("class", "claim: path or query asks for a feed, and nobody sees whether one is answered")
	case d.Reason == ReasonFeed:
		e.say("class", "ignored: the query asks for a feed")
	default:
		e.say("class", "ignored: path %s is excluded or not included (count.exclude, count.include)", cleanPath(r.Path))
	}
}

func (l *Limiter) explainClient(e *Explanation, r *Request, who *party) {
	d := &e.Decision
	source := [...]string{"the connection", "X-Forwarded-For", "header " + l.policy.Client.Header, "the platform's field"}[l.policy.Client.From]
	switch {
	case !d.Client.Addr.IsValid():
		e.say("client", "unidentified (%s, from %s): charged to a key of its own with %d times the limits, never mixed with real clients", d.Client.Problem, source, unidentifiedFactor)
	case d.Client.Problem != ClientOK:
		e.say("client", "%s, the connection's address, because %s is %s", d.Client.Addr, source, d.Client.Problem)
	default:
		e.say("client", "%s, from %s", d.Client.Addr, source)
	}
	if d.Identity.Kind != 0 {
		e.say("identity", "%s %s, proven by %s", d.Identity.Kind, d.Identity.ID, d.Identity.Proof)
	} else {
		e.say("identity", "none proven: known by address, charged to %s", who.own)
	}
}

func (e *Explanation) explainExempt() {
	d := &e.Decision
	if d.Reason == ReasonNetwork {
		e.say("exempt", "network %s is exempt: %s", d.Network.Prefix, d.Network.Reason)
	} else {
		e.say("exempt", "verified crawler %s (%s), by %s", d.Crawler.Name, d.Crawler.Class, d.Crawler.Proof)
	}
	e.say("outcome", "passes uncounted")
}

func (e *Explanation) explainCrawler(who *party) {
	d := &e.Decision
	switch {
	case d.Crawler.Verified:
		e.say("exempt", "verified crawler %s (%s), by %s: the policy limits its class", d.Crawler.Name, d.Crawler.Class, d.Crawler.Proof)
	case d.Crawler.Claimed:
		e.say("exempt", "says it is %s, which neither its address nor a signature proves: the ordinary limit", d.Crawler.Name)
	}
	if d.Network.Prefix.IsValid() {
		e.say("exempt", "network %s: %s", d.Network.Prefix, d.Network.Reason)
	}
	if who.multiply > 1 && d.Client.Addr.IsValid() {
		e.say("buckets", "own limits are multiplied by %d", who.multiply)
	}
}

func (l *Limiter) explainOutcome(e *Explanation) {
	d := &e.Decision
	for i, s := range d.States {
		mark := ""
		if i == d.Binding {
			mark = " (binding)"
		}
		e.say("buckets", "%s per %s: %d of %d%s", s.Bucket, s.Key, s.Count, s.Limit, mark)
		for j := range l.policy.Buckets {
			// The bound of stores/wrap.Behind, which holds the hits.
			if b := &l.policy.Buckets[j]; b.Name == s.Bucket && b.FlushEvery > 0 {
				e.say("buckets", "%s is coalesced: each further instance may admit at most %d above the limit, and reports its hits within %s", s.Bucket, max(1, s.Limit/128), b.FlushEvery)
			}
		}
	}
	switch {
	case d.Outcome == Refuse && d.Reason == ReasonSuspended && !d.Observe:
		e.say("outcome", "refused with 429: suspended by the operator for another %s", d.RetryAfter.Round(time.Second))
	case d.Outcome == Refuse && d.Observe:
		e.say("outcome", "would be refused (%s) for %s; observed only", d.Reason, d.RetryAfter.Round(time.Second))
	case d.Outcome == Refuse:
		e.say("outcome", "refused with 429 (%s); may come back in %s", d.Reason, d.RetryAfter.Round(time.Second))
	default:
		e.say("outcome", "%s (%s)", d.Outcome, d.Reason)
	}
}
