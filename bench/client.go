package bench

import (
	"net/netip"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// policyText says what one decision is.
const policyText = "an hour (sliding-window-counter) and a day (fixed-window) of one address"

// maxClients is the number of addresses in a client set: a /15 that standards set
// aside for measurements (RFC 2544), half of it.
const maxClients = 1 << 16

// headers of a navigation by a browser that sends fetch metadata.
type headers map[string][]string

func (h headers) Values(name string) []string { return h[name] }

var navigation = headers{
	"Accept":         {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
	"Sec-Fetch-Dest": {"document"},
	"Sec-Fetch-Mode": {"navigate"},
	"Sec-Fetch-Site": {"none"},
	"User-Agent":     {"Mozilla/5.0 (X11; Linux x86_64; rv:148.0) Gecko/20100101 Firefox/148.0"},
}

// A visit is the request of one client. It is reused by one goroutine.
type visit struct{ r core.Request }

func newVisit() *visit {
	return &visit{core.Request{Method: "GET", Host: "bench.example", Path: "/articles/hedges", Header: navigation}}
}

// at makes it the request of client n of a set at t. Sets share no address.
func (v *visit) at(set, n int, t time.Time) *core.Request {
	v.r.Peer = netip.AddrFrom4([4]byte{198, 18 + byte(set&1), byte(n >> 8), byte(n)})
	if set > 1 { // further sets in the addresses for private use
		v.r.Peer = netip.AddrFrom4([4]byte{10, byte(set), byte(n >> 8), byte(n)})
	}
	v.r.Time = t
	return &v.r
}

// limiter returns a limiter over the rig's store. A changed limit keeps its
// counts, so limiters of different limits share records where their clients meet.
func (g *rig) limiter(hour, day int64, network *core.Bucket) (*core.Limiter, error) {
	p := core.Policy{
		Site: "bench", Claims: core.ClaimsOff,
		Buckets: []core.Bucket{
			{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: hour, Window: time.Hour},
			{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: day, Window: 24 * time.Hour},
		},
	}
	if network != nil {
		p.Buckets = append(p.Buckets, *network)
	}
	return core.New(p, core.Options{Store: g.stack, Local: g.local})
}
