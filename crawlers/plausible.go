package crawlers

import (
	"cmp"
	"net/netip"
	"slices"
)

// What no crawler's list holds. The widest honest lists of 2026 are companies'
// whole networks: about 2^20 IPv4 addresses and thirteen /32 of IPv6.
const (
	minBits4    = 8       // a prefix shorter than /8 is refused
	minBits6    = 16      // and one shorter than /16
	maxCover4   = 1 << 22 // addresses in one list: a /10, a thousandth of the internet
	maxCover6   = 256     // units of /32 in one list: a /24
	unit6       = 32      // the prefix length that maxCover6 counts
	maxFraction = 1 << 20 // resolution below one unit: /52
)

// bogons are networks that no crawler can come from: private, local,
// documentation and reserved space (RFC 6890 and its registry). Such an entry
// would exempt whoever reaches the service from inside.
var bogons = func() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"::/8", "64:ff9b::/32", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/9", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}()

// tidy sorts by address, the wider prefix first, and drops duplicates.
func tidy(p []netip.Prefix) []netip.Prefix {
	slices.SortFunc(p, comparePrefix)
	return slices.Compact(p)
}

func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// plausible judges a tidy list: nil when it can be a crawler's.
func plausible(prefixes []netip.Prefix) error {
	if len(prefixes) == 0 {
		return refuse("no prefixes")
	}
	var cover4, cover6 uint64
	var last netip.Prefix
	for _, p := range prefixes {
		least := minBits6
		if p.Addr().Is4() {
			least = minBits4
		}
		if p.Bits() < least {
			return refuse("%v is too wide", p)
		}
		for _, b := range bogons {
			if b.Overlaps(p) {
				return refuse("%v is reserved space", p)
			}
		}
		if last.IsValid() && last.Overlaps(p) {
			continue // inside a wider entry: counted there
		}
		last = p
		switch {
		case p.Addr().Is4():
			cover4 += 1 << (32 - p.Bits())
		case p.Bits() <= unit6:
			cover6 += maxFraction << (unit6 - p.Bits())
		default:
			cover6 += max(1, uint64(maxFraction)>>(p.Bits()-unit6))
		}
	}
	if cover4 > maxCover4 {
		return refuse("covers %d IPv4 addresses, more than %d", cover4, maxCover4)
	}
	if cover6 > maxCover6*maxFraction {
		return refuse("covers more than %d IPv6 networks of /%d", maxCover6, unit6)
	}
	return nil
}
