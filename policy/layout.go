package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// A record is one stored record of one key: one billed operation.
type record struct {
	key     KeyWord
	buckets []int // indexes, in the order of the file
	paths   bool  // touched on some pages only
}

// layout says which buckets share a record: the windows of one key without
// paths (as many as have places in one), the clocks of one key, and each set of
// paths apart.
func layout(buckets []Bucket) []record {
	type group struct {
		key   KeyWord
		clock bool
		paths string
	}
	var order []group
	members := map[group][]int{}
	visitor := slices.ContainsFunc(buckets, func(b Bucket) bool { return b.Day == DayVisitor })
	for i := range buckets {
		b := &buckets[i]
		g := group{b.Key, b.Algorithm.Kind().Clock(), strings.Join(b.Paths, "\n")}
		if members[g] == nil {
			order = append(order, g)
		}
		members[g] = append(members[g], i)
	}
	var list []record
	for _, g := range order {
		if g.clock {
			list = append(list, record{g.key, members[g], g.paths != ""})
			continue
		}
		var series []rows.Series
		for _, i := range members[g] {
			s := buckets[i].series()
			if visitor && g.key.Kind() == rows.Cookie {
				s.Zone = nil // the cookie's issue is where all of its windows begin
			}
			series = append(series, s)
		}
		_, parts := rows.Layouts(series, "")
		for _, part := range parts {
			r := record{key: g.key, paths: g.paths != ""}
			for _, i := range part {
				r.buckets = append(r.buckets, members[g][i])
			}
			list = append(list, r)
		}
	}
	return list
}

// logParts is into how many parts core divides the window of a sliding log.
const logParts = 60

// series is the bucket's windows as the planner of records needs them.
func (b *Bucket) series() rows.Series {
	s := rows.Series{Label: b.Name, Window: b.Window}
	if zone, err := loadZone(b.Zone); err == nil {
		s.Zone = zone
	}
	switch b.Algorithm.Kind() {
	case core.SlidingWindowCounter:
		s.History = 1
	case core.SlidingWindowLog:
		s.History, s.Window, s.Zone = logParts, (b.Window+logParts-1)/logParts, nil
	}
	return s
}

// cells returns how many cells one navigation touches in the bucket's record.
func (b *Bucket) cells() int {
	switch b.Algorithm.Kind() {
	case core.SlidingWindowCounter:
		return 2
	case core.SlidingWindowLog:
		return logParts + 1
	}
	return 1
}

// operations warns of buckets that cost an operation of their own with each
// navigation, beside that of the first record.
func (v *validator) operations() {
	records := layout(v.f.Buckets)
	slices.SortStableFunc(records, func(a, b record) int { // own keys first, whole site before paths
		return 2*(rank(a.key)-rank(b.key)) + rankPaths(a) - rankPaths(b)
	})
	perKey := map[KeyWord]int{} // operations so far of a navigation by this own key
	base := 0                   // the most of any own key
	for _, r := range records {
		first := &v.f.Buckets[r.buckets[0]]
		path := fmt.Sprintf("buckets[%d]", r.buckets[0])
		n := 0
		switch {
		case first.Key.Kind().Own():
			perKey[r.key]++
			n = perKey[r.key]
			base = max(base, n)
		case v.coalesced(r):
			continue
		default:
			base++
			n = base
		}
		if n < 2 {
			continue
		}
		where := "per navigation"
		if r.paths {
			where = "per navigation on its paths"
		}
		v.warn(path, fmt.Sprintf("costs %d operations %s: the %s bucket lives in a record of its own", n, where, first.Name), v.cheaper(first, r))
	}
}

// coalesced reports whether every bucket of an outer record is reported late.
func (v *validator) coalesced(r record) bool {
	for _, i := range r.buckets {
		if v.f.Buckets[i].FlushEvery == 0 {
			return false
		}
	}
	return true
}

func (v *validator) cheaper(b *Bucket, r record) string {
	switch {
	case !b.Key.Kind().Own() && !b.Algorithm.Kind().Clock():
		return "set flush_every: 10m to report its hits together"
	case r.paths:
		return "accept the cost, or remove its paths and use a window algorithm to share the record"
	case b.Algorithm.Kind().Clock():
		return "use a window algorithm to share the record, or accept the cost"
	}
	return "make its window nearer to the others', or accept the cost"
}

func rank(k KeyWord) int {
	if k.Kind().Own() {
		return 0
	}
	return int(k.Kind())
}

func rankPaths(r record) int {
	if r.paths {
		return 1
	}
	return 0
}

// CheckStore holds a policy against what a store can do. The error joins an
// [*Error] for each bucket that the store cannot count; core would answer it
// with [core.ErrUnsupported] on every navigation.
func CheckStore(f *File, features core.Features) ([]Warning, error) {
	v := &validator{reader: newReader(nil, f.origin), f: f}
	longest := time.Duration(0)
	for i := range f.Buckets {
		b := &f.Buckets[i]
		longest = max(longest, b.Window)
		if b.Algorithm.Kind().Clock() && !features.Clocks {
			v.fail(fmt.Sprintf("buckets[%d].algorithm", i), fmt.Sprintf("the %s store keeps counters only and cannot hold %s", features.Name, b.Algorithm), "use algorithm: sliding-window-counter, or another store")
		}
	}
	for _, r := range layout(f.Buckets) {
		cells := 0
		for _, i := range r.buckets {
			cells += f.Buckets[i].cells()
		}
		if features.MaxCells > 0 && cells > features.MaxCells {
			v.fail(fmt.Sprintf("buckets[%d]", r.buckets[0]), fmt.Sprintf("its record has %d cells per navigation, and the %s store writes %d at a time", cells, features.Name, features.MaxCells), "use sliding-window-counter instead of sliding-window-log")
		}
	}
	if !features.Shared {
		v.warn("buckets", fmt.Sprintf("the %s store is not shared: with several instances, each admits the whole limit", features.Name), "use a shared store, or run one instance")
	}
	if !features.RetainsRows && longest >= 24*time.Hour {
		v.warn("buckets", fmt.Sprintf("the %s store forgets its counts when the process ends: a window of %s rarely lasts so long on a platform that stops idle instances", features.Name, formatDuration(longest)), "use a store that retains its records")
	}
	return v.warnings, joined(v.errs)
}
