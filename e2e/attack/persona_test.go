// Package attack_test plays hostile clients against a Stile and measures what
// they got. docs/threat-model.md prints the figures; the test fails when they
// are no longer true.
package attack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
)

// The policy under attack: the example's limits and one over the network, with
// the claims bucket as it comes.
const (
	perHour      = 60
	perDay       = 200
	perNetwork   = 2000
	claimsFactor = 20
	claimsPerDay = claimsFactor * perDay
)

var policyText = fmt.Sprintf(`
version: 1
site: attacked
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [127.0.0.1/32]}
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: %d, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 24h}
  - {name: network-day, key: network, algorithm: fixed-window, limit: %d, window: 24h}
`, perHour, perDay, perNetwork)

// midnight is when the attacked day begins; windows of a day are UTC's.
var midnight = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// mostAsked bounds what one persona may ask for. Whoever gets that much was not
// limited.
const mostAsked = 6000

// A mode is the place that Stile has.
type mode int

const (
	through mode = iota // a reverse proxy, which sees the site's answers
	beside              // an authorizer or forward-auth endpoint, which does not
)

// An arena is one attacked Stile with a clock of its own.
type arena struct {
	t      *testing.T
	mode   mode
	stile  *stand.Stile
	origin *stand.Origin
	clock  atomic.Pointer[time.Time]
}

func newArena(t *testing.T, m mode, text string) *arena {
	t.Helper()
	a := &arena{t: t, mode: m, origin: stand.InProcess()}
	a.at(midnight)
	o := stand.Options{Now: a.now}
	if m == through {
		o.Origin, o.Transport = a.origin.URL, a.origin
	}
	a.stile = stand.Start(t, text, o)
	return a
}

func (a *arena) now() time.Time       { return *a.clock.Load() }
func (a *arena) at(t time.Time)       { a.clock.Store(&t) }
func (a *arena) pass(d time.Duration) { a.at(a.now().Add(d)) }

// A shot is one hostile request. The zero value of everything but Path is a
// plain client that says nothing about itself.
type shot struct {
	from   string // what the trusted proxy writes; "" = 203.0.113.9
	method string
	path   string
	fields []string
	// instead are the fields of a second try, made at once when the first is
	// refused; nil = none.
	instead []string
	// at is when in the day it is sent; 0 = at once.
	at time.Duration
}

// fire sends a shot and reports whether it got a page, else how long to wait.
// Beside, the site is asked when Stile says 200, as a proxy would.
func (a *arena) fire(s shot) (page bool, wait time.Duration) {
	a.t.Helper()
	method := s.method
	if method == "" {
		method = "GET"
	}
	from := s.from
	if from == "" {
		from = "203.0.113.9"
	}
	build := func(target string) *http.Request {
		r := httptest.NewRequest(method, target, nil)
		r.RemoteAddr = "127.0.0.1:50000"
		for _, f := range s.fields {
			name, value, _ := strings.Cut(f, ": ")
			r.Header.Add(name, value)
		}
		r.Header.Add("X-Forwarded-For", from)
		return r
	}
	rec := httptest.NewRecorder()
	switch a.mode {
	case through:
		a.stile.Handler().ServeHTTP(rec, build(s.path))
	case beside:
		q := build("/check")
		q.Method = http.MethodGet
		q.Header.Set("X-Forwarded-Method", method)
		q.Header.Set("X-Forwarded-Uri", s.path)
		a.stile.Handler().ServeHTTP(rec, q)
		if rec.Code == http.StatusOK {
			rec = httptest.NewRecorder()
			a.origin.ServeHTTP(rec, build(s.path))
		}
	}
	switch {
	case rec.Code == http.StatusOK && strings.Contains(rec.Body.String(), "<p>page "):
		return true, 0
	case rec.Code == http.StatusTooManyRequests:
		n, err := strconv.Atoi(rec.Header().Get("Retry-After"))
		if err != nil || n < 1 {
			a.t.Fatalf("429 with Retry-After %q", rec.Header().Get("Retry-After"))
		}
		return false, time.Duration(n) * time.Second
	}
	a.t.Fatalf("%s: %d %s", s.path, rec.Code, rec.Body.String())
	return false, 0
}

// breather is how long a persona waits after a refusal that says less: it would
// otherwise get page after page as the hour slides, and no more in a day.
const breather = 30 * time.Minute

// day asks for article after article until the day is over: at full speed, and
// after a refusal again when it says. It returns how many pages were got, at most
// mostAsked.
func (a *arena) day(next func(i int) shot) (got int) {
	a.t.Helper()
	begin := a.now()
	end := begin.Add(24 * time.Hour)
	for i := 0; i < mostAsked; i++ {
		s := next(i)
		if at := begin.Add(s.at); at.After(a.now()) {
			if !at.Before(end) {
				break
			}
			a.at(at)
		}
		page, wait := a.fire(s)
		if !page && s.instead != nil {
			var second time.Duration
			s.fields = s.instead
			page, second = a.fire(s)
			wait = min(wait, second)
		}
		if page {
			got++
			continue
		}
		if s.at > 0 {
			continue // it keeps its pace, whatever it is told
		}
		if a.pass(max(wait, breather)); !a.now().Before(end) {
			break
		}
	}
	return got
}

// article makes the path of the next article.
func article(i int) string { return fmt.Sprintf("/article/%d", i) }
