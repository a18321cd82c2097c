package identity

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

// TestSeveralInstances is the school and its crawler over five instances that
// share a store and nothing else, requests landing anywhere: what each knows of
// first hits is its own, and the rule still holds.
func TestSeveralInstances(t *testing.T) {
	t.Parallel()
	first := newSite(t, CookieConfig{}, nil)
	instances := []*site{first}
	for range 4 {
		c := newCookies(t, CookieConfig{})
		l, err := core.New(*first.Policy(), core.Options{Store: first.store, Identifiers: []core.Identifier{c}})
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, &site{Limiter: l, Cookies: c, store: first.store})
	}
	_, events := school(300)
	crawler := &visitor{addr: "203.0.113.9", agent: "crawler/1", plain: true}
	for at := morning.Add(14 * time.Hour); at.Before(morning.Add(day)); at = at.Add(time.Minute) {
		events = append(events, event{at, crawler})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	crawled, limited := 0, 0
	for i, e := range events {
		d := e.v.visit(instances[i*7%len(instances)], e.at)
		switch {
		case e.v == crawler && d.Outcome == core.Admit:
			crawled++
		case e.v != crawler && d.Outcome != core.Admit:
			limited++
		}
	}
	if crawled > addressDay || crawled < addressDay/2 {
		t.Errorf("crawler: %d admitted, want at most %d", crawled, addressDay)
	}
	if limited != 0 {
		t.Errorf("%d pages of people refused", limited)
	}
	t.Logf("crawler: %d admitted; %d pages refused to people", crawled, limited)
}

// TestMinterOverInstances: a cookie may earn room on each instance, but the row
// that the room is in is shared: the stated multiple holds over all of them.
func TestMinterOverInstances(t *testing.T) {
	t.Parallel()
	first := newSite(t, CookieConfig{AdmittedOnly: true}, func(p *core.Policy) { p.Buckets = p.Buckets[:3] }) // no network bucket
	instances := []*site{first}
	for range 9 {
		c := newCookies(t, CookieConfig{AdmittedOnly: true})
		l, err := core.New(*first.Policy(), core.Options{Store: first.store, Identifiers: []core.Identifier{c}})
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, &site{Limiter: l, Cookies: c, store: first.store})
	}
	minted := 0
	v := &visitor{addr: "203.0.113.9", agent: "Mozilla/5.0", keep: true}
	for i, at := range spread(20_000) {
		// Mint one, show it to all, mint the next.
		if i%(len(instances)+1) == 0 {
			v.cookie = ""
			v.visit(instances[i%len(instances)], at)
			if v.cookie != "" {
				minted++
			}
			continue
		}
		v.visit(instances[i%len(instances)], at)
	}
	if minted > addressDay+cookieDay || minted < addressDay {
		t.Errorf("%d cookies minted in a day, want at most %d", minted, addressDay+cookieDay)
	}
	t.Logf("%d cookies minted", minted)
}
