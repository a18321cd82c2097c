package crawlers

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/crawlers/internal/fetch"
	"github.com/stilehq/stile/crawlers/signature"
)

// Config configures a [Verifier]. The zero value works: the built-in catalogue
// and snapshot, the machine's resolver, the defaults below.
type Config struct {
	Catalogue *Catalogue // nil = [Default]
	// Snapshots are merged over the built-in one, list by list, the newest
	// content first; for example a file that [Verifier.Update] wrote at build time.
	Snapshots []Snapshot
	NoShipped bool // true: start without the built-in snapshot
	// Transport makes the list requests; nil = direct, public addresses only.
	// Behind a forward proxy give one with Proxy set.
	Transport http.RoundTripper
	// Signatures verifies signed agents; nil = none are. It is refreshed together
	// with the lists.
	Signatures *signature.Verifier
	Resolver   Resolver     // nil = net.Resolver in Go, which honours deadlines
	Logger     *slog.Logger // nil = slog.Default()
	Now        func() time.Time

	Interval      time.Duration // between fetches of one list; 0 = 24 h
	MaxAge        time.Duration // content older than this is warned of; 0 = 30 days
	FetchTimeout  time.Duration // per round of [Verifier.Run]; 0 = 30 s
	LookupTimeout time.Duration // per reverse proof, both directions; 0 = 3 s
	PositiveTTL   time.Duration // of a confirmed name; 0 = 24 h
	NegativeTTL   time.Duration // of a refuted claim; 0 = 1 h
	UndecidedTTL  time.Duration // after a DNS failure; 0 = 1 min
	Positives     int           // confirmed addresses kept; 0 = 2048
	Negatives     int           // refuted addresses kept; 0 = 4096
	QueueSize     int           // addresses waiting for DNS; 0 = 256
	QueuePerNet   int           // of those, from one /24 or /48; 0 = 16
}

