package core

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/stilehq/stile/core/rows"
)

// ParseKey reads a key as people type it and the log shows it: "address
// 203.0.113.9", "network 203.0.113.0/24", "user alice", "asn 64500", "global". A
// lone address or range stands for itself. An address inside of a network is
// taken for that network, as counting takes it; IPv6Prefix is the policy's, 0 =
// 64. The error says what would be read.
func ParseKey(text string, ipv6Prefix int) (Key, error) {
	word, id, _ := strings.Cut(strings.TrimSpace(text), " ")
	id = strings.TrimSpace(id)
	if strings.ContainsAny(word, ".:") && id == "" {
		word, id = rows.Address.String(), word
		if strings.Contains(id, "/") && !strings.HasSuffix(id, fmt.Sprintf("/%d", orSixtyFour(ipv6Prefix))) {
			word = rows.Network.String()
		}
	}
	kind := Kind(0)
	for k := rows.Address; k <= rows.Global; k++ {
		if k.String() == word {
			kind = k
		}
	}
	switch {
	case kind == 0:
		return Key{}, fmt.Errorf("%q is no key: want one like \"address 203.0.113.9\", \"network 203.0.113.0/24\", \"user alice\" or \"global\"", text)
	case kind == rows.Global && id != "", kind != rows.Global && id == "":
		return Key{}, fmt.Errorf("%q is no key: a %s key has an id, a global one has none", text, word)
	case kind != rows.Address && kind != rows.Network:
		return Key{Kind: kind, ID: id}, nil
	case kind == rows.Address && id == unidentifiedID:
		return Key{Kind: kind, ID: id}, nil
	}
	bare, _, _ := strings.Cut(id, "/")
	a, err := netip.ParseAddr(bare)
	if err != nil || a.Zone() != "" {
		return Key{}, fmt.Errorf("%q is no key: %s is no address", text, bare)
	}
	c := (&ClientSource{IPv6Prefix: ipv6Prefix}).client(normalize(a), ClientOK, 0)
	of := c.Prefix
	if kind == rows.Network {
		of = c.Network
	}
	// Somebody who asks for another range than one that is counted would get a
	// part of it, or more than it.
	if strings.Contains(id, "/") && id != of.String() {
		return Key{}, fmt.Errorf("%q is no key: what is counted there is %s %s", text, kind, Key{Kind: kind, Net: of}.Display())
	}
	return Key{Kind: kind, Net: of}, nil
}

func orSixtyFour(n int) int {
	if n == 0 {
		return 64
	}
	return n
}
