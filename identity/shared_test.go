package identity

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

type event struct {
	at time.Time
	v  *visitor
}

// school returns 300 browsers behind one address and their 8 pages each, over
// ten hours, in order of time.
func school(n int) (people []*visitor, day []event) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		v := &visitor{addr: "203.0.113.9", agent: fmt.Sprintf("Mozilla/5.0 browser %d", i%12), keep: true}
		people = append(people, v)
		at := morning.Add(8*time.Hour + time.Duration(random.Int64N(int64(10*time.Hour))))
		for range 8 {
			day = append(day, event{at, v})
			at = at.Add(20*time.Second + time.Duration(random.Int64N(int64(4*time.Minute))))
		}
	}
	slices.SortStableFunc(day, func(a, b event) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return people, day
}

// TestSharedAddress is a school behind one address with a crawler among it: no
// person is limited, and the crawler is cut at the address's day.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	_, events := school(300)
	crawler := &visitor{addr: "203.0.113.9", agent: "crawler/1", plain: true}
	for at := morning.Add(11 * time.Hour); at.Before(morning.Add(day)); at = at.Add(time.Minute) {
		events = append(events, event{at, crawler})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	people, crawled, refused := 0, 0, 0
	charged := map[core.Kind]int{}
	for _, e := range events {
		d := e.v.visit(s, e.at)
		switch {
		case e.v == crawler && d.Outcome == core.Admit:
			crawled++
		case e.v == crawler:
			refused++
		case d.Outcome != core.Admit:
			t.Fatalf("%s: a person was limited: %s, key %v, states %+v", e.at.Format(time.TimeOnly), d.Reason, d.Key, d.States)
		default:
			people++
			charged[d.Key.Kind]++
		}
	}
	if people != 2400 {
		t.Errorf("%d pages of people, want 2400", people)
	}
	// The address pays for the crawler and for the first browsers of each kind,
	// whose first hits were made good to those who came later.
	if n := crawled + charged[rows.Address]; n > addressDay || crawled < addressDay-50 || refused == 0 {
		t.Errorf("crawler: %d admitted, %d refused, %d first hits of people charged to the address; want %d in all", crawled, refused, charged[rows.Address], addressDay)
	}
	t.Logf("people: %d pages by cookie or as newcomers, %d on the address; crawler: %d", charged[rows.Cookie], charged[rows.Address], crawled)
}

// TestCrawlerFirst is the same school on a day when somebody there has used the
// address up before the first bell.
func TestCrawlerFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	crawler := &visitor{addr: "203.0.113.9", agent: "crawler/1", plain: true}
	crawled := 0
	for at := morning; at.Before(morning.Add(8 * time.Hour)); at = at.Add(30 * time.Second) {
		if crawler.visit(s, at).Outcome == core.Admit {
			crawled++
		}
	}
	if crawled != addressDay {
		t.Fatalf("crawler: %d admitted, want %d", crawled, addressDay)
	}
	// The address is used up. Whoever comes now sees one 429, which brings the
	// cookie, and gets in by reloading; then newcomers pass at once.
	people, events := school(300)
	refusals := map[*visitor]int{}
	for _, e := range events {
		if d := e.v.visit(s, e.at); d.Outcome == core.Admit {
			continue
		}
		refusals[e.v]++
		if d := e.v.visit(s, e.at.Add(2*time.Second)); d.Outcome != core.Admit {
			t.Fatalf("reloading did not help: %s %v", d.Reason, d.Key)
		}
	}
	for v, n := range refusals {
		if n > 1 {
			t.Errorf("%s was refused %d times", v.agent, n)
		}
	}
	if len(refusals) == 0 || len(refusals) > 40 {
		t.Errorf("%d of %d people saw one refusal, want some of the first of each browser only", len(refusals), len(people))
	}
	t.Logf("%d of %d people saw one refusal", len(refusals), len(people))
}

// TestRushHour: fifty browsers open the site before any of them comes back.
func TestRushHour(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	var people []*visitor
	for range 50 {
		people = append(people, &visitor{addr: "203.0.113.9", agent: "Mozilla/5.0", keep: true})
	}
	for page := range 8 {
		for i, v := range people {
			if d := v.visit(s, morning.Add(time.Duration(page)*time.Minute+time.Duration(i)*time.Second)); d.Outcome != core.Admit {
				t.Fatalf("page %d of person %d: %s", page, i, d.Reason)
			}
		}
	}
	// The fifty first hits were moved: fifty more find the same welcome, though
	// the address's hour has room for ten.
	for i := range 50 + advance {
		v := &visitor{addr: "203.0.113.9", agent: "Mozilla/5.0", keep: true}
		if d := v.visit(s, morning.Add(9*time.Minute+time.Duration(i)*time.Second)); d.Outcome != core.Admit || d.Key.Kind != rows.Cookie {
			t.Fatalf("newcomer %d: %s, charged to %v", i, d.Reason, d.Key)
		}
	}
	v := &visitor{addr: "203.0.113.9", agent: "Mozilla/5.0", keep: true}
	if d := v.visit(s, morning.Add(11*time.Minute)); d.Key.Kind != rows.Address {
		t.Errorf("one newcomer more was charged to %v, want the address: nothing is left to move", d.Key)
	}
}