func (c Config) withDefaults() Config {
	duration := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	count := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	duration(&c.Interval, 24*time.Hour)
	duration(&c.MaxAge, 30*24*time.Hour)
	duration(&c.FetchTimeout, 30*time.Second)
	duration(&c.LookupTimeout, 3*time.Second)
	duration(&c.PositiveTTL, 24*time.Hour)
	duration(&c.NegativeTTL, time.Hour)
	duration(&c.UndecidedTTL, time.Minute)
	count(&c.Positives, 2048)
	count(&c.Negatives, 4096)
	count(&c.QueueSize, 256)
	count(&c.QueuePerNet, 16)
	if c.Catalogue == nil {
		d := Default()
		c.Catalogue = &d
	}
	if c.Resolver == nil {
		// The resolver in Go stops at a deadline; the C library's would hold a thread.
		c.Resolver = &net.Resolver{PreferGo: true}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Proof says by what a crawler was verified.
type Proof string

// The proofs. Signature is given by package signature.
const (
	NoProof     Proof = ""
	ByRange     Proof = "range"
	ByReverse   Proof = "rdns"
	BySignature Proof = "signature"
)

// A Match says what is known of one client.
type Match struct {
	Name     string `json:"name,omitempty"` // of the agent: the proven one, else the claimed one, else empty
	Operator string `json:"operator,omitempty"`
	Class    Class  `json:"class,omitempty"`
	Claimed  bool   `json:"claimed"`         // the User-Agent or a signature names a known agent
	Verified bool   `json:"verified"`        // Name is proven by Proof; only this may exempt
	Proof    Proof  `json:"proof,omitempty"` // how; NoProof when not verified
}

// A Verifier answers from tables in memory. It is safe for concurrent use.
type Verifier struct {
	cfg           Config
	cat           Catalogue
	claims        *claims
	reverseAgents []mask // by pattern
	canReverse    mask   // agents with at least one pattern
	listAgents    []mask // by list
	listLone      []int  // by list: the agent that an address alone proves, or -1

	table    atomic.Pointer[table]
	verdicts verdicts
	queue    queue
	fetcher  fetch.Client

	flight  sync.Mutex   // held by the one refresh at work
	nextDue atomic.Int64 // Unix nanoseconds of the next due fetch
	pauseAt atomic.Int64 // Unix nanoseconds until which a budgeted refresh stays away

	mu    sync.Mutex // guards lists
	lists []listState
}

// New returns a verifier that answers from its snapshots. It does no I/O. The
// error reports every fault of the catalogue, or a bad built-in snapshot.
func New(cfg Config) (*Verifier, error) {
	cfg = cfg.withDefaults()
	cat := *cfg.Catalogue
	if err := cat.Validate(); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg, cat: cat, claims: newClaims(cat.Agents), fetcher: fetch.Client{Transport: cfg.Transport, Redirects: 3}}
	index := map[string]int{}
	for i, a := range cat.Agents {
		index[a.Name] = i
	}
	all := func(names []string) (m mask) {
		for _, n := range names {
			m.set(index[n])
		}
		return m
	}
	for _, r := range cat.Reverse {
		m := all(r.Agents)
		v.reverseAgents = append(v.reverseAgents, m)
		v.canReverse = v.canReverse.or(m)
	}
	for _, l := range cat.Lists {
		lone := -1
		if l.Dedicated {
			lone = index[l.Agents[0]]
		}
		v.listAgents, v.listLone = append(v.listAgents, all(l.Agents)), append(v.listLone, lone)
	}
	v.verdicts = verdicts{positive: cfg.Positives, negative: cfg.Negatives,
		positiveTTL: cfg.PositiveTTL, negativeTTL: cfg.NegativeTTL, undecidedTTL: cfg.UndecidedTTL}
	v.verdicts.current.Store(&map[netip.Addr]verdict{})
	v.queue = queue{held: map[netip.Addr]struct{}{}, perNet: map[netip.Prefix]int{},
		cap: cfg.QueueSize, netCap: cfg.QueuePerNet, wake: make(chan struct{}, 1)}
	if err := v.start(); err != nil {
		return nil, err
	}
	return v, nil
}

// Verify says whether client is a crawler, and queues a claim that the tables
// cannot answer. It does no I/O and allocates nothing. client may be mapped or
// zoned; now is the time of the request.
func (v *Verifier) Verify(client netip.Addr, userAgent string, now time.Time) Match {
	client = client.Unmap().WithZone("")
	claimed, first := v.claims.find(userAgent)
	if own := v.table.Load().lookup(client); own != nil {
		if i := pick(claimed.and(own.agents), first); i >= 0 {
			return v.match(i, true, ByRange)
		}
		if own.lone >= 0 {
			return v.match(own.lone, first >= 0, ByRange)
		}
	}
	if first < 0 {
		return Match{}
	}
	if able := claimed.and(v.canReverse); !able.empty() && client.IsValid() {
		held, ok := v.verdicts.get(client)
		at := now.UnixNano()
		if ok = ok && held.until > at; !ok || held.renew <= at {
			v.queue.add(client)
		}
		if ok {
			if i := pick(claimed.and(held.agents), first); i >= 0 {
				return v.match(i, true, ByReverse)
			}
		}
	}
	return v.match(first, true, NoProof)
}

// pick prefers the agent that the User-Agent names first.
func pick(m mask, first int) int {
	if m.has(first) {
		return first
	}
	return m.lowest()
}

func (v *Verifier) match(agent int, claimed bool, p Proof) Match {
	a := &v.cat.Agents[agent]
	return Match{Name: a.Name, Operator: a.Operator, Class: a.Class, Claimed: claimed, Verified: p != NoProof, Proof: p}
}

func (v *Verifier) names(m mask) []string {
	var out []string
	for i, a := range v.cat.Agents {
		if m.has(i) {
			out = append(out, a.Name)
		}
	}
	return out
}
