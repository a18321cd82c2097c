package core

import "context"

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
	// Refused when the client is limited already: a speculation, whose click will
	// ask again, and a handshake whose answer was seen to be a page.
	speculating, found := d.Class == Speculative, d.Reason == ReasonUpgrade && !r.Blind
	if (speculating || found) && l.memory.count.Load() > 0 {
		reason := ReasonRemembered
		if speculating {
			reason = ReasonSpeculating
		}
		sc.reset()
		l.steps(sc, l.pages, who, path, now)
		if l.remembered(sc, path, l.mono(r.Time), now, d, reason) {
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
	v := l.charge(ctx, l.local, sc, 0, sc.claimStates, r.Time)
	sc.claimStates = v.states[:0]
	if v.err != nil || !v.denied {
		return
	}
	d.settle(append([]State(nil), v.states...), true, "", ReasonClaims)
	if l.policy.Claims == ClaimsLog {
		d.Observe = true
	}
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
