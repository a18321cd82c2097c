package core_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
)

func benchLimiter(tb testing.TB, limit int64) *core.Limiter {
	tb.Helper()
	store, local := memory.New(memory.Config{MaxKeys: 1 << 21}), memory.New(memory.Config{})
	l, err := core.New(core.Policy{Buckets: []core.Bucket{
		{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: limit, Window: time.Hour},
		{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: limit, Window: 24 * time.Hour},
	}}, core.Options{Store: store, Local: local})
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// chromium is what a real navigation carries.
func chromium() http.Header {
	return http.Header{
		"Accept":                    {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"},
		"Accept-Encoding":           {"gzip, deflate, br, zstd"},
		"Accept-Language":           {"en-GB,en;q=0.9"},
		"Sec-Fetch-Dest":            {"document"},
		"Sec-Fetch-Mode":            {"navigate"},
		"Sec-Fetch-Site":            {"same-origin"},
		"Sec-Fetch-User":            {"?1"},
		"Upgrade-Insecure-Requests": {"1"},
		"User-Agent":                {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"},
	}
}

func uncounted() map[string]*core.Request {
	image := chromium()
	image.Set("Sec-Fetch-Dest", "image")
	image.Set("Accept", "image/avif,image/webp,*/*;q=0.8")
	peer := netip.MustParseAddr("203.0.113.9")
	return map[string]*core.Request{
		"asset": {Method: "GET", Host: "example.org", Path: "/_next/static/chunks/main-4f2a.js", Header: core.Fields(image), Peer: peer, Time: time.Now()},
		"image": {Method: "GET", Host: "example.org", Path: "/images/lake/large.webp", Header: core.Fields(image), Peer: peer, Time: time.Now()},
		"post":  {Method: "POST", Host: "example.org", Path: "/contact", Header: core.Fields(image), Peer: peer, Time: time.Now()},
		"feed":  {Method: "GET", Host: "example.org", Path: "/news/feed/", Header: core.Fields(image), Peer: peer, Time: time.Now()},
	}
}

// TestAllocations: what is not counted allocates nothing, and a counted decision
// no more than its report.
func TestAllocations(t *testing.T) {
	if core.RaceDetector {
		t.Log("under the race detector pools forget on purpose: the numbers mean nothing")
		return
	}
	l := benchLimiter(t, 1<<30)
	ctx := context.Background()
	for name, r := range uncounted() {
		if n := testing.AllocsPerRun(100, func() { l.Decide(ctx, r) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	framed := chromium()
	framed.Set("Sec-Fetch-Dest", "iframe")
	claim := &core.Request{Method: "GET", Path: "/article", Header: core.Fields(framed), Peer: netip.MustParseAddr("203.0.113.9"), Time: time.Now()}
	if n := testing.AllocsPerRun(1000, func() { l.Decide(ctx, claim) }); n > 0 {
		t.Errorf("a claim: %v allocations", n)
	}
	page := &core.Request{Method: "GET", Path: "/article", Header: core.Fields(chromium()), Peer: netip.MustParseAddr("203.0.113.9"), Time: time.Now()}
	if n := testing.AllocsPerRun(1000, func() { l.Decide(ctx, page) }); n > 2 {
		t.Errorf("a counted decision: %v allocations, want at most 2", n)
	}
}

func BenchmarkUncounted(b *testing.B) {
	l := benchLimiter(b, 1<<30)
	for name, r := range uncounted() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := l.Decide(context.Background(), r); d.Outcome != core.Pass {
					b.Fatal(d.Reason)
				}
			}
		})
	}
}

// BenchmarkCounted is a full counted decision, hour and day, over a table that
// already holds so many keys. Every iteration is another key, and time moves.
func BenchmarkCounted(b *testing.B) {
	for _, keys := range []int{1, 1_000, 1_000_000} {
		b.Run(fmt.Sprint("keys=", keys), func(b *testing.B) {
			l := benchLimiter(b, 1<<30)
			ctx := context.Background()
			header := core.Fields(chromium())
			start := time.Now()
			addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
			r := &core.Request{Method: "GET", Path: "/article", Header: header, Time: start}
			for i := range keys {
				r.Peer = addr(i)
				l.Decide(ctx, r)
			}
			b.ReportAllocs()
			b.ResetTimer()
			i := 0
			for b.Loop() {
				r.Peer, r.Time = addr(i%keys), start.Add(time.Duration(i)*time.Microsecond)
				i++
				d := l.Decide(ctx, r)
				if d.Outcome != core.Admit || d.States[0].Count < 1 {
					b.Fatalf("%+v", d)
				}
			}
		})
	}
}

// BenchmarkRefusedRepeat is what a crawler that does not slow down costs.
func BenchmarkRefusedRepeat(b *testing.B) {
	l := benchLimiter(b, 1)
	r := &core.Request{Method: "GET", Path: "/article", Header: core.Fields(chromium()), Peer: netip.MustParseAddr("203.0.113.9"), Time: time.Now()}
	for range 3 {
		l.Decide(context.Background(), r)
	}
	b.ReportAllocs()
	for b.Loop() {
		if d := l.Decide(context.Background(), r); d.Reason != core.ReasonRemembered {
			b.Fatal(d.Reason)
		}
	}
}
