package core

import (
	"net/netip"
	"time"
)

// Class is what a request is, by its own headers.
type Class uint8

const (
	Ignored     Class = iota // asset, other method, WebSocket, not a page: touches no bucket
	Counted                  // a navigation
	Speculative              // prefetch or prerender: claims bucket only
	Claim                    // asks for a page path but says it is no navigation: claims bucket only
)

// String returns the word used in logs and by explain.
func (c Class) String() string {
	switch c {
	case Counted:
		return "counted"
	case Speculative:
		return "speculative"
	case Claim:
		return "claim"
	}
	return "ignored"
}

// Outcome is what is to be done with a request.
type Outcome uint8

const (
	Pass        Outcome = iota // not counted, or exempt: let it through
	Admit                      // counted and within every limit
	Refuse                     // over a limit: 429 unless the policy observes
	Unavailable                // the store failed and the policy fails closed: 503
)

// String returns the word used by explain.
func (o Outcome) String() string {
	switch o {
	case Admit:
		return "admit"
	case Refuse:
		return "refuse"
	case Unavailable:
		return "unavailable"
	}
	return "pass"
}

// ClientProblem says why a client address is not what the policy meant it to be.
type ClientProblem uint8

const (
	ClientOK         ClientProblem = iota
	ClientMissing                  // the configured source is absent or empty
	ClientMalformed                // it does not hold an address
	ClientShortChain               // fewer hops than configured
	ClientUntrusted                // the peer may not speak for others; its own address is used
)

// String returns the word used in logs.
func (p ClientProblem) String() string {
	switch p {
	case ClientMissing:
		return "missing"
	case ClientMalformed:
		return "malformed"
	case ClientShortChain:
		return "short-chain"
	case ClientUntrusted:
		return "untrusted-peer"
	}
	return "ok"
}

// A Client is where a request came from.
type Client struct {
	Addr    netip.Addr   // unmapped, without zone; invalid = unidentified
	Prefix  netip.Prefix // what an address bucket counts
	Network netip.Prefix // IPv4 /24 or IPv6 /48
	Problem ClientProblem
	Hops    int // entries of the forwarding chain, for noticing that it changed
}

// A State is one bucket's view of one decision.
type State struct {
	Bucket     string
	Key        Kind
	Count      int64 // hits in the window, this one included when it was admitted
	Limit      int64
	Remaining  int64         // never negative
	Window     time.Duration // as configured
	Reset      time.Duration // until more becomes available; 0 = all is available
	RetryAfter time.Duration // 0 = not full; else until this bucket admits again
	Suspended  bool          // refused by the operator until RetryAfter is over, whatever the count
}

// A Decision is the whole of what was found out about one request. It never
// fails: a store's error is in Err and has been turned into an Outcome by the
// policy's FailureMode.
type Decision struct {
	Outcome  Outcome
	Reason   Reason
	Class    Class
	Observe  bool // Outcome is what enforcing would have done; do not refuse
	Client   Client
	Key      Key // the own key: what the request was, or would be, charged to
	Identity Identity
	Crawler  Crawler
	Network  Network // the configured range that matched, if Reason says so

	// States holds every bucket that applies, own buckets first; empty when
	// nothing was charged. Binding is the index of the one with the least room
	// (when refused: the one that admits last), or -1.
	States     []State
	Binding    int
	RetryAfter time.Duration // > 0 only when refused

	Err       error         // the store's error, if one was met; not for visitors
	StoreTime time.Duration // spent in the store; 0 when it was not asked
}

// Refused reports whether the request must be answered with 429.
func (d *Decision) Refused() bool { return d.Outcome == Refuse && !d.Observe }

// Reason is the machine-readable cause of an outcome; its text is an interface.
type Reason string

// The reasons. Those of requests that pass uncounted say why they did not count.
const (
	ReasonOff         Reason = "off"          // the policy is switched off
	ReasonMethod      Reason = "method"       // not a counted method
	ReasonUpgrade     Reason = "upgrade"      // WebSocket or other upgrade
	ReasonPath        Reason = "path"         // excluded, or not included
	ReasonDestination Reason = "destination"  // Sec-Fetch-Dest names something that is no page
	ReasonAccept      Reason = "accept"       // asks for something that is no page
	ReasonFeed        Reason = "feed"         // asks for a feed
	ReasonNetwork     Reason = "network"      // configured range
	ReasonCrawler     Reason = "crawler"      // verified crawler
	ReasonRedirect    Reason = "redirect"     // the next hop of a counted redirect
	ReasonNoBucket    Reason = "no-bucket"    // no bucket applies
	ReasonPrefetch    Reason = "prefetch"     // speculative
	ReasonClaim       Reason = "claim"        // says it is no navigation
	ReasonWithin      Reason = "within-limit" // counted and admitted
	ReasonOver        Reason = "over-limit"   // counted and refused by the store's counters
	ReasonRemembered  Reason = "over-limit-remembered"
	ReasonSuspended   Reason = "suspended" // by the operator
	ReasonSpeculating Reason = "speculative-while-limited"
	ReasonClaims      Reason = "claims-over-limit"
	ReasonStoreOpen   Reason = "store-error-open"
	ReasonStoreClosed Reason = "store-error-closed"
	ReasonStoreLocal  Reason = "store-error-local" // admitted by local counting
	ReasonLocalOver   Reason = "over-limit-local"  // refused by local counting
)
