package core

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

const day = 24 * time.Hour

// noon is a Tuesday far from any edge.
var noon = time.Date(2026, 10, 6, 12, 0, 0, 0, time.UTC)

func hourBucket(limit int64) Bucket {
	return Bucket{Name: "hour", Key: rows.Address, Algorithm: SlidingWindowCounter, Limit: limit, Window: time.Hour}
}

func dayBucket(limit int64) Bucket {
	return Bucket{Name: "day", Key: rows.Address, Algorithm: FixedWindow, Limit: limit, Window: day}
}

// rig is a limiter over map stores.
type rig struct {
	*Limiter
	store, local *mapStore
}

func newRig(t testing.TB, p Policy, o Options) *rig {
	t.Helper()
	r := &rig{store: newMapStore(), local: newMapStore()}
	if o.Store == nil {
		o.Store = r.store
	}
	o.Local = r.local
	l, err := New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Limiter = l
	return r
}

// page is a plain navigation of a client.
func page(addr string, at time.Time) *Request {
	a := netip.Addr{}
	if addr != "" {
		a = netip.MustParseAddr(addr)
	}
	return &Request{Method: "GET", Host: "example.org", Path: "/article", Peer: a, Time: at}
}

func (r *rig) hit(addr string, at time.Time) Decision {
	return r.Decide(context.Background(), page(addr, at))
}

func addressKey(s string) Key {
	c := (&ClientSource{}).client(netip.MustParseAddr(s), ClientOK, 0)
	return c.key()
}

type prefix = netip.Prefix

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// fixedCrawler verifies by address.
type fixedCrawler map[string]Crawler

func (f fixedCrawler) VerifyCrawler(_ *Request, a netip.Addr) Crawler { return f[a.String()] }

// fixedNetwork holds IPv4 /24 networks.
type fixedNetwork map[string]Network

func (f fixedNetwork) LookupNetwork(a netip.Addr) (Network, bool) {
	p, _ := a.Prefix(24)
	n, ok := f[p.String()]
	n.Prefix = p
	return n, ok
}
