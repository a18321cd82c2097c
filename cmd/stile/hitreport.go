package main

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
)

// A hitReport is what a hit log tells. Its JSON form is an interface.
type hitReport struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Log  hitLines  `json:"log"`

	Asked       int64 `json:"asked"`       // counted navigations, refused ones included
	Refused     int64 `json:"refused"`     // answered with 429
	WouldRefuse int64 `json:"would_limit"` // observed
	StoreErrors int64 `json:"store_errors"`
	LeftOut     int64 `json:"left_out"` // refusals that sampling did not write; they are in the numbers
	Clients     int   `json:"clients"`
	Limited     int   `json:"limited_clients"`
	Beyond      int64 `json:"not_tabulated"` // lines of clients beyond the table's bound

	Reasons []hitCount `json:"reasons"`
	Buckets []hitCount `json:"buckets"`
	Kinds   []hitKind  `json:"kinds"`

	Now      []hitLimited `json:"limited_now"`       // refused in the log's last hour
	People   []hitLimited `json:"people_hit"`        // who look like people
	Crawlers []hitLimited `json:"verified_crawlers"` // refused
	Abusers  []hitStory   `json:"abusers"`

	Boundary time.Time  `json:"enforced_since,omitzero"` // the first real refusal, or --since
	Before   *hitPeriod `json:"before,omitempty"`
	After    *hitPeriod `json:"after,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
	all      []*hitClient
	verdicts map[*hitClient]verdict
}

// hitCount is refusals by some name.
type hitCount struct {
	Name    string `json:"name"`
	Refused int64  `json:"refused"`
	Clients int    `json:"clients,omitempty"`
}

// hitKind sums clients that look alike.
type hitKind struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
	Limited int    `json:"limited_clients"`
	Asked   int64  `json:"asked"`
	Refused int64  `json:"refused"`
}

// hitLimited is one limited client with the evidence of what it is.
type hitLimited struct {
	Client    string    `json:"client"`
	KeyType   string    `json:"key_type"`
	Kind      string    `json:"kind"`
	Why       string    `json:"why"`
	Agent     string    `json:"user_agent"`
	Agents    int       `json:"user_agents"`
	Asked     int64     `json:"asked"`
	Refused   int64     `json:"refused"`
	PeakHour  int64     `json:"peak_hour"`
	MedianGap int64     `json:"median_gap_s"`
	First     time.Time `json:"first_refusal"`
	Last      time.Time `json:"last_refusal"`
	Bucket    string    `json:"bucket,omitempty"`
	Until     time.Time `json:"until,omitzero"` // when that bucket lets it in again
	Ref       string    `json:"ref,omitempty"`  // as the visitor saw it
}

// hitPeriod is the traffic on one side of the boundary, by kind.
type hitPeriod struct {
	Hours   float64            `json:"hours"`
	Asked   map[string]float64 `json:"asked_per_hour"`
	Served  map[string]float64 `json:"served_per_hour"`
	Clients map[string]int     `json:"clients"`
}

type verdict struct{ kind, why string }

// maxHitClients bounds the table; a spray of addresses must not take the
// machine's memory.
const (
	maxHitClients = 1_000_000
	maxHitNames   = 200 // of reasons, and of buckets
)

// A hitCollector takes entries one by one.
type hitCollector struct {
	r       hitReport
	clients map[string]*hitClient
	reasons map[string]int64
	buckets map[string]*bucketTally
	limit   int
	browser int64     // lines with a browser's name,
	dest    int64     // and of those the lines with fetch metadata
	told    time.Time // the first real refusal
}

type bucketTally struct {
	refused int64
	clients map[*hitClient]struct{}
}

func newHitCollector() *hitCollector {
	return &hitCollector{clients: map[string]*hitClient{}, reasons: map[string]int64{}, buckets: map[string]*bucketTally{}, limit: maxHitClients}
}

// take adds one line.
func (h *hitCollector) take(e *hitlog.Entry) {
	if h.r.From.IsZero() || e.Time.Before(h.r.From) {
		h.r.From = e.Time
	}
	if e.Time.After(h.r.To) {
		h.r.To = e.Time
	}
	weight := 1 + e.LeftOut
	switch e.Event {
	case hitlog.StoreError:
		h.r.StoreErrors += weight
		return
	case hitlog.Limited:
		h.r.Refused += weight
		if h.told.IsZero() || e.Time.Before(h.told) {
			h.told = e.Time
		}
	case hitlog.WouldLimit:
		h.r.WouldRefuse += weight
	}
	h.r.Asked += weight
	h.r.LeftOut += e.LeftOut
	c := h.client(e)
	if e.Event != hitlog.Hit {
		reason, name := e.Reason, "none named"
		if _, ok := h.reasons[reason]; !ok && len(h.reasons) >= maxHitNames {
			reason = "others"
		}
		h.reasons[reason] += weight
		if b := binding(e); b != nil {
			name = b.Name
		}
		if h.buckets[name] == nil && len(h.buckets) >= maxHitNames {
			name = "others"
		}
		t := h.buckets[name]
		if t == nil {
			t = &bucketTally{clients: map[*hitClient]struct{}{}}
			h.buckets[name] = t
		}
		t.refused += weight
		if c != nil {
			t.clients[c] = struct{}{}
		}
	}
	if c == nil {
		h.r.Beyond++
		return
	}
	if browserName(e.UserAgent) {
		h.browser++
		if e.SecFetchDest != "" {
			h.dest++
		}
	}
	c.add(e)
}

func (h *hitCollector) client(e *hitlog.Entry) *hitClient {
	key, kind := e.Key, e.KeyType
	if key == "" {
		key, kind = e.IP, "address"
	}
	id := kind + " " + key
	c := h.clients[id]
	if c == nil && len(h.clients) < h.limit {
		c = &hitClient{keyType: strings.Clone(kind), key: strings.Clone(key)}
		if a, err := netip.ParseAddr(e.IP); err == nil {
			c.addr = a.Unmap().WithZone("")
			size := 24
			if c.addr.Is6() {
				size = 48
			}
			c.network, _ = c.addr.Prefix(size)
		} else if p, err := netip.ParsePrefix(e.IP); err == nil {
			c.network = p.Masked()
		}
		h.clients[strings.Clone(id)] = c
	}
	return c
}

// finish judges everybody and assembles the report. A zero since means that the
// first real refusal is the boundary between before and after.
func (h *hitCollector) finish(known core.CrawlerVerifier, since time.Time) *hitReport {
	r := &h.r
	r.all = make([]*hitClient, 0, len(h.clients))
	for _, c := range h.clients {
		r.all = append(r.all, c)
	}
	slices.SortFunc(r.all, func(a, b *hitClient) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(b.asked, a.asked), cmp.Compare(a.key, b.key))
	})
	r.Clients = len(r.all)
	// A tenth, since most of what bears a browser's name may be programs.
	sent := h.dest > 0 && h.dest*10 >= h.browser
	r.verdicts = make(map[*hitClient]verdict, len(r.all))
	r.Kinds = []hitKind{}
	kinds := map[string]*hitKind{}
	for _, c := range r.all {
		v := judge(c, known, sent)
		r.verdicts[c] = v
		k := kinds[v.kind]
		if k == nil {
			k = &hitKind{Name: v.kind}
			kinds[v.kind] = k
		}
		k.Clients++
		k.Asked += c.asked
		k.Refused += c.refused
		if c.refused > 0 {
			k.Limited++
			r.Limited++
		}
	}
	for _, k := range kinds {
		r.Kinds = append(r.Kinds, *k)
	}
	slices.SortFunc(r.Kinds, func(a, b hitKind) int { return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(a.Name, b.Name)) })
	r.Reasons, r.Buckets = []hitCount{}, []hitCount{}
	for name, n := range h.reasons {
		r.Reasons = append(r.Reasons, hitCount{Name: name, Refused: n})
	}
	for name, t := range h.buckets {
		r.Buckets = append(r.Buckets, hitCount{Name: name, Refused: t.refused, Clients: len(t.clients)})
	}
	most := func(a, b hitCount) int { return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name)) }
	slices.SortFunc(r.Reasons, most)
	slices.SortFunc(r.Buckets, most)
	r.limited()
	r.stories()
	r.Boundary = since
	if since.IsZero() {
		r.Boundary = h.told
	}
	r.periods()
	r.notes(sent)
	return r
}

func judge(c *hitClient, known core.CrawlerVerifier, sent bool) verdict {
	q := core.Request{Method: http.MethodGet, Path: "/", Header: http.Header{"User-Agent": {c.agent}}, Peer: c.addr, Time: c.last}
	if m := known.VerifyCrawler(&q, c.addr); c.addr.IsValid() && m.Verified {
		return verdict{isVerified, "proven to be " + m.Name}
	} else if m.Claimed {
		return verdict{isClaimed, "claims to be " + m.Name + " and is not proven to be"}
	}
	kind, why := c.looksLike(sent)
	return verdict{kind, why}
}

// limited fills the lists of limited clients.
func (r *hitReport) limited() {
	r.Now, r.People, r.Crawlers = []hitLimited{}, []hitLimited{}, []hitLimited{}
	lastHour := r.To.Add(-time.Hour)
	for _, c := range r.all {
		if c.refused == 0 {
			break // sorted
		}
		l := r.describe(c)
		if !c.lastRefused.Before(lastHour) {
			r.Now = append(r.Now, l)
		}
		switch r.verdicts[c].kind {
		case isPerson, isShared:
			r.People = append(r.People, l)
		case isVerified:
			r.Crawlers = append(r.Crawlers, l)
		}
	}
	const most = 100
	r.Now, r.People, r.Crawlers = r.Now[:min(len(r.Now), most)], r.People[:min(len(r.People), most)], r.Crawlers[:min(len(r.Crawlers), most)]
}

func (r *hitReport) describe(c *hitClient) hitLimited {
	v := r.verdicts[c]
	return hitLimited{Client: c.key, KeyType: c.keyType, Kind: v.kind, Why: v.why, Agent: c.agent, Agents: len(c.agents), Asked: c.asked, Refused: c.refused,
		PeakHour: c.peakHour(), MedianGap: c.medianGap(), First: c.firstRefused, Last: c.lastRefused, Bucket: c.bucket, Until: c.until, Ref: c.ref}
}

// badNews reports whether someone was refused, or would be, who must not.
func (r *hitReport) badNews() bool { return len(r.People) > 0 || len(r.Crawlers) > 0 }
