package core

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

func TestHourAndDayOneTrip(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(3), dayBucket(5)}}, Options{})
	for i := range 3 {
		d := r.hit("203.0.113.9", noon)
		if d.Outcome != Admit || d.Reason != ReasonWithin || len(d.States) != 2 {
			t.Fatalf("hit %d: %+v", i, d)
		}
		if got, want := d.States[0].Remaining, int64(2-i); got != want {
			t.Errorf("hit %d: hour remaining %d, want %d", i, got, want)
		}
	}
	if r.store.trips != 3 || r.store.rows != 3 {
		t.Errorf("3 navigations: %d trips, %d rows, want 3, 3", r.store.trips, r.store.rows)
	}
	d := r.hit("203.0.113.9", noon)
	if d.Outcome != Refuse || d.Reason != ReasonOver || d.Binding != 0 || d.States[0].Remaining != 0 || d.States[1].Remaining != 2 {
		t.Fatalf("fourth: %+v", d)
	}
	if r.store.trips != 5 || r.store.total(addressKey("203.0.113.9")) != 6 {
		t.Errorf("refusal: %d trips and %d in the counters, want 5 and 6", r.store.trips, r.store.total(addressKey("203.0.113.9")))
	}
	for range 10 {
		d = r.hit("203.0.113.9", noon.Add(time.Minute))
		if d.Outcome != Refuse || d.Reason != ReasonRemembered || d.RetryAfter <= 0 {
			t.Fatalf("repeat: %+v", d)
		}
	}
	if r.store.trips != 5 {
		t.Errorf("repeats of a refused key cost %d trips", r.store.trips-5)
	}
	if d := r.hit("203.0.113.10", noon); d.Outcome != Admit {
		t.Errorf("another client: %+v", d)
	}
}

// TestUncountedCostsNothing: no store operation, and the reason says why.
func TestUncountedCostsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(1)}}, Options{})
	for _, tt := range []struct {
		method, path, query string
		header              headerMap
		class               Class
		reason              Reason
	}{
		{"HEAD", "/article", "", nil, Ignored, ReasonMethod},
		{"OPTIONS", "/article", "", nil, Ignored, ReasonMethod},
		{"PROPFIND", "/dav/", "", nil, Ignored, ReasonMethod},
		{"POST", "/article", "", nil, Ignored, ReasonMethod},
		{"GET", "/style.CSS", "", nil, Ignored, ReasonPath},
		{"GET", "/feed/", "", nil, Ignored, ReasonPath},
		{"GET", "/rss", "", nil, Ignored, ReasonPath},
		{"GET", "/blog/feed", "", nil, Ignored, ReasonPath},
		{"GET", "/", "feed=rss2", nil, Ignored, ReasonFeed},
		{"GET", "/spip.php", "a=1&page=backend", nil, Ignored, ReasonFeed},
		{"GET", "/news", "", headerMap{"Accept": "application/rss+xml"}, Claim, ReasonAccept},
		{"GET", "/healthz", "", headerMap{"User-Agent": "GoogleHC/1.0"}, Ignored, ReasonPath},
		{"GET", "/health", "", headerMap{"User-Agent": "ELB-HealthChecker/2.0"}, Ignored, ReasonPath},
		{"GET", "/readyz", "", headerMap{"User-Agent": "kube-probe/1.31"}, Ignored, ReasonPath},
		{"GET", "/live", "", headerMap{"Upgrade": "WebSocket", "Connection": "Upgrade"}, Ignored, ReasonUpgrade},
		{"GET", "/article", "", headerMap{"Sec-Fetch-Dest": "iframe"}, Claim, ReasonDestination},
		{"GET", "/article", "", headerMap{"Sec-Fetch-Dest": "document", "Sec-Purpose": "prefetch;prerender"}, Speculative, ReasonPrefetch},
		{"GET", "/article", "", headerMap{"Purpose": "prefetch"}, Speculative, ReasonPrefetch},
		{"GET", "/article", "", headerMap{"X-Moz": "prefetch"}, Speculative, ReasonPrefetch},
	} {
		req := &Request{Method: tt.method, Path: tt.path, RawQuery: tt.query, Header: tt.header, Peer: netip.MustParseAddr("203.0.113.9"), Time: noon}
		d := r.Decide(context.Background(), req)
		if d.Outcome != Pass || d.Class != tt.class || d.Reason != tt.reason {
			t.Errorf("%s %s?%s %v: %s %s (%s), want pass %s (%s)", tt.method, tt.path, tt.query, tt.header, d.Outcome, d.Class, d.Reason, tt.class, tt.reason)
		}
	}
	if r.store.trips != 0 {
		t.Errorf("uncounted requests cost %d trips", r.store.trips)
	}
}

