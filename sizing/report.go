package sizing

import (
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
)

// A Report is what a measurement found. Its JSON form is an interface.
type Report struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Zone     string    `json:"zone"`
	Log      LogFacts  `json:"log"`
	Traffic  Traffic   `json:"traffic"`
	Groups   []Group   `json:"groups"`
	Humans   Humans    `json:"humans"`
	Everyone Humans    `json:"everyone"` // all visitors, for comparison
	Shared   []Heavy   `json:"shared"`
	Abusers  []Heavy   `json:"abusers"`
	Crawlers []Robot   `json:"crawlers"`
	Networks []KeySize `json:"networks"` // what keys wider than an address would see
	Proposal Proposal  `json:"proposal"`
	Notes    []string  `json:"notes,omitempty"` // what the reader must know to trust the numbers
}

// LogFacts says what was read and what was not.
type LogFacts struct {
	Inputs  int               `json:"inputs"`
	Lines   int64             `json:"lines"`
	Bytes   int64             `json:"bytes"`
	Records int64             `json:"records"`
	Formats map[string]int64  `json:"formats"`
	Skipped map[string]int64  `json:"skipped"`
	Example map[string]string `json:"examples,omitempty"`
	Lacking []string          `json:"lacking_signals"`
	Errors  []string          `json:"errors,omitempty"`
}

// Traffic sums everybody.
type Traffic struct {
	Requests     int64 `json:"requests"`
	Pages        int64 `json:"pages"`
	Assets       int64 `json:"assets"`
	Soft         int64 `json:"soft_navigations"`
	Speculative  int64 `json:"speculative"`
	Embedded     int64 `json:"embedded"` // page-like requests that were parts of a page
	Bytes        int64 `json:"bytes"`
	PageBytes    int64 `json:"page_bytes"`
	AssetBytes   int64 `json:"asset_bytes"`
	CacheHits    int64 `json:"cache_hits"`
	CacheKnown   int64 `json:"cache_known"`
	NoAddress    int64 `json:"no_address"`
	Opaque       int64 `json:"opaque_clients"` // lines whose client is a name or digest
	Refused      int64 `json:"refused"`        // 429, or refused by Stile
	BeyondLimit  int64 `json:"not_stoppable_requests"`
	BeyondBytes  int64 `json:"not_stoppable_bytes"`
	Addresses    int   `json:"addresses"`
	NotTabulated int64 `json:"not_tabulated"` // lines of addresses beyond the table's bound
}

// Group is one part of the traffic.
type Group struct {
	Name      string `json:"name"`
	Addresses int    `json:"addresses"`
	Requests  int64  `json:"requests"`
	Pages     int64  `json:"pages"`
	Bytes     int64  `json:"bytes"`
}

// Humans describes a population by pages per address-hour and address-day.
type Humans struct {
	Addresses int          `json:"addresses"`
	Pages     int64        `json:"pages"`
	PerHour   Distribution `json:"per_hour"`
	PerDay    Distribution `json:"per_day"`
}

// Heavy is one address worth knowing, with the evidence and a verdict.
type Heavy struct {
	Address       string    `json:"address"`
	Claim         string    `json:"claim,omitempty"` // the crawler that it says to be
	Agent         string    `json:"user_agent"`
	Agents        int       `json:"user_agents"`
	Pages         int64     `json:"pages"`
	PeakHour      int       `json:"peak_hour"`
	PeakDay       int       `json:"peak_day"`
	PeakMinute    int       `json:"peak_minute"`
	MedianGap     float64   `json:"median_gap_s"`
	AssetsPerPage float64   `json:"assets_per_page"`
	Inside        float64   `json:"inside_share"` // pages reached from the site itself
	Errors        float64   `json:"error_share"`  // 4xx on pages
	Bytes         int64     `json:"bytes"`
	ASN           uint32    `json:"asn,omitempty"`
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	Patterns      []Pattern `json:"patterns,omitempty"`
	Distinct      int64     `json:"distinct_urls,omitempty"` // estimated, of the pages beyond the first 30
	Infinite      bool      `json:"infinite_space,omitempty"`
	Verdict       string    `json:"verdict"`
	Days          []Point   `json:"timeline,omitempty"` // pages by hour of the heaviest
}

// Point is pages in one hour.
type Point struct {
	Hour  int64 `json:"hour"` // Unix seconds of its beginning
	Pages int   `json:"pages"`
}

// Pattern is a family of paths.
type Pattern struct {
	Pattern string `json:"pattern"`
	Pages   int64  `json:"pages"`
	Example string `json:"example"`
}

