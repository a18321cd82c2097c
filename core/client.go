package core

import (
	"crypto/subtle"
	"net/netip"
	"strings"

	"github.com/stilehq/stile/core/rows"
)

const (
	// unidentifiedID is the address key of requests whose client could not be
	// found. It never mixes with real clients.
	unidentifiedID = "unidentified"
	// unidentifiedFactor widens that key's limits: a misconfiguration must not
	// lock everybody out, and must not be an open door either.
	unidentifiedFactor = 100
	// maxChain bounds how many entries of a forwarding chain are looked at.
	maxChain = 64
)

// Resolve finds the client of a request from the one configured source. It
// never fails: Problem says what was wrong, and Addr is then the peer's address
// if that is public, else invalid. No default trusts a header.
func (s *ClientSource) Resolve(r *Request) Client {
	peer := normalize(r.Peer)
	if s.From != FromRemote && !s.Proven(r) {
		return s.client(peer, ClientUntrusted, 0)
	}
	switch s.From {
	case FromPlatform:
		if a := normalize(r.Platform); a.IsValid() {
			return s.client(a, ClientOK, 0)
		}
		return s.fallback(peer, ClientMissing, 0)
	case FromHeader:
		v := r.first(s.Header)
		if v == "" {
			return s.fallback(peer, ClientMissing, 0)
		}
		if s.Header == "Cloudfront-Viewer-Address" {
			// Always carries a port, and writes IPv6 without brackets.
			if i := strings.LastIndexByte(v, ':'); i >= 0 {
				v = v[:i]
			}
		}
		if a, ok := ParseClient(v); ok {
			return s.client(a, ClientOK, 1)
		}
		return s.fallback(peer, ClientMalformed, 1)
	case FromXFF:
		if len(s.TrustedProxies) > 0 {
			return s.walkRanges(r, peer)
		}
		return s.countHops(r, peer)
	}
	if !peer.IsValid() {
		return s.client(peer, ClientMissing, 0)
	}
	return s.client(peer, ClientOK, 0)
}

// Proven reports whether the request's peer may speak for others: it is in
// Peers, or sends one of PeerSecrets. With neither configured every peer may.
func (s *ClientSource) Proven(r *Request) bool {
	if len(s.Peers) == 0 && len(s.PeerSecrets) == 0 {
		return true
	}
	if contains(s.Peers, normalize(r.Peer)) {
		return true
	}
	if len(s.PeerSecrets) == 0 {
		return false
	}
	sent := []byte(r.first(s.PeerSecretHeader))
	ok := 0
	for _, secret := range s.PeerSecrets {
		if secret != "" {
			ok |= subtle.ConstantTimeCompare(sent, []byte(secret))
		}
	}
	return ok == 1
}

// countHops takes the entry that the outermost of TrustedHops proxies wrote.
func (s *ClientSource) countHops(r *Request, peer netip.Addr) Client {
	chain := newChain(r)
	n := chain.count()
	hops := max(s.TrustedHops, 1)
	entry, ok := "", false
	for range hops {
		if entry, ok = chain.prev(); !ok {
			break
		}
	}
	switch {
	case n == 0:
		return s.fallback(peer, ClientMissing, 0)
	case !ok:
		return s.fallback(peer, ClientShortChain, n)
	}
	if a, ok := ParseClient(entry); ok {
		return s.client(a, ClientOK, n)
	}
	return s.fallback(peer, ClientMalformed, n)
}

// walkRanges walks from the peer to the left over trusted proxies. The first
// address outside of them is the client; if all are trusted, the leftmost is.
func (s *ClientSource) walkRanges(r *Request, peer netip.Addr) Client {
	chain := newChain(r)
	n := chain.count()
	if !peer.IsValid() {
		return s.client(peer, ClientMissing, n)
	}
	at := peer
	for contains(s.TrustedProxies, at) {
		entry, ok := chain.prev()
		if !ok {
			break
		}
		a, ok := ParseClient(entry)
		if !ok {
			return s.fallback(peer, ClientMalformed, n)
		}
		at = a
	}
	return s.client(at, ClientOK, n)
}

