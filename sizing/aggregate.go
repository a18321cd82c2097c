package sizing

import (
	"net/netip"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stilehq/stile/sizing/accesslog"
)

// A clientKey is one address (an IPv6 network) in one group: a crawler at the
// address of a school is not the school.
type clientKey struct {
	addr  netip.Addr
	group group
}

// An agentUse is what one User-Agent did at one address. Many people behind one
// address each load pages and what pages are made of; a program that changes its
// name does not.
type agentUse struct {
	hash          uint64
	pages, assets uint16
}

// A client is what is kept of one key.
type client struct {
	key    clientKey
	agent  *agent // the first seen
	agents []agentUse

	first, last int64 // Unix seconds

	requests  int64
	pages     int64
	assets    int64
	softs     int64
	errors    int64 // 4xx on pages
	inside    int64 // pages with a referrer of the same site
	browser   int64 // pages with a browser's agent
	bytes     int64
	pageBytes int64
	asn       uint32

	hours []hourCell
	days  []dayCell
	paths *pathSketch // of clients with many pages only
}

// An hourCell is one address-hour.
type hourCell struct {
	hour  int32 // Unix hours
	pages uint32
	hits  []hit
}

type dayCell struct {
	day   int32 // days since 1970 in the measurement's zone
	pages uint32
}

// A hit is one page, kept to tell a person's clicks from a burst.
type hit struct {
	sec       uint16 // in the hour
	path, ref uint32 // hashes; ref 0: none
}

const (
	maxHits       = 256 // per address-hour
	maxAgentsEach = 512 // distinct agents remembered of a client
	// pathsFrom is the number of pages from which paths are looked at: patterns
	// are for telling what a heavy client was after.
	pathsFrom = 30
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

// address returns what is counted: the address, an IPv6 network, or for digests
// and host names an address made of them (opaqueAddr), so that they keep keys of
// their own.
func (c *collector) address(r *accesslog.Record) (netip.Addr, bool) {
	a := r.Client
	if !a.IsValid() {
		raw := r.ClientRaw
		if raw == "" || raw == "-" || raw == "unix:" || strings.Trim(raw, "x.") == "" {
			return a, false
		}
		return opaqueAddr(raw), true
	}
	if a.Is4() {
		return a, true
	}
	p, err := a.Prefix(c.opts.prefix())
	if err != nil {
		return a, false
	}
	return p.Addr(), true
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

// use finds or adds an agent. What was used lately moves forwards, since lines of
// one visitor stand together.
func (cl *client) use(h uint64) *agentUse {
	for i := range cl.agents {
		if cl.agents[i].hash == h {
			j := i / 2
			cl.agents[i], cl.agents[j] = cl.agents[j], cl.agents[i]
			return &cl.agents[j]
		}
	}
	if len(cl.agents) >= maxAgentsEach {
		return new(agentUse) // counted with nobody
	}
	cl.agents = append(cl.agents, agentUse{hash: h})
	return &cl.agents[len(cl.agents)-1]
}

func add16(a, b uint16) uint16 {
	if a > 65535-b {
		return 65535
	}
	return a + b
}

// delivered reports whether an asset speaks for a browser: one that the site
// has. Scanners ask for assets that do not exist, and everybody for the favicon.
func delivered(r *accesslog.Record) bool {
	return (r.Status < 300 || r.Status == 304) && r.Path != "/favicon.ico"
}

func (c *collector) page(cl *client, r *accesslog.Record, a *agent, now int64) {
	n := 1 + r.LeftOut
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

// hash is the same in every run, so that two reports on one log are equal.
func hash(path, query string) uint32 {
	h := xxhash.Sum64String(path)
	if query != "" {
		h ^= xxhash.Sum64String(query) * 31
	}
	return uint32(h>>32) | 1
}

// hour finds a cell from the newest backwards: logs run forwards.
func (cl *client) hour(h int32) *hourCell {
	for i := len(cl.hours) - 1; i >= 0; i-- {
		if cl.hours[i].hour == h {
			return &cl.hours[i]
		}
	}
	cl.hours = append(cl.hours, hourCell{hour: h})
	return &cl.hours[len(cl.hours)-1]
}

func (cl *client) day(d int32) *dayCell {
	for i := len(cl.days) - 1; i >= 0; i-- {
		if cl.days[i].day == d {
			return &cl.days[i]
		}
	}
	cl.days = append(cl.days, dayCell{day: d})
	return &cl.days[len(cl.days)-1]
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

// splitReferer cuts a referrer into host, path and query.
func splitReferer(ref string) (host, path, query string, ok bool) {
	i := strings.Index(ref, "://")
	if i < 0 || i > 6 {
		return "", "", "", false
	}
	rest := ref[i+3:]
	s := strings.IndexByte(rest, '/')
	if s < 0 {
		return rest, "/", "", rest != ""
	}
	host, path = rest[:s], rest[s:]
	if q := strings.IndexByte(path, '?'); q >= 0 {
		path, query = path[:q], path[q+1:]
	}
	if q := strings.IndexByte(host, ':'); q >= 0 {
		host = host[:q]
	}
	return host, path, query, true
}

// isSearch recognises the hosts from which people come, for logs that do not
// tell the site's own name.
func isSearch(host string) bool {
	for _, s := range [...]string{"google.", "bing.", "duckduckgo.", "yahoo.", "yandex.", "baidu.", "facebook.", "t.co", "news."} {
		if strings.HasPrefix(strings.TrimPrefix(host, "www."), s) {
			return true
		}
	}
	return false
}