// spread returns n instants, evenly over a day.
func spread(n int) []time.Time {
	out := make([]time.Time, n)
	for i := range out {
		out[i] = morning.Add(time.Duration(i) * (day - time.Minute) / time.Duration(n))
	}
	return out
}

// TestMinters holds what clients that play with cookies get in a day from one
// address against the multiples that docs/identities.md states.
func TestMinters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config CookieConfig
		uses   int // of each cookie, the hit that minted it not counted
		most   int
		least  int
	}{
		{"drops every cookie", CookieConfig{}, 0, addressDay, addressDay},
		{"returns each once", CookieConfig{}, 1, networkDay, networkDay},
		{"uses each to its end", CookieConfig{}, 1 << 20, networkDay, networkDay},
		{"drops every cookie, admitted only", CookieConfig{AdmittedOnly: true}, 0, addressDay, addressDay},
		// Each cookie brings its minting hit and its return.
		{"returns each once, admitted only", CookieConfig{AdmittedOnly: true}, 1, 2 * (addressDay + cookieDay), addressDay + cookieDay},
		{"uses each to its end, admitted only", CookieConfig{AdmittedOnly: true}, 1 << 20, networkDay, networkDay},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.config, nil)
			admitted, minted := 0, map[string]bool{}
			v := &visitor{addr: "203.0.113.9", agent: "Mozilla/5.0", keep: true}
			used := 0
			for _, at := range spread(12_000) {
				had := v.cookie
				d := v.visit(s, at)
				if d.Outcome == core.Admit {
					admitted++
				}
				if v.cookie != had && v.cookie != "" {
					minted[v.cookie] = true
					used = 0
				} else {
					used++
				}
				if used >= tt.uses || d.Outcome != core.Admit && had != "" {
					v.cookie = ""
				}
			}
			if admitted > tt.most || admitted < tt.least {
				t.Errorf("%d admitted with %d cookies, want %d to %d", admitted, len(minted), tt.least, tt.most)
			}
			t.Logf("%d admitted, %d cookies minted: %.1f times the address", admitted, len(minted), float64(admitted)/addressDay)
		})
	}
}

// TestTenThousandCookies mints first and spends later, in parallel as it were.
func TestTenThousandCookies(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	admitted := 0
	var jar []*visitor
	for _, at := range spread(10_000) {
		v := &visitor{addr: "203.0.113.9", agent: "Mozilla/5.0", keep: true}
		if v.visit(s, at).Outcome == core.Admit {
			admitted++
		}
		if v.cookie == "" {
			t.Fatal("no cookie")
		}
		jar = append(jar, v)
	}
	if admitted != addressDay {
		t.Errorf("minting: %d admitted, want %d", admitted, addressDay)
	}
	before := s.store.writes
	admitted = 0
	for round := range 2 {
		for i, v := range jar {
			if v.visit(s, morning.Add(day+time.Duration(round)*time.Hour+time.Duration(i)*100*time.Millisecond)).Outcome == core.Admit {
				admitted++
			}
		}
	}
	if admitted != networkDay {
		t.Errorf("spending 10,000 cookies twice: %d admitted, want %d", admitted, networkDay)
	}
	// Once the network is full its refusal is remembered: the rest of the spray
	// costs next to nothing.
	if writes := s.store.writes - before; writes > 2*networkDay+2000 {
		t.Errorf("%d records written for 20,000 hits", writes)
	}
}

// TestSharedCookie: a cookie copied to 500 addresses is one key with one budget.
func TestSharedCookie(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	first := &visitor{addr: "203.0.113.9", agent: "a", keep: true}
	first.visit(s, morning)
	admitted, keys := 0, map[core.Key]bool{}
	for i := range 5000 {
		v := &visitor{addr: fmt.Sprintf("10.%d.%d.1", i%500/250, i%250), agent: "a", cookie: first.cookie}
		d := v.visit(s, morning.Add(time.Hour+time.Duration(i)*time.Second))
		keys[d.Key] = true
		if d.Outcome == core.Admit {
			admitted++
		}
	}
	if admitted != cookieDay || len(keys) != 1 {
		t.Errorf("%d admitted over %d keys, want %d over 1", admitted, len(keys), cookieDay)
	}
	// It was issued elsewhere: its returns moved no first hit to any of them.
	v := &visitor{addr: "10.0.1.1", agent: "a"}
	if d := v.visit(s, morning.Add(5*time.Hour)); d.Key.Kind != rows.Address {
		t.Errorf("a newcomer where the cookie was only used is charged to %v, want the address", d.Key)
	}
}