// Robot sums what one declared crawler did.
type Robot struct {
	Name      string `json:"name"`
	Group     string `json:"group"`
	Addresses int    `json:"addresses"`
	Pages     int64  `json:"pages"`
	PeakHour  int    `json:"peak_hour"` // of one address
	Verified  int64  `json:"verified_pages"`
	Refuted   int64  `json:"unproven_pages"` // 0 and unknown when nothing was asked
	Asked     bool   `json:"asked"`
}

// KeySize says what one kind of key saw.
type KeySize struct {
	Key       string  `json:"key"` // address, /24 or /48, /16 or /32, asn, global
	Keys      int     `json:"keys"`
	PeakHuman int     `json:"peak_engaged_day"` // pages of engaged visitors in the fullest key-day
	PeakRobot int     `json:"peak_robotic_day"`
	Limit     int     `json:"limit"` // a daily limit that no engaged key-day reached
	Stopped   float64 `json:"stopped_share"`
}

// report assembles the report.
func (m *measurement) report() *Report {
	r := &Report{Zone: m.opts.zone().String()}
	if m.traffic.requests > 0 {
		r.From, r.To = time.Unix(m.traffic.from, 0).UTC(), time.Unix(m.traffic.to, 0).UTC()
	}
	r.Log = m.logFacts()
	m.sums(r)
	r.Humans = m.population(func(cl *client, f *facts) bool { return f.kind == engaged })
	r.Everyone = m.population(func(cl *client, f *facts) bool { return cl.pages > 0 })
	m.heavies(r)
	r.Crawlers = m.robots()
	r.Proposal = m.propose(r)
	r.Notes = m.notes(r)
	return r
}

func (m *measurement) logFacts() LogFacts {
	l := LogFacts{Inputs: m.log.Inputs, Lines: m.log.Lines, Bytes: m.log.Bytes, Records: m.log.Records,
		Formats: map[string]int64{}, Skipped: map[string]int64{}, Example: map[string]string{}}
	for f, n := range m.log.Formats {
		if n > 0 {
			l.Formats[accesslog.Format(f).String()] = n
		}
	}
	for k, n := range m.log.Skipped {
		if n > 0 {
			l.Skipped[accesslog.Kind(k).String()] = n
			if accesslog.Kind(k).Bad() {
				l.Example[accesslog.Kind(k).String()] = m.log.Examples[k]
			}
		}
	}
	l.Lacking = (m.log.Lacking &^ m.log.Has).Names()
	for _, err := range m.log.Errors {
		l.Errors = append(l.Errors, err.Error())
	}
	return l
}

// sums fills traffic and groups.
func (m *measurement) sums(r *Report) {
	t := &m.traffic
	r.Traffic = Traffic{
		Requests: t.requests, Pages: t.pages - m.norms.embedded, Assets: t.assets + m.norms.embedded, Soft: t.softs,
		Speculative: t.speculatives, Embedded: m.norms.embedded, Bytes: t.bytes, PageBytes: t.pageBytes, AssetBytes: t.assetBytes,
		CacheHits: t.cacheHits, CacheKnown: t.cacheKnown, NoAddress: t.noAddress, Opaque: t.opaque, Refused: t.refused,
		BeyondLimit: t.requests - t.pages + m.norms.embedded, BeyondBytes: t.bytes - t.pageBytes, NotTabulated: m.overflow,
	}
	groups := make([]Group, numGroups)
	for g := range groups {
		groups[g].Name = group(g).String()
	}
	for _, cl := range m.clients {
		g := &groups[cl.key.group]
		g.Addresses++
		g.Requests += cl.requests
		g.Pages += cl.pages
		g.Bytes += cl.bytes
	}
	for _, g := range groups {
		r.Traffic.Addresses += g.Addresses
		if g.Requests > 0 {
			r.Groups = append(r.Groups, g)
		}
	}
}

// population describes the visitors that belong.
func (m *measurement) population(belongs func(*client, *facts) bool) Humans {
	var h Humans
	var hours, days []int
	for _, cl := range m.clients {
		if cl.key.group != visitors || cl.pages == 0 || !belongs(cl, m.facts[cl]) {
			continue
		}
		h.Addresses++
		h.Pages += cl.pages
		for _, c := range cl.hours {
			if c.pages > 0 {
				hours = append(hours, int(c.pages))
			}
		}
		for _, d := range cl.days {
			if d.pages > 0 {
				days = append(days, int(d.pages))
			}
		}
	}
	h.PerHour, h.PerDay = distribute(hours), distribute(days)
	return h
}
