package core

import (
	"hash/fnv"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// A group is the buckets of one key that share one row: they are charged
// together, by one operation, all or none.
type group struct {
	kind    Kind
	header  string    // kind Header: the field
	paths   *Patterns // nil = every counted page; the same for all buckets of the group
	buckets []*Bucket

	layout   *rows.Layout // window counters; nil = clocks
	frame    atomic.Pointer[frame]
	plan     uint32 // clocks only
	anchored bool   // days begin at the cookie's issue
	maxAge   time.Duration

	// fuzzy marks a row whose count may for a moment hold a hit that another,
	// differently filtered row is about to refuse: its refusals are remembered
	// only briefly.
	fuzzy bool
}

// plan is a policy's groups in the order in which they are charged.
type plan struct {
	own   [rows.APIKey + 1][]*group // by own kind
	outer []*group
}

// newPlan arranges buckets into groups. Salt keeps plans of equal buckets apart.
func newPlan(buckets []Bucket, salt string) *plan {
	p := &plan{}
	for _, kind := range []Kind{rows.Address, rows.Cookie, rows.User, rows.APIKey} {
		p.own[kind] = groupsOf(buckets, kind, "", salt)
	}
	for _, kind := range []Kind{rows.Network, rows.ASN} {
		p.outer = append(p.outer, groupsOf(buckets, kind, "", salt)...)
	}
	var headers []string
	for i := range buckets {
		if b := &buckets[i]; b.Key == rows.Header && !slices.Contains(headers, b.Header) {
			headers = append(headers, b.Header)
		}
	}
	for _, h := range headers {
		p.outer = append(p.outer, groupsOf(buckets, rows.Header, h, salt)...)
	}
	p.outer = append(p.outer, groupsOf(buckets, rows.Global, "", salt)...)
	return p
}

// groupsOf returns the groups of one key in charging order. What is charged
// first may for a moment hold a hit that a later row refuses; so the order is
// from the narrow to the wide (a filtered row's hits all charge the unfiltered
// ones too, not the other way round) and from what recovers soon to what
// recovers late (clocks, then windows). Then such a phantom is only ever seen by
// hits that the later row would refuse as well.
func groupsOf(buckets []Bucket, kind Kind, header, salt string) []*group {
	type set struct {
		filter  string
		paths   *Patterns
		windows []*Bucket
		clocks  []*Bucket
	}
	var sets []*set
	anchored := false
	for i := range buckets {
		b := &buckets[i]
		if b.Key != kind || b.Header != header {
			continue
		}
		anchored = anchored || b.Visitor
		filter := ""
		if b.Paths != nil {
			filter = strings.Join(b.Paths.source, "\n")
		}
		at := slices.IndexFunc(sets, func(s *set) bool { return s.filter == filter })
		if at < 0 {
			at = len(sets)
			sets = append(sets, &set{filter: filter, paths: b.Paths})
		}
		if b.Algorithm.Clock() {
			sets[at].clocks = append(sets[at].clocks, b)
		} else {
			sets[at].windows = append(sets[at].windows, b)
		}
	}
	slices.SortStableFunc(sets, func(a, b *set) int {
		return btoi(a.paths == nil) - btoi(b.paths == nil)
	})
	filters := 0
	for _, s := range sets {
		filters += btoi(s.paths != nil)
	}
	var out []*group
	for _, s := range sets {
		base := group{kind: kind, header: header, paths: s.paths, anchored: anchored && kind == rows.Cookie, fuzzy: s.paths != nil && filters > 1}
		if len(s.clocks) > 0 {
			g := base.with(s.clocks)
			g.plan = clockPlan(s.clocks, s.filter, salt)
			out = append(out, g)
		}
		out = append(out, base.windowGroups(s.windows, s.filter, salt)...)
	}
	return out
}

// with returns a group of the same key and filter over other buckets.
func (g *group) with(buckets []*Bucket) *group {
	out := &group{kind: g.kind, header: g.header, paths: g.paths, anchored: g.anchored, fuzzy: g.fuzzy, buckets: buckets}
	out.maxAge = buckets[0].FlushEvery
	for _, b := range buckets {
		out.maxAge = min(out.maxAge, b.FlushEvery)
	}
	return out
}

func (g *group) windowGroups(buckets []*Bucket, filter, salt string) []*group {
	series := make([]rows.Series, len(buckets))
	for i, b := range buckets {
		series[i] = b.series()
		series[i].Label += "|" + filter
		if g.anchored {
			series[i].Label += "|visitor"
			series[i].Zone = nil
		}
	}
	layouts, members := rows.Layouts(series, salt)
	var out []*group
	for i, l := range layouts {
		part := make([]*Bucket, len(members[i]))
		for j, m := range members[i] {
			part[j] = buckets[m]
		}
		w := g.with(part)
		w.layout = l
		out = append(out, w)
	}
	// Rows of short windows recover sooner than rows of long ones.
	slices.SortStableFunc(out, func(a, b *group) int {
		return int((a.layout.Epoch.Length() - b.layout.Epoch.Length()) / time.Second)
	})
	return out
}

func clockPlan(buckets []*Bucket, filter, salt string) uint32 {
	h := fnv.New32a()
	for _, b := range buckets {
		h.Write([]byte(salt + "\x00" + filter + "\x00" + b.Name + "\x00" + b.Algorithm.String() + "\x00" + b.Window.String() + "\x00"))
	}
	return h.Sum32()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// applies reports whether a request for path charges the group.
func (g *group) applies(path string) bool {
	return g.paths == nil || g.paths.matchClean(path)
}

// A Record describes one stored record that a counted navigation writes, for
// `policy check` and the cost model: the number of records of a key is the
// number of operations a navigation of that key costs.
type Record struct {
	Key     Kind
	Buckets []string
	Paths   []string      // nil = every counted page
	Clock   bool          // one clock per bucket instead of window counters
	Slots   int           // places in the record
	Cells   int           // places that one navigation touches
	Epoch   time.Duration // life of a record; 0 for clocks
	// SecondRead is the share of navigations, spread evenly over time, that also
	// read the record of the epoch before.
	SecondRead float64
	// Coalesced is how long hits of the record may wait for others; 0 = never.
	Coalesced time.Duration
}

// Records lists the records of a policy in charging order, own keys first.
func Records(p *Policy) []Record {
	plan := newPlan(p.Buckets, "")
	var out []Record
	for _, own := range plan.own {
		for _, g := range own {
			out = append(out, g.record())
		}
	}
	for _, g := range plan.outer {
		out = append(out, g.record())
	}
	return out
}

func (g *group) record() Record {
	r := Record{Key: g.kind, Clock: g.layout == nil, Slots: len(g.buckets), Cells: len(g.buckets), Coalesced: g.maxAge}
	for _, b := range g.buckets {
		r.Buckets = append(r.Buckets, b.Name)
	}
	if g.paths != nil {
		r.Paths = g.paths.Source()
	}
	if g.layout == nil {
		return r
	}
	r.Slots, r.Epoch, r.Cells = g.layout.Slots, g.layout.Epoch.Length(), 0
	back := time.Duration(0)
	for i, b := range g.buckets {
		r.Cells += 1 + g.layout.History(i)
		back = max(back, time.Duration(g.layout.History(i))*b.series().Window)
	}
	r.SecondRead = min(1, float64(back)/float64(r.Epoch))
	return r
}
