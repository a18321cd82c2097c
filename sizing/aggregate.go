package sizing

import (
	"net/netip"
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
)

// A collector is one worker's sink.
type collector struct {
	opts    *Options
	pages   *classifier
	agents  agentTable
	clients map[clientKey]*client
	last    *client
	limit   int

	zoneFrom, zoneTo int64 // the span in which zoneDay holds
	zoneDay          int32

	traffic  traffic
	overflow int64
}

// traffic is what is summed over everybody.
type traffic struct {
	from, to                                     int64
	requests, pages, assets, softs, speculatives int64
	bytes, pageBytes, assetBytes                 int64
	noAddress                                    int64
	cacheHits, cacheKnown                        int64
	pagesBySecFetch                              int64
	opaque                                       int64
	refused                                      int64 // 429, and Stile's own events
}

var _ accesslog.Sink = (*collector)(nil)

func newCollector(o *Options, workers int) (*collector, error) {
	c, err := newClassifier(o.Count)
	if err != nil {
		return nil, err
	}
	return &collector{opts: o, pages: c, clients: make(map[clientKey]*client), limit: o.maxClients() / max(1, workers)}, nil
}

// Record adds one request.
func (c *collector) Record(r *accesslog.Record) {
	t := &c.traffic
	now := r.Time.Unix()
	if t.requests == 0 || now < t.from {
		t.from = now
	}
	t.to = max(t.to, now)
	t.requests += 1 + r.LeftOut
	t.bytes += r.Bytes
	if r.Has&accesslog.HasCache != 0 {
		t.cacheKnown++
		if r.Cache == accesslog.CacheHit {
			t.cacheHits++
		}
	}
	if r.Status == 429 || r.Event == "limited" || r.Event == "would-limit" {
		t.refused++
	}
	what := c.pages.sort(r)
	a := c.agents.lookup(r.UserAgent)
	addr, ok := c.address(r)
	if !ok {
		t.noAddress++
		return
	}
	if isOpaque(addr) {
		t.opaque++
	}
	cl := c.client(clientKey{addr, c.groupOf(a, addr)}, a, now)
	if cl == nil {
		c.overflow++
		return
	}
	cl.requests += 1 + r.LeftOut
	cl.bytes += r.Bytes
	if now < cl.first {
		cl.first = now
	}
	cl.last = max(cl.last, now)
	if r.ASN != 0 {
		cl.asn = r.ASN
	}
	use := cl.use(a.hash)
	switch what {
	case page:
		t.pages += 1 + r.LeftOut
		t.pageBytes += r.Bytes
		if r.Has&accesslog.HasSecFetch != 0 {
			t.pagesBySecFetch++
		}
		use.pages = add16(use.pages, 1)
		c.page(cl, r, a, now)
	case asset:
		t.assets++
		t.assetBytes += r.Bytes
		if delivered(r) {
			cl.assets++
			use.assets = add16(use.assets, 1)
		}
	case soft:
		t.softs++
		cl.softs++
	case speculative:
		t.speculatives++
	}
}

// groupOf is the agent's own group, except for the site's own addresses.
func (c *collector) groupOf(a *agent, addr netip.Addr) group {
	if a.group == visitors {
		for _, p := range c.opts.Monitoring {
			if p.Contains(addr) {
				return monitoring
			}
		}
	}
	return a.group
}

// client finds or makes the entry of a key; nil when the table is full.
func (c *collector) client(k clientKey, a *agent, now int64) *client {
	if c.last != nil && c.last.key == k {
		return c.last
	}
	cl := c.clients[k]
	if cl == nil {
		if len(c.clients) >= c.limit {
			return nil
		}
		cl = &client{key: k, agent: a, first: now, last: now}
		c.clients[k] = cl
	}
	c.last = cl
	return cl
}

func (c *collector) page(cl *client, r *accesslog.Record, a *agent, now int64) {
	n := 1 + r.LeftOut
	if r.LeftOut > 0 {
		cl.sampled = max(cl.sampled, n)
	}
	cl.pages += n
	cl.pageBytes += r.Bytes
	if a.browser {
		cl.browser += n
	}
	if r.Status >= 400 && r.Status < 500 && r.Status != 429 {
		cl.errors++
	}
	path := hash(r.Path, r.Query)
	ref := uint32(0)
	if host, p, q, ok := splitReferer(r.Referer); ok {
		ref = hash(p, q)
		if r.Host == "" || host == r.Host {
			if !isSearch(host) {
				cl.inside++
			}
		}
	}
	h := int32(now / 3600)
	cell := cl.hour(h)
	cell.pages += uint32(n)
	if len(cell.hits) < maxHits {
		cell.hits = append(cell.hits, hit{sec: uint16(now - int64(h)*3600), path: path, ref: ref})
	}
	cl.day(c.day(now)).pages += uint32(n)
	if cl.pages >= pathsFrom {
		if cl.paths == nil {
			cl.paths = new(pathSketch)
		}
		cl.paths.add(r.Path, r.Query, path)
	}
}

// day returns the day of an instant in the zone. The answer holds until the
// day's end, so the zone is asked once per day and worker.
func (c *collector) day(now int64) int32 {
	if now >= c.zoneFrom && now < c.zoneTo {
		return c.zoneDay
	}
	zone := c.opts.zone()
	t := time.Unix(now, 0).In(zone)
	y, m, d := t.Date()
	c.zoneDay = int32(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	// Quarter hours never straddle the beginning of a day in any zone in use.
	c.zoneFrom = now / 900 * 900
	c.zoneTo = c.zoneFrom + 900
	return c.zoneDay
}
