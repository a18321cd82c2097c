package asn

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stilehq/stile/core"
)

// A Header reads the number from a field that an edge writes:
// CloudFront-Viewer-ASN, or one that a rule of Cloudflare's fills. It is
// immutable and safe for concurrent use.
type Header struct {
	name string
	from *core.ClientSource
}

// FromHeader returns a source that reads the field of that canonical name, of
// peers that from proves only. It refuses a source that proves no peers: any
// client could name any network, and so fill another's bucket or leave its own.
func FromHeader(name string, from *core.ClientSource) (*Header, error) {
	switch {
	case name == "":
		return nil, errors.New("asn: no name of a field")
	case from == nil || len(from.Peers) == 0 && len(from.PeerSecrets) == 0:
		return nil, errors.New("asn: " + name + " can be written by anyone: say who the peers are, or give them a secret")
	}
	return &Header{name, from}, nil
}

var _ core.ASNSource = (*Header)(nil)

// LookupASN implements core.ASNSource; 0 when the peer is not proven, or the
// field is absent, sent twice or no number.
func (h *Header) LookupASN(r *core.Request, _ netip.Addr) uint32 {
	if r.Header == nil || !h.from.Proven(r) {
		return 0
	}
	v := r.Header.Values(h.name)
	if len(v) != 1 {
		return 0
	}
	n, _ := parseNumber(strings.Trim(v[0], " \t"))
	return n
}

// parseNumber reads "13335" or "AS13335"; false when it is none. AS 0 is nobody's
// (RFC 7607).
func parseNumber(s string) (uint32, bool) {
	if len(s) > 2 && (s[0] == 'A' || s[0] == 'a') && (s[1] == 'S' || s[1] == 's') {
		s = s[2:]
	}
	if s == "" || len(s) > 10 || s[0] < '0' || s[0] > '9' {
		return 0, false // ParseUint would take a sign
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, false
	}
	return uint32(n), n > 0
}
