package sizing

import (
	"net/netip"
	"strings"

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
	sampled   int64 // the most pages that one line stands for, within a minute

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
