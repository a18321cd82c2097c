package core

import (
	"net/netip"
	"time"
)

// Header looks up the lines of one header field, in the order received.
// http.Header satisfies it. The name is in canonical form ("Sec-Fetch-Dest").
type Header interface {
	Values(name string) []string
}

// Fields is header fields by canonical name, as net/http parses them:
// Fields(r.Header) of an *http.Request costs nothing. A decision asks for eight
// fields, and finds them here without bringing their names into canonical form
// first, as http.Header does each time. Names in another form are not found.
type Fields map[string][]string

// Values returns the lines of a field.
func (f Fields) Values(name string) []string { return f[name] }

// A Request is what an adapter saw of one HTTP request. Everything in it but
// Peer, Platform and Time was written by the client and is hostile.
type Request struct {
	Method   string
	Host     string // as sent, with port if any
	Path     string // percent-decoded path, beginning with a slash
	RawQuery string // as sent, without the question mark
	Header   Header // nil is an empty header

	Peer     netip.Addr // the other end of the connection; invalid when unknown
	Platform netip.Addr // the client as the platform itself reports it (API Gateway's sourceIp); invalid elsewhere
	// Blind says that nobody will see the origin's answer (an authorizer, a
	// forward-auth endpoint): what only the answer could refute is a claim then.
	Blind bool
	Time  time.Time // the only clock of the decision; keep its monotonic part
}

// values returns the lines of a field. The usual kind of header is asked without
// the detour over its interface.
func (r *Request) values(name string) []string {
	switch h := r.Header.(type) {
	case nil:
		return nil
	case Fields:
		return h[name]
	default:
		return h.Values(name)
	}
}

// first returns the single value of a field, or "" when there is none.
func (r *Request) first(name string) string {
	if v := r.values(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// An Identity is who a request is from, proven by a signature, a platform's
// claim or a proven peer's header. The zero Identity means "known by address
// only".
type Identity struct {
	Kind   Kind      // Cookie, User or APIKey; 0 = none
	ID     string    // what the counters are kept under; never a secret itself
	Anchor time.Time // Cookie only: when it was issued, where "the visitor's day" begins
	Tier   int64     // multiplies the key's limits; 0 and 1 = the policy's own limits
	Proof  string    // for logs and explain: "cookie", "jwt", "platform", "api-key"
}

// An Identifier recognises one kind of proof. Identify does no I/O, returns the
// zero Identity for anything absent, forged or expired, and is safe for
// concurrent use.
type Identifier interface {
	Identify(r *Request, client netip.Addr) Identity
}

// A Crawler is what is known of the automated client that a request claims to
// be from. Only Verified earns anything.
type Crawler struct {
	Name     string // "Googlebot"; from the catalogue, never the client's text
	Class    string // "search", "ai-training", ...
	Claimed  bool   // the User-Agent names it
	Verified bool   // its address or signature proves it
	Proof    string // "range", "rdns", "signature"; empty when not verified
}

// A CrawlerVerifier answers from a table: VerifyCrawler does no I/O, and is safe
// for concurrent use.
type CrawlerVerifier interface {
	VerifyCrawler(r *Request, client netip.Addr) Crawler
}

// A Network is what the policy says of a configured address range.
type Network struct {
	Prefix   netip.Prefix
	Exempt   bool      // never counted
	Multiply int64     // multiplies own limits when not exempt; 0 and 1 = ordinary
	Reason   string    // why the range is listed, for the next person
	Until    time.Time // the rule is ignored from then on; zero = no end
}

// Networks finds the longest configured range that holds an address.
type Networks interface {
	LookupNetwork(addr netip.Addr) (Network, bool)
}

// An ASNSource tells the autonomous system of a client, from a platform's
// header or a local table; 0 = unknown. No I/O; safe for concurrent use.
type ASNSource interface {
	LookupASN(r *Request, client netip.Addr) uint32
}
