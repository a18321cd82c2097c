package identity

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
)

const (
	day       = 24 * time.Hour
	oneSecret = "first-secret-of-the-tests-0123456789"
	newSecret = "second-secret-of-the-tests-987654321"
)

// morning is the beginning of a calendar day.
var morning = time.Date(2026, 10, 6, 0, 0, 0, 0, time.UTC)

// The limits of the tests, as docs/identities.md states them.
const (
	addressHour, addressDay = 60, 200
	cookieDay               = 600
	networkDay              = 4000
)

func newCookies(t testing.TB, c CookieConfig) *Cookies {
	t.Helper()
	if c.Secrets == nil {
		c.Secrets = []string{oneSecret}
	}
	if c.Site == "" {
		c.Site = "example"
	}
	out, err := NewCookies(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// site is a limiter over the memory store, with the policy of the docs.
type site struct {
	*core.Limiter
	*Cookies
	store *meter
}

func newSite(t testing.TB, c CookieConfig, change func(*core.Policy)) *site {
	t.Helper()
	s := &site{Cookies: newCookies(t, c), store: &meter{Store: memory.New(memory.Config{})}}
	p := core.Policy{Site: "example", Claims: core.ClaimsOff, Buckets: []core.Bucket{
		{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: addressHour, Window: time.Hour},
		{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: addressDay, Window: day},
		{Name: "visitor", Key: rows.Cookie, Algorithm: core.FixedWindow, Limit: cookieDay, Window: day, Visitor: true},
		{Name: "network", Key: rows.Network, Algorithm: core.FixedWindow, Limit: networkDay, Window: day},
	}}
	if change != nil {
		change(&p)
	}
	l, err := core.New(p, core.Options{Store: s.store, Identifiers: []core.Identifier{s.Cookies}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	s.Limiter = l
	return s
}

// meter counts the rows that are written.
type meter struct {
	*memory.Store
	writes int
}

func (m *meter) Apply(ctx context.Context, b *core.Batch) error {
	for i := range b.Rows {
		if b.Rows[i].Writes() {
			m.writes++
		}
	}
	return m.Store.Apply(ctx, b)
}

// visitor is one HTTP client. With keep it has a cookie jar.
type visitor struct {
	addr   string
	agent  string
	plain  bool // no fetch metadata
	keep   bool
	cookie string // name=value
}

func (v *visitor) request(at time.Time) *core.Request {
	h := http.Header{"User-Agent": {v.agent}}
	if !v.plain {
		h.Set("Sec-Fetch-Dest", "document")
	}
	if v.cookie != "" {
		h.Set("Cookie", "theme=dark; "+v.cookie+"; lang=en")
	}
	return &core.Request{Method: "GET", Host: "example.org", Path: "/article", Header: h, Peer: netip.MustParseAddr(v.addr), Time: at}
}

// visit navigates once. The answer is one that no shared cache may store.
func (v *visitor) visit(s *site, at time.Time) core.Decision {
	r := v.request(at)
	d := s.Decide(context.Background(), r)
	if set := s.Offer(r, &d); set != "" && v.keep {
		v.cookie, _, _ = strings.Cut(set, ";")
	}
	return d
}

func request(cookies ...string) *core.Request {
	h := http.Header{}
	for _, c := range cookies {
		h.Add("Cookie", c)
	}
	return &core.Request{Method: "GET", Path: "/", Header: h, Time: morning}
}

var client = netip.MustParseAddr("198.51.100.7")
