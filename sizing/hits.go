package sizing

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/sizing/accesslog"
)

// A HitReport is what a hit log tells. Its JSON form is an interface.
type HitReport struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Log  HitLines  `json:"log"`

	Asked       int64 `json:"asked"`       // counted navigations, refused ones included
	Refused     int64 `json:"refused"`     // answered with 429
	WouldRefuse int64 `json:"would_limit"` // observed
	StoreErrors int64 `json:"store_errors"`
	LeftOut     int64 `json:"left_out"` // refusals that sampling did not write; they are in the numbers
	Clients     int   `json:"clients"`
	Limited     int   `json:"limited_clients"`
	Beyond      int64 `json:"not_tabulated"` // lines of clients beyond the table's bound

	Reasons []HitCount `json:"reasons"`
	Buckets []HitCount `json:"buckets"`
	Kinds   []HitKind  `json:"kinds"`

	Now      []HitLimited `json:"limited_now"`       // refused in the log's last hour
	People   []HitLimited `json:"people_hit"`        // who look like people
	Crawlers []HitLimited `json:"verified_crawlers"` // refused
	Abusers  []HitStory   `json:"abusers"`

	Boundary time.Time  `json:"enforced_since,omitzero"` // the first real refusal, or --since
	Before   *HitPeriod `json:"before,omitempty"`
	After    *HitPeriod `json:"after,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
	all      []*hitClient
	verdicts map[*hitClient]hitVerdict
}

// HitCount is refusals by some name.
type HitCount struct {
	Name    string `json:"name"`
	Refused int64  `json:"refused"`
	Clients int    `json:"clients,omitempty"`
}

// HitKind sums clients that look alike.
type HitKind struct {
	Name    string `json:"name"`
	Clients int    `json:"clients"`
	Limited int    `json:"limited_clients"`
	Asked   int64  `json:"asked"`
	Refused int64  `json:"refused"`
}

// HitLimited is one limited client with the evidence of what it is.
type HitLimited struct {
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

// HitPeriod is the traffic on one side of the boundary, by kind.
type HitPeriod struct {
	Hours   float64            `json:"hours"`
	Asked   map[string]float64 `json:"asked_per_hour"`
	Served  map[string]float64 `json:"served_per_hour"`
	Clients map[string]int     `json:"clients"`
}

type hitVerdict struct{ kind, why string }

// maxHitClients bounds the table; a spray of addresses must not take the
// machine's memory.
const (
	maxHitClients = 1_000_000
	maxHitNames   = 200 // of reasons, and of buckets
)

// A hitCollector takes entries one by one.
type hitCollector struct {
	r       HitReport
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

// HitOptions say how a hit log is read. The zero value takes the first real
// refusal for the moment of enforcement and believes no crawler.
type HitOptions struct {
	Since    time.Time // when the limit came into force; zero = the first real refusal
	Now      time.Time // lines from more than a day later are not believed; zero = the clock's
	Crawlers core.CrawlerVerifier
	Progress func(accesslog.Progress) // called while reading, if set
}

// Hits reads hit logs, in order, and says who is refused now and why, whether
// people are among them, and what abusers did next. Lines of other programs are
// counted; unreadable inputs are named in the report; the error is the context's.
func Hits(ctx context.Context, inputs []accesslog.Input, o HitOptions) (*HitReport, error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Progress == nil {
		o.Progress = func(accesslog.Progress) {}
	}
	h := newHitCollector()
	var err error
	if h.r.Log, err = readHits(ctx, inputs, o.Now, o.Progress, h.take); err != nil {
		return nil, err
	}
	return h.finish(o.Crawlers, o.Since), nil
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
func (h *hitCollector) finish(known core.CrawlerVerifier, since time.Time) *HitReport {
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
	r.verdicts = make(map[*hitClient]hitVerdict, len(r.all))
	r.Kinds = []HitKind{}
	kinds := map[string]*HitKind{}
	for _, c := range r.all {
		v := judge(c, known, sent)
		r.verdicts[c] = v
		k := kinds[v.kind]
		if k == nil {
			k = &HitKind{Name: v.kind}
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
	slices.SortFunc(r.Kinds, func(a, b HitKind) int { return cmp.Or(cmp.Compare(b.Asked, a.Asked), cmp.Compare(a.Name, b.Name)) })
	r.Reasons, r.Buckets = []HitCount{}, []HitCount{}
	for name, n := range h.reasons {
		r.Reasons = append(r.Reasons, HitCount{Name: name, Refused: n})
	}
	for name, t := range h.buckets {
		r.Buckets = append(r.Buckets, HitCount{Name: name, Refused: t.refused, Clients: len(t.clients)})
	}
	most := func(a, b HitCount) int { return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name)) }
	slices.SortFunc(r.Reasons, most)
	slices.SortFunc(r.Buckets, most)
	r.limited()
	r.stories()
	r.Boundary = since
	if since.IsZero() {
		r.Boundary = h.told
	}
	r.periods()
	r.notes(sent || h.browser == 0)
	return r
}

func judge(c *hitClient, known core.CrawlerVerifier, sent bool) hitVerdict {
	var m core.Crawler
	if known != nil {
		q := core.Request{Method: http.MethodGet, Path: "/", Header: http.Header{"User-Agent": {c.agent}}, Peer: c.addr, Time: c.last}
		m = known.VerifyCrawler(&q, c.addr)
	}
	switch {
	case c.addr.IsValid() && m.Verified:
		return hitVerdict{isVerified, "proven to be " + m.Name}
	case m.Claimed:
		return hitVerdict{isClaimed, "claims to be " + m.Name + " and is not proven to be"}
	}
	kind, why := c.looksLike(sent)
	return hitVerdict{kind, why}
}

// limited fills the lists of limited clients.
func (r *HitReport) limited() {
	r.Now, r.People, r.Crawlers = []HitLimited{}, []HitLimited{}, []HitLimited{}
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

func (r *HitReport) describe(c *hitClient) HitLimited {
	v := r.verdicts[c]
	return HitLimited{Client: c.key, KeyType: c.keyType, Kind: v.kind, Why: v.why, Agent: c.agent, Agents: len(c.agents), Asked: c.asked, Refused: c.refused,
		PeakHour: c.peakHour(), MedianGap: c.medianGap(), First: c.firstRefused, Last: c.lastRefused, Bucket: c.bucket, Until: c.until, Ref: c.ref}
}

// badNews reports whether someone was refused, or would be, who must not.
func (r *HitReport) BadNews() bool { return len(r.People) > 0 || len(r.Crawlers) > 0 }
