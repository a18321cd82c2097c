package sizing

import (
	"fmt"
	"net/netip"
)

// networks says what keys wider than an address would see: for each, the
// fullest day of engaged visitors sets a limit, and the robotic pages beyond it
// are what the key would stop.
func (m *measurement) networks(dayLimit int) []KeySize {
	levels := []struct {
		name string
		key  func(*client) (string, bool)
	}{
		{"address", func(cl *client) (string, bool) { return cl.key.addr.String(), true }},
		{"/24 and /48", func(cl *client) (string, bool) { return networkKey(cl.key.addr, 24, 48) }},
		{"/16 and /32", func(cl *client) (string, bool) { return networkKey(cl.key.addr, 16, 32) }},
		{"asn", func(cl *client) (string, bool) { return fmt.Sprint(cl.asn), cl.asn != 0 }},
		{"global", func(*client) (string, bool) { return "", true }},
	}
	var out []KeySize
	for _, l := range levels {
		type keyDay struct {
			key string
			day int32
		}
		people, robots := map[keyDay]int{}, map[keyDay]int{}
		keys := map[string]bool{}
		var total int64
		for _, cl := range m.clients {
			bad := m.unwanted(cl)
			if !bad && (cl.key.group != visitors || m.facts[cl].kind == single) {
				continue
			}
			k, ok := l.key(cl)
			if !ok {
				continue
			}
			keys[k] = true
			for _, d := range cl.days {
				if bad {
					robots[keyDay{k, d.day}] += int(d.pages)
					total += int64(d.pages)
				} else {
					people[keyDay{k, d.day}] += int(d.pages)
				}
			}
		}
		if len(keys) == 0 {
			continue
		}
		s := KeySize{Key: l.name, Keys: len(keys)}
		for _, n := range people {
			s.PeakHuman = max(s.PeakHuman, n)
		}
		for _, n := range robots {
			s.PeakRobot = max(s.PeakRobot, n)
		}
		s.Limit = max(dayLimit, niceAbove(s.PeakHuman))
		if l.name == "address" {
			s.Limit = dayLimit
		}
		var stopped int64
		for k, n := range robots {
			stopped += int64(max(0, min(n, n+people[k]-s.Limit)))
		}
		s.Stopped = float64(stopped) / float64(max(total, 1))
		out = append(out, s)
	}
	return out
}

func networkKey(a netip.Addr, v4, v6 int) (string, bool) {
	if isOpaque(a) {
		return "", false
	}
	bits := v6
	if a.Is4() {
		bits = v4
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "", false
	}
	return p.String(), true
}
