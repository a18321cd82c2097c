package attack_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/identity"
	"github.com/stilehq/stile/stores/memory"
)

// cookieSite is a limiter with signed cookies, played without HTTP: what is
// asked here is what a cookie buys.
type cookieSite struct {
	t       *testing.T
	limiter *core.Limiter
	cookies *identity.Cookies
	now     time.Time
}

func newCookieSite(t *testing.T) *cookieSite {
	t.Helper()
	cookies, err := identity.NewCookies(identity.CookieConfig{Secrets: []string{strings.Repeat("s", 32)}, Site: "attacked"})
	if err != nil {
		t.Fatal(err)
	}
	store, local := memory.New(memory.Config{}), memory.New(memory.Config{})
	t.Cleanup(func() { store.Close(); local.Close() })
	limiter, err := core.New(core.Policy{
		Site: "attacked",
		Buckets: []core.Bucket{
			{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: perHour, Window: time.Hour},
			{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: perDay, Window: 24 * time.Hour},
			{Name: "visitor-day", Key: rows.Cookie, Algorithm: core.FixedWindow, Limit: perDay, Window: 24 * time.Hour},
			{Name: "network-day", Key: rows.Network, Algorithm: core.FixedWindow, Limit: perNetwork, Window: 24 * time.Hour},
		},
	}, core.Options{Store: store, Local: local, Identifiers: []core.Identifier{cookies}})
	if err != nil {
		t.Fatal(err)
	}
	return &cookieSite{t: t, limiter: limiter, cookies: cookies, now: midnight}
}

// open asks for a page and returns whether it was got, and the cookie that came
// with the answer, "" for none.
func (s *cookieSite) open(from, cookie, path string) (page bool, given string) {
	h := http.Header{"Sec-Fetch-Dest": {"document"}, "User-Agent": {"crawler"}}
	if cookie != "" {
		h.Set("Cookie", s.cookies.Name()+"="+cookie)
	}
	r := &core.Request{Method: "GET", Host: "site.test", Path: path, Header: h, Peer: netip.MustParseAddr(from), Time: s.now}
	d := s.limiter.Decide(s.t.Context(), r)
	if set := s.cookies.Offer(r, &d); set != "" {
		value, _, _ := strings.Cut(set, ";")
		_, given, _ = strings.Cut(value, "=")
	}
	return d.Outcome == core.Admit, given
}

// TestCookieMinter takes new cookies as often as they are given, and reads with
// each: the network's limit is what holds.
func TestCookieMinter(t *testing.T) {
	t.Parallel()
	for name, perCookie := range map[string]int{"one page each": 1, "every page of each": perDay} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCookieSite(t)
			got := 0
			for i := 0; i < 3*perNetwork; {
				page, fresh := s.open("203.0.113.9", "", article(i))
				i++
				if page {
					got++
				}
				for range perCookie {
					if fresh == "" {
						break
					}
					if page, _ := s.open("203.0.113.9", fresh, article(i)); page {
						got++
					}
					i++
				}
			}
			if got > perNetwork {
				t.Errorf("%d pages, and the network's limit is %d", got, perNetwork)
			}
			t.Logf("%s: %d pages", name, got)
		})
	}
}

// sharedNetworks is from how many networks TestCookieSharer reads.
const sharedNetworks = 250

// TestCookieSharer reads with one cookie from many networks: they are one
// visitor.
func TestCookieSharer(t *testing.T) {
	t.Parallel()
	s := newCookieSite(t)
	_, cookie := s.open("203.0.113.9", "", "/")
	if cookie == "" {
		t.Fatal("no cookie was given")
	}
	got := 0
	for i := range 3 * perDay {
		if page, _ := s.open(fmt.Sprintf("198.18.%d.%d", i%sharedNetworks, i/sharedNetworks+1), cookie, article(i)); page {
			got++
		}
	}
	if got != perDay {
		t.Errorf("one cookie from %d networks got %d pages, want %d", sharedNetworks, got, perDay)
	}
}

// TestCookieForger makes cookies up, changes real ones and uses another site's:
// all of that is a client without one.
func TestCookieForger(t *testing.T) {
	t.Parallel()
	s := newCookieSite(t)
	_, real := s.open("203.0.113.200", "", "/")
	elsewhere, err := identity.NewCookies(identity.CookieConfig{Secrets: []string{strings.Repeat("s", 32)}, Site: "another"})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for i := range 3 * perDay {
		forged := real
		switch i % 4 {
		case 0:
			forged = strings.Repeat("A", len(real))
		case 1:
			b := []byte(real)
			b[i%len(b)] ^= 1
			forged = string(b)
		case 2:
			forged = real + "="
		case 3:
			forged = elsewhere.Issue(s.now, netip.MustParseAddr("203.0.113.9"))
		}
		if page, _ := s.open("203.0.113.9", forged, article(i)); page {
			got++
		}
	}
	if got > perHour {
		t.Errorf("%d pages with forged cookies, want the address's %d", got, perHour)
	}
}
