package hitlog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// IPMode says how much of a client's address is logged.
type IPMode uint8

const (
	FullIP   IPMode = iota // the address; what sizing is most exact with
	PrefixIP               // its /24 or /48
	HMACIP                 // a keyed digest: the same client stays the same, nobody can tell who
)

// ParseIPMode reads the policy file's word; "" is FullIP.
func ParseIPMode(s string) (IPMode, error) {
	switch s {
	case "", "full":
		return FullIP, nil
	case "prefix":
		return PrefixIP, nil
	case "hmac":
		return HMACIP, nil
	}
	return 0, fmt.Errorf("hitlog: ip %q: want full, prefix or hmac", s)
}

// ip is the client as the mode has it.
func (l *Log) ip(c *core.Client) string {
	if !c.Addr.IsValid() {
		return ""
	}
	switch l.mode {
	case PrefixIP:
		return c.Network.String()
	case HMACIP:
		return l.digest(c.Addr.String())
	}
	return c.Addr.String()
}

// key is what was charged, with no more of an address than ip shows. In HMACIP
// names of users, keys and cookies are digests too.
func (l *Log) key(d *core.Decision) string {
	k := &d.Key
	if k.Kind == rows.Address || k.Kind == rows.Network {
		if !k.Net.IsValid() {
			return k.ID
		}
		switch l.mode {
		case PrefixIP:
			return d.Client.Network.String()
		case HMACIP:
			return l.digest(netText(k.Net))
		}
		return netText(k.Net)
	}
	if l.mode == HMACIP && k.Kind.Own() {
		return l.digest(k.ID)
	}
	return k.ID
}

func netText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

var digits = base32.StdEncoding.WithPadding(base32.NoPadding)

// digest has 80 bits: no two clients of one log meet by chance.
func (l *Log) digest(s string) string {
	m := hmac.New(sha256.New, l.secret)
	m.Write([]byte(s))
	var sum [sha256.Size]byte
	return "h:" + digits.EncodeToString(m.Sum(sum[:0])[:10])
}
