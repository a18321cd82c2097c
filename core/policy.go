package core

import (
	"net/netip"
	"time"
)

// A Policy says what counts, who is exempt and which limits hold. Package
// policy builds it from a file; [New] refuses an impossible one. It must not be
// changed once handed to New.
type Policy struct {
	Site    string  // namespace of keys in the store and in the log
	Off     bool    // let everything through, and neither count nor log it
	Observe bool    // decide, charge and log as ever, but never refuse
	Scale   float64 // multiplies every limit; 0 = 1. Limits are rounded up
	Count   Count
	Client  ClientSource
	Buckets []Bucket

	Claims       ClaimsMode
	ClaimsFactor int64 // the claims bucket is this many times the page limits; 0 = 20

	Networks Networks             // nil = none
	Crawlers map[string]Treatment // by crawler class; absent = ordinary

	OnError FailureMode
}

// ClaimsMode says what happens when a client's uncounted requests for page
// paths (prefetches and claims) pass their own wide limit.
type ClaimsMode uint8

const (
	ClaimsEnforce ClaimsMode = iota // refuse them
	ClaimsLog                       // log them as would-limit
	ClaimsOff                       // do not count them
)

// FailureMode says what a store's failure means for the visitor.
type FailureMode uint8

const (
	FailOpen   FailureMode = iota // let the request through
	FailClosed                    // 503, never 429
	FailLocal                     // count in this instance's memory meanwhile
)

// A Treatment says what a verified crawler of a class gets. The zero Treatment
// is the ordinary limit.
type Treatment struct {
	Exempt   bool
	Multiply int64 // multiplies own limits when not exempt; 0 and 1 = ordinary
}

// AlgorithmKind names how a bucket counts.
type AlgorithmKind uint8

const (
	FixedWindow          AlgorithmKind = 1 + iota // exact per calendar window; up to twice the limit around an edge
	SlidingWindowLog                              // 60 sub-windows; never more than the limit in any true window
	SlidingWindowCounter                          // this window plus the weighted last one
	TokenBucket                                   // refills evenly, holds Burst (default: Limit)
	GCRA                                          // even spacing with Burst (default 1) in hand
)

// String returns the policy file's word.
func (k AlgorithmKind) String() string {
	switch k {
	case FixedWindow:
		return "fixed-window"
	case SlidingWindowLog:
		return "sliding-window-log"
	case SlidingWindowCounter:
		return "sliding-window-counter"
	case TokenBucket:
		return "token-bucket"
	case GCRA:
		return "gcra"
	}
	return "invalid"
}

// Clock reports whether the algorithm keeps one clock cell instead of window
// counters.
func (k AlgorithmKind) Clock() bool { return k == TokenBucket || k == GCRA }

// A Bucket is a named limit over one key.
type Bucket struct {
	Name      string // unique; goes into RateLimit fields and logs
	Key       Kind
	Header    string // Key == rows.Header: canonical name of a proven edge's field
	Algorithm AlgorithmKind
	Limit     int64         // navigations per window, >= 1
	Window    time.Duration // >= 1 s, whole seconds
	Burst     int64         // TokenBucket, GCRA; 0 = the algorithm's default

	// Zone is the calendar of windows that are whole days; nil = UTC. Shorter
	// windows are always absolute.
	Zone *time.Location
	// Visitor starts days at the cookie's issue instead of at midnight. Cookie
	// keys only; it then holds for every bucket of the cookie key.
	Visitor bool
	// FlushEvery lets an outer bucket's hits stay unreported for that long, so
	// that they cost no operation of their own; 0 = report each at once.
	FlushEvery time.Duration
	// Paths restricts the bucket to some pages; nil = every counted page.
	Paths *Patterns
}

// Count says which requests are navigations.
type Count struct {
	Methods []string  // empty = GET
	Include *Patterns // nil = every path
	Exclude *Patterns // nil = DefaultExclude
}

// ClientFrom says which single source the client address is taken from.
type ClientFrom uint8

const (
	FromRemote   ClientFrom = iota // the connection's other end
	FromXFF                        // X-Forwarded-For, by hops or by trusted ranges
	FromHeader                     // one named header with one address
	FromPlatform                   // the platform's own field
)

// ClientSource says how the client address is found. The zero value takes the
// connection's other end: no header is trusted by default.
type ClientSource struct {
	From   ClientFrom
	Header string // FromHeader: canonical name

	// TrustedHops is how many proxies append to X-Forwarded-For in front of
	// Stile: 1 means that the rightmost entry is the client. Used when
	// TrustedProxies is empty.
	TrustedHops int
	// TrustedProxies, if set, is walked over from the right: the first entry
	// outside these ranges is the client.
	TrustedProxies []netip.Prefix

	// Peers and PeerSecrets say whose word is taken at all. With neither set any
	// peer is believed; otherwise a peer in one of the ranges or one that sends
	// one of the secrets in PeerSecretHeader. Another peer is its own client.
	Peers            []netip.Prefix
	PeerSecretHeader string // canonical name
	PeerSecrets      []string

	IPv6Prefix int // 32..64; 0 = 64
}