// TestIdentitiesAndKeys is the table of identities x keys: which buckets a
// request is charged to, by who it is from.
func TestIdentitiesAndKeys(t *testing.T) {
	t.Parallel()
	kinds := []Kind{rows.Address, rows.Cookie, rows.User, rows.APIKey, rows.Network, rows.ASN, rows.Header, rows.Global}
	var buckets []Bucket
	for _, k := range kinds {
		b := Bucket{Name: k.String(), Key: k, Algorithm: FixedWindow, Limit: 10, Window: time.Hour}
		if k == rows.Header {
			b.Header = "X-Ja4"
		}
		buckets = append(buckets, b)
	}
	for _, tt := range []struct {
		id   Kind // 0: address only
		want string
	}{
		{0, "address network asn header global"},
		{rows.Cookie, "cookie network asn header global"},
		{rows.User, "user network asn header global"},
		{rows.APIKey, "api-key network asn header global"},
	} {
		o := Options{ASN: fixedASN(64500)}
		if tt.id != 0 {
			o.Identifiers = []Identifier{fixedIdentity{Identity{Kind: tt.id, ID: "x"}}}
		}
		r := newRig(t, Policy{Buckets: buckets}, o)
		req := page("203.0.113.9", noon)
		req.Header = headerMap{"X-Ja4": "t13d"}
		d := r.Decide(context.Background(), req)
		var got []string
		for _, s := range d.States {
			got = append(got, s.Bucket)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("identity %s: charged to %v, want %s", tt.id, got, tt.want)
		}
	}
	// Without a client address, number or header the outer keys do not apply.
	r := newRig(t, Policy{Buckets: buckets}, Options{ASN: fixedASN(0)})
	d := r.hit("", noon)
	if len(d.States) != 2 || d.States[0].Bucket != "address" || d.States[1].Bucket != "global" {
		t.Errorf("unidentified: %+v", d.States)
	}
}

// TestKnownIsNotUnlimited: an identity that no bucket counts by stays keyed by
// its address.
func TestKnownIsNotUnlimited(t *testing.T) {
	t.Parallel()
	id := fixedIdentity{Identity{Kind: rows.Cookie, ID: "x", Tier: 9}}
	r := newRig(t, Policy{Buckets: []Bucket{dayBucket(2)}}, Options{Identifiers: []Identifier{id}})
	for i := range 4 {
		if d := r.hit("203.0.113.9", noon); (d.Outcome == Refuse) != (i >= 2) || d.Identity.ID != "x" {
			t.Fatalf("hit %d: %+v", i, d)
		}
	}
}

type fixedASN uint32

func (n fixedASN) LookupASN(*Request, netip.Addr) uint32 { return uint32(n) }

type fixedIdentity struct{ Identity }

func (f fixedIdentity) Identify(*Request, netip.Addr) Identity { return f.Identity }

// TestNoisyAddressLeavesItsNetwork: refused hits of one address do not use up
// the network's bucket.
func TestNoisyAddressLeavesItsNetwork(t *testing.T) {
	t.Parallel()
	net := Bucket{Name: "net", Key: rows.Network, Algorithm: FixedWindow, Limit: 20, Window: day}
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(5), net}}, Options{})
	for range 1000 {
		r.hit("203.0.113.9", noon)
	}
	if got := r.store.total(Key{Kind: rows.Network, Net: netip.MustParsePrefix("203.0.113.0/24")}); got != 5 {
		t.Errorf("the network's bucket holds %d, want 5", got)
	}
	for i := 10; i < 25; i++ {
		if d := r.hit(fmt.Sprintf("203.0.113.%d", i), noon); d.Outcome != Admit {
			t.Fatalf("neighbour %d: %s", i, d.Reason)
		}
	}
	// Now the network is full: an own row admits, and is given back.
	d := r.hit("203.0.113.99", noon)
	if d.Outcome != Refuse || d.States[d.Binding].Bucket != "net" {
		t.Fatalf("full network: %+v", d)
	}
	if got := r.store.total(addressKey("203.0.113.99")); got != 0 {
		t.Errorf("refused by its network, the address still holds %d", got)
	}
}

// TestSharedDenialIsBrief: a full outer bucket is remembered for a second, then
// twice as long each time, at most a minute.
func TestSharedDenialIsBrief(t *testing.T) {
	t.Parallel()
	global := Bucket{Name: "all", Key: rows.Global, Algorithm: FixedWindow, Limit: 1, Window: day}
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(1000), global}}, Options{})
	r.hit("203.0.113.1", noon)
	asked := []int{}
	for s := range 300 {
		before := r.store.trips
		r.hit("203.0.113.2", noon.Add(time.Duration(s)*time.Second))
		if r.store.trips > before {
			asked = append(asked, s)
		}
	}
	if got, want := fmt.Sprint(asked), "[0 1 3 7 15 31 63 123 183 243]"; got != want {
		t.Errorf("asked the store at %s, want %s", got, want)
	}
}

