package core

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	creditLife  = 10 * time.Second
	creditsMost = 8192
	creditHops  = 20 // browsers give up at 20 redirects too
)

// A creditMemory remembers where counted requests were redirected to, so that
// a chain of redirects counts once. It is bounded; a forgotten credit counts
// one hop more. Safe for concurrent use.
type creditMemory struct {
	any     atomic.Bool // a credit was ever granted; until then nobody takes the lock
	mu      sync.Mutex
	credits map[creditKey]credit
	order   []creditKey // as granted; a ring once it is full
	next    int
}

type creditKey struct {
	own    Key
	target string // host, path and query
}

type credit struct {
	until time.Time
	hops  int
}

func newCreditMemory() *creditMemory {
	return &creditMemory{credits: map[creditKey]credit{}}
}

// grant leaves one credit for the client and that exact target.
func (m *creditMemory) grant(own Key, target string, hops int, now time.Time) {
	if hops > creditHops || len(target) > 4096 {
		return
	}
	k := creditKey{own, strings.Clone(target)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.credits[k]; !ok {
		if len(m.order) < creditsMost {
			m.order = append(m.order, k)
		} else {
			delete(m.credits, m.order[m.next])
			m.order[m.next] = k
			m.next = (m.next + 1) % creditsMost
		}
	}
	m.credits[k] = credit{until: now.Add(creditLife), hops: hops}
	m.any.Store(true)
}

// spend uses the credit for a request, if there is one.
func (m *creditMemory) spend(own Key, r *Request) bool {
	if !m.any.Load() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := creditKey{own, target(r)}
	c, ok := m.credits[k]
	if !ok || c.until.IsZero() {
		return false
	}
	// The hop stays known, without credit, so that its own redirect goes on with
	// the count of hops.
	m.credits[k] = credit{hops: c.hops}
	return r.Time.Before(c.until)
}

// hops returns how many redirects led to a request.
func (m *creditMemory) hops(own Key, r *Request) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.credits[creditKey{own, target(r)}].hops
}

// target is a request in the form of Answer.Location.
func target(r *Request) string {
	if r.RawQuery == "" {
		return r.Host + r.Path
	}
	return r.Host + r.Path + "?" + r.RawQuery
}

// Answer is what a reverse proxy learned from the origin about a request.
type Answer struct {
	Status      int
	ContentType string // the field's value
	// Location of a redirect: host, decoded path and query of the target in the
	// form "example.org/x?y", as the next request will have them; empty = none.
	Location string
}

// Answered tells the limiter what the origin answered; only a reverse proxy can.
// A counted request that was redirected leaves a credit for the next hop. A
// request that passed because it claimed to be for an asset, but got a page, is
// charged as the navigation it is: Answered then changes d and returns true, and
// the caller logs d and refuses the answer if d.Refused(). Call it once for each
// request, before the answer's body.
func (l *Limiter) Answered(ctx context.Context, r *Request, d *Decision, a Answer) bool {
	if a.Status >= 300 && a.Status < 400 && a.Status != 304 {
		if a.Location != "" && d.Class == Counted && (d.Outcome == Admit || d.Reason == ReasonRedirect) {
			hops := 0
			if d.Reason == ReasonRedirect {
				hops = l.credits.hops(d.Key, r)
			}
			l.credits.grant(d.Key, a.Location, hops+1, r.Time)
		}
		return false
	}
	if a.Status < 200 || a.Status > 299 || !isHTML(a.ContentType) {
		return false
	}
	late := Decision{Binding: -1, Observe: l.policy.Observe, Class: l.lie(r, d), Reason: d.Reason}
	if late.Class == Ignored {
		return false
	}
	who := l.identify(r, &late)
	if l.exempt(r, &late, &who) {
		return false
	}
	l.charges(ctx, r, &late, &who)
	if late.Outcome == Pass {
		return false
	}
	*d = late
	return true
}

// lie returns what a request is charged as that got a page although it had said
// that it could not use one: Counted, Claim, or Ignored when it did not lie.
// Speculations, frames and framework fetches never do.
func (l *Limiter) lie(r *Request, d *Decision) Class {
	if d.Outcome != Pass || d.Class == Counted || d.Class == Speculative {
		return Ignored
	}
	dest, valid := fieldToken(r.first("Sec-Fetch-Dest"))
	switch {
	case d.Class == Claim:
		if valid && neverPage(dest) {
			return Counted
		}
	case d.Reason == ReasonUpgrade:
		// No WebSocket answers with a page. But a site that answers every path
		// with one does, and its scripts then try again and again: a claim, so
		// that a liar gets little and a reader is not locked out.
		return Claim
	case d.Reason == ReasonFeed:
		return Claim // a feed is no page view, but most sites ignore the query and send the page
	case d.Reason == ReasonPath:
		// The built-in list calls it an asset by its extension, or a feed by its
		// name; an operator's own list is an order, and so are names such as
		// /favicon.ico.
		path := cleanPath(r.Path)
		if l.policy.Count.Exclude != nil || !guessed(path) {
			return Ignored
		}
		if feedPaths().matchClean(path) {
			return Claim
		}
		if valid && (dest == "document" || neverPage(dest)) {
			return Counted
		}
		if !valid {
			return Claim // a bot, or a browser without TLS whose style sheet is missing
		}
	}
	return Ignored
}

// neverPage lists the destinations that cannot use an HTML page.
func neverPage(dest string) bool {
	switch dest {
	case "image", "style", "script", "font", "audio", "video", "track":
		return true
	}
	return false
}

func isHTML(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.TrimSpace(t)
	return strings.EqualFold(t, "text/html") || strings.EqualFold(t, "application/xhtml+xml")
}
