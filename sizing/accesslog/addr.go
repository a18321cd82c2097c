package accesslog

import (
	"net/netip"
	"strings"
)

// parseAddr reads an address as logs write it: bare, with a port, in brackets,
// with a zone, IPv4 in IPv6. An IPv6 address with a port but without brackets is
// told from a bare one by its ninth group, or by a last group that cannot be one.
func parseAddr(s string) (netip.Addr, bool) {
	if a, ok := parseV4(s); ok {
		return a, true
	}
	if len(s) < 2 || len(s) > 64 {
		return netip.Addr{}, false
	}
	if s[0] == '"' || s[0] == '\'' {
		s = strings.Trim(s, `"'`)
	}
	if s != "" && s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		s = s[1:end]
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return clean(a), true
	}
	return parseAddrPort(s)
}

// parseAddrPort reads address:port where a port is always written.
func parseAddrPort(s string) (netip.Addr, bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || len(s)-i > 6 || !digits(s[i+1:]) {
		return netip.Addr{}, false
	}
	s = s[:i]
	if s[0] == '[' {
		s = strings.Trim(s, "[]")
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return clean(a), true
}

func clean(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// parseV4 is the hot path: dotted decimal and nothing else.
func parseV4(s string) (netip.Addr, bool) {
	if len(s) < 7 || len(s) > 15 {
		return netip.Addr{}, false
	}
	var b [4]byte
	n, v, d := 0, 0, 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '.' {
			if d == 0 || n == 3 {
				return netip.Addr{}, false
			}
			b[n] = byte(v)
			n, v, d = n+1, 0, 0
			continue
		}
		if c < '0' || c > '9' {
			return netip.Addr{}, false
		}
		v = v*10 + int(c-'0')
		d++
		if d > 3 || v > 255 {
			return netip.Addr{}, false
		}
	}
	if n != 3 || d == 0 {
		return netip.Addr{}, false
	}
	b[3] = byte(v)
	return netip.AddrFrom4(b), true
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// setClient fills the client of r: own is the format's own field, xff the list
// that the line carries (or ""), named the value of the header the rule names.
func (p *Parser) setClient(r *Record, own, xff, named string) {
	if named != "" && named != "-" {
		r.ClientRaw = named
		r.Client, _ = parseAddr(strings.TrimSpace(lastOf(named)))
		return
	}
	if xff != "" && xff != "-" && (p.hops > 0 || len(p.trusted) > 0) {
		if a, raw, ok := p.fromList(xff); ok {
			r.Client, r.ClientRaw = a, raw
			return
		}
		p.stats.ShortChains++
	}
	r.ClientRaw = own
	if a, ok := parseAddr(own); ok {
		r.Client = a
		return
	}
	if strings.IndexByte(own, ',') >= 0 { // the server writes a list into its address field
		raw := strings.TrimSpace(lastOf(own))
		r.Client, _ = parseAddr(raw)
		return
	}
	if pre, err := netip.ParsePrefix(own); err == nil { // Stile's log.ip: prefix
		r.Client = clean(pre.Masked().Addr())
	}
}

// lastOf returns the rightmost entry of a list: the one that the nearest server
// wrote, and so the only one that is not the visitor's own word.
func lastOf(list string) string {
	return list[strings.LastIndexByte(list, ',')+1:]
}

// fromList walks an X-Forwarded-For list from the right.
func (p *Parser) fromList(list string) (netip.Addr, string, bool) {
	for hop := 1; ; hop++ {
		i := strings.LastIndexByte(list, ',')
		raw := strings.TrimSpace(list[i+1:])
		a, ok := parseAddr(raw)
		if len(p.trusted) > 0 {
			if !ok || !p.isTrusted(a) {
				return a, raw, ok
			}
		} else if hop == p.hops {
			return a, raw, ok
		}
		if i < 0 {
			return netip.Addr{}, "", false
		}
		list = list[:i]
	}
}

func (p *Parser) isTrusted(a netip.Addr) bool {
	for _, t := range p.trusted {
		if t.Contains(a) {
			return true
		}
	}
	return false
}