// TestRefusalsDoNotCount: a client slightly above its limit is served its limit
// each minute, for ever.
func TestRefusalsDoNotCount(t *testing.T) {
	t.Parallel()
	for _, alg := range []AlgorithmKind{FixedWindow, SlidingWindowCounter, SlidingWindowLog, TokenBucket, GCRA} {
		b := Bucket{Name: "minute", Key: rows.Address, Algorithm: alg, Limit: 10, Window: time.Minute}
		if alg == GCRA {
			b.Burst = 2 // with 1 in hand, a hit every 5 s meets a pace of 6 s only every other time
		}
		r := newRig(t, Policy{Buckets: []Bucket{b}}, Options{})
		for minute := range 60 {
			served := 0
			for i := range 12 {
				if r.hit("203.0.113.9", noon.Add(time.Duration(minute)*time.Minute+time.Duration(i)*5*time.Second)).Outcome == Admit {
					served++
				}
			}
			if minute >= 10 && (served < 9 || served > 10) { // a bucket that was full at first takes a while
				t.Fatalf("%s: minute %d served %d of 12, want 9 or 10", alg, minute, served)
			}
		}
	}
}

func TestObserveAgreesWithEnforce(t *testing.T) {
	t.Parallel()
	buckets := []Bucket{hourBucket(7), dayBucket(20), {Name: "net", Key: rows.Network, Algorithm: GCRA, Limit: 300, Window: time.Hour, Burst: 9}}
	enforce := newRig(t, Policy{Buckets: buckets}, Options{})
	observe := newRig(t, Policy{Buckets: buckets, Observe: true}, Options{})
	refused := 0
	for i := range 500 {
		at := noon.Add(time.Duration(i*i%977) * 10 * time.Second)
		addr := fmt.Sprintf("203.0.113.%d", i%7)
		a, b := enforce.hit(addr, at), observe.hit(addr, at)
		if a.Outcome != b.Outcome || a.Reason != b.Reason || a.RetryAfter != b.RetryAfter || fmt.Sprint(a.States) != fmt.Sprint(b.States) {
			t.Fatalf("hit %d: %+v, observed %+v", i, a, b)
		}
		if b.Refused() {
			t.Fatal("observe refused a visitor")
		}
		if a.Refused() {
			refused++
		}
	}
	if refused == 0 {
		t.Fatal("nothing was refused: the test shows nothing")
	}
}

func TestScaleAndUnidentified(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Scale: 2.5, Buckets: []Bucket{dayBucket(3)}}, Options{})
	if d := r.hit("203.0.113.9", noon); d.States[0].Limit != 8 {
		t.Errorf("3 x 2.5 is limited at %d, want 8 (rounded up)", d.States[0].Limit)
	}
	d := r.hit("", noon)
	if d.Client.Problem != ClientMissing || d.States[0].Limit != 750 || d.Key == addressKey("203.0.113.9") {
		t.Errorf("without an address: %+v", d)
	}
}

// TestReload: a lower limit keeps the counts, a new window opens fresh rows.
func TestReload(t *testing.T) {
	t.Parallel()
	first := newRig(t, Policy{Buckets: []Bucket{dayBucket(10)}}, Options{})
	for range 6 {
		first.hit("203.0.113.9", noon)
	}
	lower := newRig(t, Policy{Buckets: []Bucket{dayBucket(5)}}, Options{Store: first.store})
	if d := lower.hit("203.0.113.9", noon); d.Outcome != Refuse {
		t.Errorf("after 6 hits a new limit of 5 admits: %+v", d)
	}
	higher := newRig(t, Policy{Buckets: []Bucket{dayBucket(7)}}, Options{Store: first.store})
	if d := higher.hit("203.0.113.9", noon); d.Outcome != Admit || d.States[0].Remaining != 0 {
		t.Errorf("after 6 hits a new limit of 7: %+v", d)
	}
	b := dayBucket(5)
	b.Window = 12 * time.Hour
	other := newRig(t, Policy{Buckets: []Bucket{b}}, Options{Store: first.store})
	if d := other.hit("203.0.113.9", noon); d.Outcome != Admit || d.States[0].Remaining != 4 {
		t.Errorf("a new window begins with old counts: %+v", d)
	}
}

