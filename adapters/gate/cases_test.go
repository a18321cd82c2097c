package gate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
)

// What users of other limiters reported, as requests to the gate.

func TestInventedChainsAreOneClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(10), pages)
	n := 0
	for i := range 12 {
		got := r.get("", fmt.Sprintf("/%d", i), fmt.Sprintf("X-Forwarded-For: 127.0.0.%d, 203.0.113.9", i))
		if i%2 == 1 {
			got = r.get("", fmt.Sprintf("/%d", i), fmt.Sprintf("X-Forwarded-For: 127.0.0.%d", i), "X-Forwarded-For: 203.0.113.9:4711")
			n++
		}
		if n++; (got.status == 200) != (n <= 10) {
			t.Fatalf("request %d: %d", n, got.status)
		}
	}
}

// TestVictimIsStillServed: an attacker names the victim in every field there is.
func TestVictimIsStillServed(t *testing.T) {
	t.Parallel()
	p := hourly(2)
	p.Client = core.ClientSource{From: core.FromRemote}
	r := newRig(t, p, pages)
	const victim = "198.51.100.7"
	var fields []string
	for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP", "Fastly-Client-IP", "X-Cluster-Client-IP", "CloudFront-Viewer-Address", "X-Original-Forwarded-For", "X-Appengine-User-Ip", "X-Fah-Client-Ip"} {
		fields = append(fields, name+": "+victim)
	}
	fields = append(fields, "Forwarded: for="+victim)
	for range 5 {
		r.get("", "/", fields...)
	}
	for _, e := range r.entries() {
		if e.IP != "127.0.0.1" {
			t.Errorf("charged %s", e.IP)
		}
	}
}

func TestEmptyRemoteAddressIsServedAndLogged(t *testing.T) {
	t.Parallel()
	p := hourly(1)
	p.Client = core.ClientSource{From: core.FromRemote}
	var h http.Handler
	r := newRig(t, p, pages, func(c *gate.Config) { h, _ = gate.New(*c) })
	for range 3 {
		req := httptest.NewRequest("GET", "/", nil)
		req.RemoteAddr = ""
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if rec.Code != 200 {
			t.Fatalf("%d", rec.Code)
		}
	}
	if got := r.get("", "/"); got.status != 200 {
		t.Errorf("a real client shares the unidentified's budget: %d", got.status)
	}
	es := r.entries()
	if len(es) != 4 || es[0].IP != "" || es[0].Key != "unidentified" || es[3].IP != "127.0.0.1" {
		t.Errorf("%+v", es)
	}
}

func TestNotPageViews(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), pages)
	for _, c := range []struct {
		method, path string
		fields       []string
	}{
		{"GET", "/healthz", []string{"User-Agent: GoogleHC/1.0"}},
		{"GET", "/health", []string{"User-Agent: ELB-HealthChecker/2.0"}},
		{"GET", "/livez", []string{"User-Agent: kube-probe/1.31"}},
		{"PROPFIND", "/", nil}, {"OPTIONS", "/", nil}, {"HEAD", "/", nil}, {"POST", "/", nil},
		{"GET", "/feed/", nil}, {"GET", "/rss", nil}, {"GET", "/?feed=rss2", nil}, {"GET", "/news", []string{"Accept: application/rss+xml"}},
	} {
		for range 3 {
			if got := r.do(c.method, "203.0.113.9", c.path, c.fields...); got.status != 200 || got.header.Get("X-RateLimit-Limit") != "" {
				t.Errorf("%s %s %v: %d %v", c.method, c.path, c.fields, got.status, got.header)
			}
		}
	}
	if es := r.entries(); len(es) != 0 {
		t.Errorf("counted: %+v", es)
	}
	if got := r.get("203.0.113.9", "/"); got.status != 200 {
		t.Errorf("the one page: %d", got.status)
	}
}

func TestPrefetchesCostNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(5), pages)
	for i := range 30 {
		for _, fields := range [][]string{
			{"Sec-Fetch-Dest: empty", "Sec-Fetch-Mode: no-cors", "Sec-Purpose: prefetch"},
			{"Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Purpose: prefetch;prerender"},
			{"Sec-Fetch-Dest: empty", "RSC: 1", "Next-Router-Prefetch: 1"},
		} {
			if got := r.get("203.0.113.9", fmt.Sprintf("/item/%d", i), fields...); got.status != 200 {
				t.Fatalf("%v: %d", fields, got.status)
			}
		}
	}
	if es := r.entries(); len(es) != 0 {
		t.Fatalf("counted: %+v", es)
	}
	for i := range 6 {
		want := 200
		if i == 5 {
			want = 429
		}
		if got := r.get("203.0.113.9", "/", "Sec-Fetch-Dest: document"); got.status != want {
			t.Errorf("page %d: %d, want %d", i, got.status, want)
		}
	}
	// Limited now: the speculation is refused, and the click asks again.
	if got := r.get("203.0.113.9", "/x", "Sec-Fetch-Dest: document", "Sec-Purpose: prefetch"); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("speculation of a limited client: %d", got.status)
	}
}

// TestPagesClaimedAsImagesAreCharged: 205 pages that say they are images.
func TestPagesClaimedAsImagesAreCharged(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(200), pages)
	served, refused := 0, 0
	for i := range 205 {
		got := r.get("203.0.113.9", fmt.Sprintf("/item/%d", i), "Sec-Fetch-Dest: image", "Sec-Fetch-Mode: no-cors")
		switch got.status {
		case 200:
			served++
			if !strings.Contains(got.body, "page") || got.header.Get("X-RateLimit-Limit") != "200" {
				t.Fatalf("%d: %+v", i, got)
			}
		case 429:
			refused++
			if strings.Contains(got.body, "<p>page") || got.header.Get("Retry-After") == "" {
				t.Fatalf("the page went out with the refusal: %+v", got)
			}
		}
	}
	if served != 200 || refused != 5 {
		t.Errorf("served %d, refused %d; want 200 and 5", served, refused)
	}
	events := map[hitlog.Event]int{}
	for _, e := range r.entries() {
		events[e.Event] += 1 + int(e.LeftOut)
	}
	if events[hitlog.Hit] != 200 || events[hitlog.Limited] != 5 {
		t.Errorf("log %v", events)
	}
	if got := r.get("203.0.113.10", "/pic", "Sec-Fetch-Dest: image"); got.status != 200 {
		t.Errorf("another client: %d", got.status)
	}
}

// TestRedirectChainCountsOnce with every form of Location.
func TestRedirectChainCountsOnce(t *testing.T) {
	t.Parallel()
	for name, hops := range map[string][]string{
		"paths":     {"/a", "/b", "/c"},
		"absolute":  {"http://example.org/a", "http://EXAMPLE.org:80/b?x=1;y=2", "//example.org/c"},
		"relative":  {"a/", "../b/c%20d", "?q=%C3%A9"},
		"fragments": {"/a#top", "/a?x#y", "/%E4%B8%AD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := 0
			var mu sync.Mutex
			r := newRig(t, hourly(1), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if next < len(hops) {
					w.Header().Set("Location", hops[next])
					next++
					w.WriteHeader(http.StatusFound)
					return
				}
				page(w, r)
			}))
			at := mustURL(t, "http://example.org/start")
			for i := range len(hops) + 1 {
				got := r.get("203.0.113.9", at.RequestURI(), "Host: example.org", "Sec-Fetch-Dest: document")
				want := 302
				if i == len(hops) {
					want = 200
				}
				if got.status != want {
					t.Fatalf("hop %d to %s: %d, want %d", i, at, got.status, want)
				}
				if want == 302 {
					at = at.ResolveReference(mustURL(t, got.header.Get("Location")))
				}
			}
			if es := r.entries(); len(es) != 1 || es[0].Status != 302 {
				t.Errorf("log %+v", es)
			}
			if got := r.get("203.0.113.9", "/other", "Host: example.org", "Sec-Fetch-Dest: document"); got.status != 429 {
				t.Errorf("the budget is not spent: %d", got.status)
			}
		})
	}
}

// TestPublicPagesCarryNoVisitorsFields.
func TestPublicPagesCarryNoVisitorsFields(t *testing.T) {
	t.Parallel()
	for control, want := range map[string]bool{"public, max-age=60": false, "s-maxage=60": false, "private": true, "no-store": true, "": true} {
		r := newRig(t, hourly(10), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if control != "" {
				w.Header().Set("Cache-Control", control)
			}
			page(w, r)
		}))
		got := r.get("203.0.113.9", "/")
		if (got.header.Get("RateLimit") != "") != want || (got.header.Get("X-RateLimit-Reset") != "") != want || got.header.Get("Cache-Control") != control {
			t.Errorf("%q: %v", control, got.header)
		}
	}
}
