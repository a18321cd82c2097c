package crawlers

import (
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// owners says whose a range is: the union over every list that covers it, so
// that the longest match alone answers (4.227.36.0/25 is on two of OpenAI's
// lists; Meta publishes /24s inside its own /18s).
type owners struct {
	lists  mask
	agents mask
	lone   int // the agent that an address alone proves, or -1
}

// table is an immutable longest-prefix table.
type table struct {
	routes bart.Table[uint32] // prefix -> index into sets
	sets   []owners
}

// source is one list's part of a table.
type source struct {
	list     int
	prefixes []netip.Prefix
	agents   mask
	lone     int // the agent that an address alone proves; -1 when the list is not dedicated
}

func newTable(sources []source) *table {
	direct := map[netip.Prefix]owners{}
	for _, s := range sources {
		own := owners{agents: s.agents, lone: s.lone}
		own.lists.set(s.list)
		for _, p := range s.prefixes {
			if held, ok := direct[p]; ok {
				direct[p] = held.merge(own)
				continue
			}
			direct[p] = own
		}
	}
	order := make([]netip.Prefix, 0, len(direct))
	for p := range direct {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b netip.Prefix) int { // the wider first: it is in the table when its parts are merged
		if d := a.Bits() - b.Bits(); d != 0 {
			return d
		}
		return a.Addr().Compare(b.Addr())
	})
	t := &table{}
	index := map[owners]uint32{}
	for _, p := range order {
		own := direct[p]
		if outer, ok := t.routes.LookupPrefix(p); ok {
			own = own.merge(t.sets[outer])
		}
		i, ok := index[own]
		if !ok {
			i = uint32(len(t.sets))
			index[own] = i
			t.sets = append(t.sets, own)
		}
		t.routes.Insert(p, i)
	}
	return t
}

// merge keeps o's lone agent when it has one: the narrower range knows better.
func (o owners) merge(outer owners) owners {
	o.lists, o.agents = o.lists.or(outer.lists), o.agents.or(outer.agents)
	if o.lone < 0 {
		o.lone = outer.lone
	}
	return o
}

// lookup returns the owners of the narrowest range that holds a, or nil. a must
// be unmapped and without a zone. It does not allocate.
func (t *table) lookup(a netip.Addr) *owners {
	if i, ok := t.routes.Lookup(a); ok {
		return &t.sets[i]
	}
	return nil
}
