package sizing

import (
	"context"
	"hash/fnv"
	"net/netip"
	"runtime"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/sizing/accesslog"
)

// Measure reads the logs once and reports on them. Bad lines and unreadable
// inputs are part of the report; the error is the context's, or that of options
// that core refuses.
func Measure(ctx context.Context, inputs []accesslog.Input, o Options) (*Report, error) {
	m, err := collect(ctx, inputs, &o)
	if err != nil {
		return nil, err
	}
	return m.report(), nil
}

// A measurement is everything that one pass found, merged.
type measurement struct {
	opts     *Options
	log      accesslog.Stats
	traffic  traffic
	overflow int64
	clients  []*client
	norms    norms
	facts    map[*client]*facts
}

// collect scans and merges.
func collect(ctx context.Context, inputs []accesslog.Input, o *Options) (*measurement, error) {
	workers := o.Log.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	logOptions := o.Log
	logOptions.Workers = workers
	if o.Progress != nil {
		logOptions.Progress = o.Progress
	}
	parts := make([]*collector, workers)
	for i := range parts {
		c, err := newCollector(o, workers)
		if err != nil {
			return nil, err
		}
		parts[i] = c
	}
	stats, err := accesslog.Scan(ctx, inputs, logOptions, func(w int) accesslog.Sink { return parts[w] })
	if err != nil {
		return nil, err
	}
	m := &measurement{opts: o, log: stats}
	all := parts[0].clients
	m.traffic, m.overflow = parts[0].traffic, parts[0].overflow
	for _, p := range parts[1:] {
		m.traffic.merge(&p.traffic)
		m.overflow += p.overflow
		for k, c := range p.clients {
			if have, ok := all[k]; ok {
				have.merge(c)
			} else {
				all[k] = c
			}
		}
		p.clients = nil
	}
	m.clients = make([]*client, 0, len(all))
	for _, c := range all {
		m.clients = append(m.clients, c)
	}
	m.finish()
	return m, nil
}

func (t *traffic) merge(o *traffic) {
	if o.requests > 0 && (t.requests == 0 || o.from < t.from) {
		t.from = o.from
	}
	t.to = max(t.to, o.to)
	t.requests += o.requests
	t.pages += o.pages
	t.assets += o.assets
	t.softs += o.softs
	t.speculatives += o.speculatives
	t.bytes += o.bytes
	t.pageBytes += o.pageBytes
	t.assetBytes += o.assetBytes
	t.noAddress += o.noAddress
	t.cacheHits += o.cacheHits
	t.cacheKnown += o.cacheKnown
	t.pagesBySecFetch += o.pagesBySecFetch
	t.opaque += o.opaque
	t.refused += o.refused
}

func (cl *client) merge(o *client) {
	if o.first < cl.first {
		cl.first, cl.agent = o.first, o.agent
	}
	cl.last = max(cl.last, o.last)
	for _, a := range o.agents {
		u := cl.use(a.hash)
		u.pages, u.assets = add16(u.pages, a.pages), add16(u.assets, a.assets)
	}
	cl.requests += o.requests
	cl.pages += o.pages
	cl.assets += o.assets
	cl.softs += o.softs
	cl.errors += o.errors
	cl.inside += o.inside
	cl.browser += o.browser
	cl.bytes += o.bytes
	cl.pageBytes += o.pageBytes
	cl.asn = max(cl.asn, o.asn)
	cl.sampled = max(cl.sampled, o.sampled)
	for _, h := range o.hours {
		have := cl.hour(h.hour)
		have.pages += h.pages
		have.hits = append(have.hits, h.hits[:min(len(h.hits), maxHits-len(have.hits))]...)
	}
	for _, d := range o.days {
		cl.day(d.day).pages += d.pages
	}
	if o.paths != nil {
		if cl.paths == nil {
			cl.paths = o.paths
		} else {
			cl.paths.merge(o.paths)
		}
	}
}

// opaqueAddr makes an address of a client that the log names otherwise, in
// 100::/8, which IANA has reserved and nobody can visit from. The name's digest
// is in the network half, so that each name keeps a key of its own.
func opaqueAddr(raw string) netip.Addr {
	h := fnv.New64a()
	h.Write([]byte(raw))
	b := [16]byte{0: 0x01}
	copy(b[1:8], h.Sum(nil))
	return netip.AddrFrom16(b)
}

func isOpaque(a netip.Addr) bool { return a.Is6() && a.As16()[0] == 0x01 }

// verify asks the verifier once per client that claims to be a crawler.
func (m *measurement) verify(cl *client) core.Crawler {
	if m.opts.Crawlers == nil || isOpaque(cl.key.addr) {
		return core.Crawler{}
	}
	h := recordHeader{r: &accesslog.Record{UserAgent: cl.agent.text}}
	return m.opts.Crawlers.VerifyCrawler(&core.Request{Method: "GET", Path: "/", Header: &h, Peer: cl.key.addr}, cl.key.addr)
}