// fallback uses the peer where it can be a client at all.
func (s *ClientSource) fallback(peer netip.Addr, p ClientProblem, hops int) Client {
	if !isPublic(peer) {
		peer = netip.Addr{}
	}
	return s.client(peer, p, hops)
}

func (s *ClientSource) client(a netip.Addr, p ClientProblem, hops int) Client {
	c := Client{Addr: a, Problem: p, Hops: hops}
	if !a.IsValid() {
		return c
	}
	if a.Is4() {
		c.Prefix = netip.PrefixFrom(a, 32)
		c.Network, _ = a.Prefix(24)
		return c
	}
	bits := s.IPv6Prefix
	if bits < 32 || bits > 64 {
		bits = 64
	}
	c.Prefix, _ = a.Prefix(bits)
	c.Network, _ = a.Prefix(min(bits, 48))
	return c
}

// key returns the address key of the client.
func (c Client) key() Key {
	if !c.Addr.IsValid() {
		return Key{Kind: rows.Address, ID: unidentifiedID}
	}
	return Key{Kind: rows.Address, Net: c.Prefix}
}

// chain reads X-Forwarded-For from the right, over all its lines in order, as
// if they were one (RFC 9110 §5.3): the leftmost entries are the client's own
// words.
type chain struct {
	lines []string
	rest  string
	more  bool
	seen  int
}

func newChain(r *Request) chain {
	return chain{lines: r.values("X-Forwarded-For")}
}

// prev returns the next entry to the left. Empty entries are passed over.
func (c *chain) prev() (string, bool) {
	for c.seen < maxChain {
		if !c.more {
			if len(c.lines) == 0 {
				return "", false
			}
			c.rest, c.more = c.lines[len(c.lines)-1], true
			c.lines = c.lines[:len(c.lines)-1]
		}
		entry := c.rest
		if i := strings.LastIndexByte(c.rest, ','); i >= 0 {
			entry, c.rest = c.rest[i+1:], c.rest[:i]
		} else {
			c.more = false
		}
		c.seen++
		if entry = strings.Trim(entry, " \t"); entry != "" {
			return entry, true
		}
	}
	return "", false
}

// count returns how many entries are left, at most maxChain. It works on a copy.
func (c chain) count() int {
	for n := 0; ; n++ {
		if _, ok := c.prev(); !ok {
			return n
		}
	}
}

// ParseClient reads an address as proxies write it: with or without a port,
// brackets, quotes or zone. The result is unmapped and without zone. It refuses
// what cannot be a client: unspecified and multicast addresses, names, leading
// zeros.
func ParseClient(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t\"")
	if len(s) > 64 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		switch {
		case strings.HasPrefix(s, "["):
			host, port, ok := strings.Cut(s[1:], "]")
			if !ok || port != "" && !isPort(port) {
				return netip.Addr{}, false
			}
			a, err = netip.ParseAddr(host)
			if err == nil && !a.Is6() {
				return netip.Addr{}, false
			}
		default:
			i := strings.LastIndexByte(s, ':')
			if i < 0 || !isPort(s[i:]) {
				return netip.Addr{}, false
			}
			// "1.2.3.4:80", or eight groups of IPv6 and a port.
			a, err = netip.ParseAddr(s[:i])
		}
		if err != nil {
			return netip.Addr{}, false
		}
	}
	a = normalize(a)
	return a, a.IsValid()
}

// isPort reports whether s is ":" and a decimal port.
func isPort(s string) bool {
	if len(s) < 2 || len(s) > 6 || s[0] != ':' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// normalize makes one form of an address, so that one client is one key. A
// zoned address is in no prefix, and a mapped one in no IPv4 prefix.
func normalize(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}
	}
	return a
}

var cgnat = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func isPublic(a netip.Addr) bool {
	return a.IsValid() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !cgnat.Contains(a)
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
