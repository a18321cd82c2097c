package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stilehq/stile/core"
)

// A record is one stored record of one key: one billed operation.
type record struct {
	core.Record
	key     KeyWord
	buckets []int // indexes in the file
}

// layout asks core which buckets share a record. The buckets have been found
// valid.
func layout(buckets []Bucket) ([]record, error) {
	var p core.Policy
	index := map[string]int{}
	for i := range buckets {
		b, err := buckets[i].core()
		if err != nil {
			return nil, err
		}
		p.Buckets = append(p.Buckets, b)
		index[b.Name] = i
	}
	var list []record
	for _, r := range core.Records(&p) {
		rec := record{Record: r, key: buckets[index[r.Buckets[0]]].Key}
		for _, name := range r.Buckets {
			rec.buckets = append(rec.buckets, index[name])
		}
		list = append(list, rec)
	}
	return list, nil
}

// operations warns of buckets that cost an operation of their own with each
// navigation, beside that of the first record.
func (v *validator) operations() {
	records, err := layout(v.f.Buckets)
	if err != nil {
		return // a zone or pattern that is already an error of its own
	}
	// The first record is what a navigation costs anyway: that of the windows,
	// of the whole site, of the longest ones. The others are what is warned of.
	slices.SortStableFunc(records, func(a, b record) int {
		return cmp.Or(
			cmp.Compare(rank(a.key), rank(b.key)),
			cmp.Compare(len(a.Paths), len(b.Paths)),
			compareBool(a.Clock, b.Clock),
			cmp.Compare(b.Epoch, a.Epoch),
		)
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
		case r.Coalesced > 0:
			continue
		default:
			base++
			n = base
		}
		if n < 2 {
			continue
		}
		where := "per navigation"
		if r.Paths != nil {
			where = "per navigation on its paths"
		}
		v.warn(path, fmt.Sprintf("costs %d operations %s: the %s bucket lives in a record of its own", n, where, first.Name), v.cheaper(first, r))
	}
}

func (v *validator) cheaper(b *Bucket, r record) string {
	switch {
	case !b.Key.Kind().Own() && !b.Algorithm.Kind().Clock():
		return "set flush_every: 10m to report its hits together"
	case r.Paths != nil:
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

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
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
	records, err := layout(f.Buckets)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if features.MaxCells > 0 && r.Cells > features.MaxCells {
			v.fail(fmt.Sprintf("buckets[%d]", r.buckets[0]), fmt.Sprintf("its record has %d cells per navigation, and the %s store writes %d at a time", r.Cells, features.Name, features.MaxCells), "use sliding-window-counter instead of sliding-window-log")
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