func TestFailurePolicies(t *testing.T) {
	t.Parallel()
	down := func(r *rig) { r.store.fail = func(*Batch) error { return errStore } }
	up := func(r *rig) { r.store.fail = nil }
	t.Run("open", func(t *testing.T) {
		r := newRig(t, Policy{Buckets: []Bucket{dayBucket(2)}}, Options{})
		down(r)
		for range 10 {
			if d := r.hit("203.0.113.9", noon); d.Outcome != Admit || d.Reason != ReasonStoreOpen || d.Err == nil {
				t.Fatalf("%+v", d)
			}
		}
	})
	t.Run("closed", func(t *testing.T) {
		r := newRig(t, Policy{OnError: FailClosed, Buckets: []Bucket{dayBucket(2)}}, Options{})
		down(r)
		if d := r.hit("203.0.113.9", noon); d.Outcome != Unavailable || d.Reason != ReasonStoreClosed || d.Refused() {
			t.Fatalf("%+v", d)
		}
	})
	t.Run("closed gives back what was charged", func(t *testing.T) {
		net := Bucket{Name: "net", Key: rows.Network, Algorithm: FixedWindow, Limit: 20, Window: day}
		r := newRig(t, Policy{OnError: FailClosed, Buckets: []Bucket{dayBucket(2), net}}, Options{})
		r.store.fail = func(b *Batch) error {
			if b.Rows[0].Key.Kind == rows.Network {
				return errStore
			}
			return nil
		}
		if d := r.hit("203.0.113.9", noon); d.Outcome != Unavailable {
			t.Fatalf("%+v", d)
		}
		if n := r.store.total(addressKey("203.0.113.9")); n != 0 {
			t.Errorf("an unserved visitor was charged %d", n)
		}
	})
	t.Run("local counts, and ends with the outage", func(t *testing.T) {
		r := newRig(t, Policy{OnError: FailLocal, Buckets: []Bucket{dayBucket(2)}}, Options{})
		down(r)
		for i := range 4 {
			d := r.hit("203.0.113.9", noon)
			want := Admit
			if i >= 2 {
				want = Refuse
			}
			if d.Outcome != want || d.Err == nil {
				t.Fatalf("hit %d: %+v", i, d)
			}
		}
		up(r)
		if d := r.hit("203.0.113.9", noon); d.Outcome != Admit || d.Reason != ReasonWithin {
			t.Errorf("after the outage: %+v", d)
		}
	})
	t.Run("a remembered refusal ends on time while the store is down", func(t *testing.T) {
		r := newRig(t, Policy{Buckets: []Bucket{{Name: "minute", Key: rows.Address, Algorithm: FixedWindow, Limit: 1, Window: time.Minute}}}, Options{})
		r.hit("203.0.113.9", noon)
		r.hit("203.0.113.9", noon)
		down(r)
		if d := r.hit("203.0.113.9", noon.Add(30*time.Second)); d.Reason != ReasonRemembered {
			t.Errorf("%+v", d)
		}
		if d := r.hit("203.0.113.9", noon.Add(60*time.Second)); d.Reason != ReasonStoreOpen {
			t.Errorf("%+v", d)
		}
	})
}

func TestNewRefusesTheImpossible(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Policy{
		"limit 0":       {Buckets: []Bucket{dayBucket(0)}},
		"window 0s":     {Buckets: []Bucket{{Name: "x", Key: rows.Address, Algorithm: FixedWindow, Limit: 1}}},
		"two buckets":   {Buckets: []Bucket{dayBucket(1), dayBucket(2)}},
		"burst":         {Buckets: []Bucket{{Name: "x", Key: rows.Address, Algorithm: FixedWindow, Limit: 1, Window: day, Burst: 2}}},
		"flush_every":   {Buckets: []Bucket{{Name: "x", Key: rows.Address, Algorithm: FixedWindow, Limit: 1, Window: day, FlushEvery: day}}},
		"day: visitor":  {Buckets: []Bucket{{Name: "x", Key: rows.Address, Algorithm: FixedWindow, Limit: 1, Window: day, Visitor: true}}},
		"scale":         {Scale: -1},
		"header key":    {Buckets: []Bucket{{Name: "x", Key: rows.Header, Algorithm: FixedWindow, Limit: 1, Window: day}}},
		"algorithm 0":   {Buckets: []Bucket{{Name: "x", Key: rows.Address, Limit: 1, Window: day}}},
		"claims factor": {ClaimsFactor: -1},
	} {
		_, err := New(p, Options{Store: newMapStore(), Local: newMapStore()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	if _, err := New(Policy{}, Options{}); err == nil {
		t.Error("no store is no error")
	}
}
