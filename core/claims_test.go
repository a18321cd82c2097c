package core

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

func prefetch(addr string, i int, at time.Time) *Request {
	r := page(addr, at)
	r.Path = fmt.Sprint("/article/", i)
	r.Header = headerMap{"Sec-Fetch-Dest": "document", "Sec-Purpose": "prefetch", "Upgrade-Insecure-Requests": "1", "Accept": "text/html"}
	return r
}

// TestPrefetchesCountNothing: thirty links prefetched in any way, their answers
// pages, leave the page buckets and the store alone.
func TestPrefetchesCountNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(3), dayBucket(5)}}, Options{})
	ctx := context.Background()
	for i := range 30 {
		byRules := prefetch("203.0.113.9", i, noon)
		byLink := prefetch("203.0.113.9", i, noon)
		byLink.Header = headerMap{"Sec-Fetch-Dest": "empty", "Sec-Purpose": "prefetch", "Accept": "text/html"}
		byRouter := prefetch("203.0.113.9", i, noon)
		byRouter.Header = headerMap{"Sec-Fetch-Dest": "empty", "Rsc": "1", "Next-Router-Prefetch": "1", "Accept": "*/*"}
		frame := prefetch("203.0.113.9", i, noon)
		frame.Header = headerMap{"Sec-Fetch-Dest": "iframe", "Accept": "text/html"}
		for _, req := range []*Request{byRules, byLink, byRouter, frame} {
			d := r.Decide(ctx, req)
			if d.Outcome == Refuse {
				break // the 61st claim of an hour; see below
			}
			if r.Answered(ctx, req, &d, Answer{Status: 200, ContentType: "text/html; charset=utf-8"}) {
				t.Fatalf("%v is charged for its answer", req.Header)
			}
		}
	}
	if r.store.trips != 0 {
		t.Errorf("prefetches cost %d trips", r.store.trips)
	}
}

func TestClaimsBucket(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, tt := range []struct {
		mode    ClaimsMode
		refused bool
		outcome Outcome
	}{{ClaimsEnforce, true, Refuse}, {ClaimsLog, false, Refuse}, {ClaimsOff, false, Pass}} {
		r := newRig(t, Policy{Claims: tt.mode, ClaimsFactor: 4, Buckets: []Bucket{hourBucket(3)}}, Options{})
		for i := range 12 {
			if d := r.Decide(ctx, prefetch("203.0.113.9", i, noon)); d.Outcome != Pass {
				t.Fatalf("mode %d, prefetch %d: %+v", tt.mode, i, d)
			}
		}
		d := r.Decide(ctx, prefetch("203.0.113.9", 12, noon))
		if d.Outcome != tt.outcome || d.Refused() != tt.refused {
			t.Errorf("mode %d, one too many: %s, refused %v", tt.mode, d.Outcome, d.Refused())
		}
		if tt.outcome == Refuse && (d.Reason != ReasonClaims || d.RetryAfter <= 0) {
			t.Errorf("mode %d: %+v", tt.mode, d)
		}
		if d := r.hit("203.0.113.9", noon); d.Outcome != Admit {
			t.Errorf("mode %d: claims used up the page limit: %+v", tt.mode, d)
		}
		if d := r.Decide(ctx, prefetch("203.0.113.10", 1, noon)); d.Outcome != Pass {
			t.Errorf("mode %d: another client: %+v", tt.mode, d)
		}
	}
}

// TestLimitedClientMayNotSpeculate: its click will ask again, as a navigation.
func TestLimitedClientMayNotSpeculate(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(1)}}, Options{})
	r.hit("203.0.113.9", noon)
	if d := r.hit("203.0.113.9", noon); d.Outcome != Refuse {
		t.Fatal("not limited")
	}
	trips := r.store.trips
	d := r.Decide(context.Background(), prefetch("203.0.113.9", 1, noon.Add(time.Second)))
	if !d.Refused() || d.Reason != ReasonSpeculating {
		t.Errorf("%+v", d)
	}
	if r.store.trips != trips {
		t.Error("it cost an operation")
	}
	soft := page("203.0.113.9", noon)
	soft.Header = headerMap{"Sec-Fetch-Dest": "empty", "Rsc": "1"}
	if d := r.Decide(context.Background(), soft); d.Outcome != Pass {
		t.Errorf("a soft navigation: %+v", d)
	}
}

// TestLiarsAreCharged: a page for a request that said it cannot use one counts
// like the navigation it is, and is refused like one.
func TestLiarsAreCharged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	html := Answer{Status: 200, ContentType: "Text/HTML; charset=utf-8"}
	for _, tt := range []struct {
		name, path string
		header     headerMap
		answer     Answer
		charged    bool
	}{
		{"image", "/article", headerMap{"Sec-Fetch-Dest": "image"}, html, true},
		{"font", "/article", headerMap{"Sec-Fetch-Dest": "font"}, html, true},
		{"asset path", "/article.png", headerMap{"Sec-Fetch-Dest": "image"}, html, true},
		{"a document with an asset's name", "/article.png", headerMap{"Sec-Fetch-Dest": "document"}, html, true},
		{"the same, saying nothing", "/article.png", nil, html, false}, // a claim
		{"a favicon answered with a page", "/favicon.ico", headerMap{"Sec-Fetch-Dest": "image"}, html, false},
		{"a handshake answered with a page", "/article", headerMap{"Upgrade": "websocket"}, html, false}, // a claim
		{"page data", "/x/__data.json", headerMap{"Sec-Fetch-Dest": "empty"}, html, false},
		{"a real image", "/article", headerMap{"Sec-Fetch-Dest": "image"}, Answer{Status: 200, ContentType: "image/png"}, false},
		{"a missing image", "/x.png", headerMap{"Sec-Fetch-Dest": "image"}, Answer{Status: 404, ContentType: "text/html"}, false},
		{"frame", "/article", headerMap{"Sec-Fetch-Dest": "iframe"}, html, false},
		{"fetch", "/article", headerMap{"Sec-Fetch-Dest": "empty"}, html, false},
		{"api", "/api/x", headerMap{"Sec-Fetch-Dest": "image"}, html, false},
	} {
		r := newRig(t, Policy{Buckets: []Bucket{dayBucket(2)}}, Options{})
		admitted, refused := 0, 0
		for range 5 {
			req := page("203.0.113.9", noon)
			req.Path, req.Header = tt.path, tt.header
			d := r.Decide(ctx, req)
			if d.Outcome != Pass {
				t.Fatalf("%s: %+v", tt.name, d)
			}
			if r.Answered(ctx, req, &d, tt.answer) {
				admitted += btoi(d.Outcome == Admit)
				refused += btoi(d.Refused())
			}
		}
		if want := map[bool]int{true: 2}[tt.charged]; admitted != want || refused != map[bool]int{true: 3}[tt.charged] {
			t.Errorf("%s: %d charged and admitted, %d refused", tt.name, admitted, refused)
		}
	}
}

// TestSocketLiars: a handshake that is answered with a page, or whose answer
// nobody sees, is a claim: it touches no page bucket, and its own is wide.
func TestSocketLiars(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, blind := range []bool{false, true} {
		r := newRig(t, Policy{ClaimsFactor: 3, Buckets: []Bucket{dayBucket(2)}}, Options{})
		got := 0
		for range 20 {
			req := page("203.0.113.9", noon)
			req.Header, req.Blind = headerMap{"Upgrade": "websocket", "Connection": "Upgrade"}, blind
			d := r.Decide(ctx, req)
			if !blind && d.Outcome == Pass {
				r.Answered(ctx, req, &d, Answer{Status: 200, ContentType: "text/html"})
			}
			got += btoi(!d.Refused())
		}
		if got != 6 || r.store.trips != 0 {
			t.Errorf("blind %v: %d of 20 passed, %d trips; want 6, 0", blind, got, r.store.trips)
		}
		// A client that is limited gets no page by a handshake either, where the
		// answer shows that it is one.
		for range 3 {
			r.hit("203.0.113.10", noon)
		}
		req := page("203.0.113.10", noon)
		req.Header, req.Blind = headerMap{"Upgrade": "websocket"}, blind
		d := r.Decide(ctx, req)
		if !blind {
			r.Answered(ctx, req, &d, Answer{Status: 200, ContentType: "text/html"})
		}
		if d.Refused() == blind {
			t.Errorf("blind %v: a limited client: %s", blind, d.Reason)
		}
	}
}

func TestRedirectChainCountsOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newRig(t, Policy{Buckets: []Bucket{dayBucket(50)}}, Options{})
	chain := []string{"/a", "/b", "/c?x=1", "/d"}
	go1 := func(addr string, i int, at time.Time) Decision {
		req := page(addr, at)
		req.Path = chain[i]
		if p, q, ok := cut(chain[i]); ok {
			req.Path, req.RawQuery = p, q
		}
		d := r.Decide(ctx, req)
		a := Answer{Status: 200, ContentType: "text/html"}
		if i+1 < len(chain) {
			a = Answer{Status: 302, Location: "example.org" + chain[i+1]}
		}
		r.Answered(ctx, req, &d, a)
		return d
	}
	want := []Reason{ReasonWithin, ReasonRedirect, ReasonRedirect, ReasonRedirect}
	for i := range chain {
		if d := go1("203.0.113.9", i, noon.Add(time.Duration(i)*time.Second)); d.Reason != want[i] {
			t.Fatalf("hop %d: %s", i, d.Reason)
		}
	}
	if d := go1("203.0.113.9", 3, noon.Add(4*time.Second)); d.Reason != ReasonWithin {
		t.Errorf("a credit was spent twice: %s", d.Reason)
	}
	go1("203.0.113.9", 0, noon.Add(20*time.Second))
	if d := go1("203.0.113.10", 1, noon.Add(21*time.Second)); d.Reason != ReasonWithin {
		t.Errorf("another client spent the credit: %s", d.Reason)
	}
	if d := go1("203.0.113.9", 2, noon.Add(21*time.Second)); d.Reason != ReasonWithin {
		t.Errorf("another page spent the credit: %s", d.Reason)
	}
	if d := go1("203.0.113.9", 1, noon.Add(31*time.Second)); d.Reason != ReasonWithin {
		t.Errorf("the credit outlived its 10 seconds: %s", d.Reason)
	}
}

// TestRedirectLoopIsBounded: a site that redirects for ever is not free for ever.
func TestRedirectLoopIsBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newRig(t, Policy{Buckets: []Bucket{dayBucket(1000)}}, Options{})
	counted := 0
	for i := range 100 {
		req := page("203.0.113.9", noon)
		req.Path = fmt.Sprint("/p", i)
		d := r.Decide(ctx, req)
		counted += btoi(d.Outcome == Admit)
		r.Answered(ctx, req, &d, Answer{Status: 301, Location: fmt.Sprint("example.org/p", i+1)})
	}
	if counted != 5 {
		t.Errorf("100 hops counted %d times, want once in 21", counted)
	}
	for i := range 3 * creditsMost {
		r.credits.grant(addressKey("203.0.113.9"), fmt.Sprint(i), 1, noon)
	}
	if n := len(r.credits.credits); n > creditsMost {
		t.Errorf("%d credits are kept", n)
	}
}

func cut(s string) (string, string, bool) {
	for i := range s {
		if s[i] == '?' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func TestCrawlersAndNetworks(t *testing.T) {
	t.Parallel()
	p := Policy{
		Buckets:  []Bucket{dayBucket(2)},
		Crawlers: map[string]Treatment{"search": {Exempt: true}, "ai-training": {Multiply: 3}},
		Networks: fixedNetwork{"192.0.2.0/24": {Exempt: true, Reason: "office"}, "198.51.100.0/24": {Multiply: 5, Reason: "school"}, "203.0.113.0/24": {Exempt: true, Until: noon.Add(-time.Hour)}},
	}
	o := Options{Crawlers: fixedCrawler{"66.249.64.1": {Name: "Googlebot", Class: "search", Claimed: true, Verified: true, Proof: "range"}, "216.73.216.1": {Class: "ai-training", Verified: true}, "66.249.64.2": {Class: "search", Claimed: true}}}
	r := newRig(t, p, o)
	for addr, want := range map[string]int{
		"66.249.64.1": 100, "66.249.64.2": 2, "216.73.216.1": 6, "192.0.2.7": 100, "198.51.100.7": 10, "203.0.113.9": 2,
	} {
		served := 0
		for range 100 {
			served += btoi(r.hit(addr, noon).Outcome != Refuse)
		}
		if served != want {
			t.Errorf("%s: served %d of 100, want %d", addr, served, want)
		}
	}
	if k := addressKey("66.249.64.1"); r.store.total(k) != 0 {
		t.Error("a verified crawler was counted")
	}
	if k := (Key{Kind: rows.Address}); k == addressKey("66.249.64.1") {
		t.Error("keys are not told apart")
	}
}
