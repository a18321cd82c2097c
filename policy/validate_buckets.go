package policy

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// Bounds of a bucket. Each is tested on both sides.
const (
	// MaxLimit bounds a limit after scale, and a burst: a wider one limits
	// nobody, and stores that pack their counters cannot hold it.
	MaxLimit = 1_000_000_000
	// MaxWindow bounds a window. Records live as long as their windows.
	MaxWindow = 400 * 24 * time.Hour
	// MaxBuckets bounds the buckets of a policy: each hit is held against all.
	MaxBuckets = 32
)

// bucketName may stand in a structured-field string, a label, a log field.
var bucketName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

func (v *validator) buckets() {
	list := v.f.Buckets
	switch {
	case len(list) == 0:
		v.fail("buckets", "has none: nothing is limited", "write at least one, or take those of the example: stile policy show")
		return
	case len(list) > MaxBuckets:
		v.fail("buckets", fmt.Sprintf("has %d entries", len(list)), fmt.Sprintf("%d are the most", MaxBuckets))
		return
	}
	names := map[string]int{}
	for i := range list {
		b, path := &list[i], fmt.Sprintf("buckets[%d]", i)
		v.bucketName(b, path, names, i)
		v.bucketLimit(b, path)
		v.bucketWindow(b, path)
		v.bucketClock(b, path)
		v.bucketKey(b, path)
		v.bucketDay(b, path)
		v.bucketFlush(b, path)
		v.bucketPaths(b, path)
	}
	v.shadowed()
	v.coverage()
	if len(v.errs) == 0 {
		v.operations()
	}
}

func (v *validator) bucketName(b *Bucket, path string, names map[string]int, i int) {
	switch {
	case !v.given(path + ".name"):
		v.fail(path+".name", "is missing", "name the bucket: the name goes into RateLimit fields and logs")
		return
	case b.Name == "claims":
		v.fail(path+".name", `"claims" is the name of Stile's own bucket`, "choose another")
	case len(b.Name) > 32 || !bucketName.MatchString(b.Name):
		v.fail(path+".name", fmt.Sprintf("%q is no name", b.Name), "write up to 32 small letters, digits, dashes or underscores, a letter first")
	}
	if first, dup := names[b.Name]; dup {
		v.fail(path+".name", fmt.Sprintf("%q is the name of buckets[%d] too", b.Name, first), "names tell buckets apart in fields, logs and the store: choose another")
		return
	}
	names[b.Name] = i
}

func (v *validator) bucketLimit(b *Bucket, path string) {
	scaled := float64(b.Limit) * v.f.Scale
	switch {
	case !v.given(path + ".limit"):
		v.fail(path+".limit", "is missing", "write how many navigations a window admits")
	case b.Limit < 1:
		v.fail(path+".limit", fmt.Sprintf("%d admits nobody", b.Limit), "write 1 or more, or use mode: observe")
	case b.Limit > MaxLimit:
		v.fail(path+".limit", fmt.Sprintf("%d is more than counters are built to hold", b.Limit), fmt.Sprintf("write %d or less", MaxLimit))
	case scaled > MaxLimit && !v.spoilt("scale"):
		v.fail(path+".limit", fmt.Sprintf("%d times scale %v is more than counters are built to hold", b.Limit, v.f.Scale), fmt.Sprintf("keep the product at %d or less", MaxLimit))
	}
}

func (v *validator) bucketWindow(b *Bucket, path string) {
	switch path += ".window"; {
	case !v.given(path):
		v.fail(path, "is missing", "write a duration like 1h, 24h or 7d")
	case b.Window == 0:
		v.fail(path, "0 is no window", "write 1s or more")
	case b.Window%time.Second != 0:
		v.fail(path, formatDuration(b.Window)+" is not a whole number of seconds", "write 1s or more in whole seconds")
	case b.Window > MaxWindow:
		v.fail(path, formatDuration(b.Window)+" is longer than 400 days", "write 400d or less")
	}
}

// bucketClock checks what token-bucket and gcra have and the others have not.
func (v *validator) bucketClock(b *Bucket, path string) {
	if !b.Algorithm.Kind().Clock() {
		if b.Burst != 0 {
			v.fail(path+".burst", fmt.Sprintf("%s has no burst", b.Algorithm), "remove it, or use algorithm: gcra or token-bucket")
		}
		return
	}
	if b.Burst < 0 || b.Burst > MaxLimit {
		v.fail(path+".burst", fmt.Sprintf("%d is no number of navigations", b.Burst), fmt.Sprintf("write 1 to %d, or 0 for the algorithm's default", MaxLimit))
		return
	}
	if b.Limit < 1 || b.Window <= 0 || v.f.Scale <= 0 || v.spoilt(path+".limit") || v.spoilt(path+".window") {
		return
	}
	// The clock counts microseconds, and each navigation moves it by one interval.
	interval := float64(b.Window/time.Microsecond) / math.Ceil(float64(b.Limit)*v.f.Scale)
	switch {
	case interval < 1:
		v.fail(path+".limit", fmt.Sprintf("%d per %s is more than one in a microsecond, finer than the clock of %s", b.Limit, formatDuration(b.Window), b.Algorithm), "write a lower limit, or use algorithm: sliding-window-counter")
	case interval*float64(b.Burst) > float64(MaxWindow/time.Microsecond):
		v.fail(path+".burst", fmt.Sprintf("%d takes longer than 400 days to come back", b.Burst), "write a smaller burst")
	}
}

func (v *validator) bucketKey(b *Bucket, path string) {
	id := &v.f.Identify
	switch path += ".key"; b.Key.Kind() {
	case rows.Cookie:
		if id.Cookie == nil { // without secrets it has been told so
			v.identityMissing(path, "identify.cookie", "cookie buckets count signed cookies, and identify.cookie is not set")
		}
	case rows.User:
		if id.JWT == nil {
			v.identityMissing(path, "identify.jwt", "user buckets count signed-in users, and identify.jwt is not set")
		}
	case rows.APIKey:
		if id.APIKeys == nil {
			v.identityMissing(path, "identify.api_keys", "api-key buckets count API keys, and identify.api_keys is not set")
		}
	case rows.ASN:
		if v.f.Client.ASN == "none" {
			v.fail(path, "asn buckets need to know the network's number, and client.asn is none", "write client.asn: header:NAME or file:PATH")
		}
	case rows.Header:
		b.Key = KeyWord("header:" + v.fieldName(path, b.Key.argument())) // one spelling, one key
		if len(v.f.Client.Peers) == 0 && v.f.Client.PeerSecret.Header == "" {
			v.fail(path, "anyone can write "+b.Key.Header()+" and so choose its own counter", "set client.peers or client.peer_secret, so that only your edge is believed")
		}
	}
}

func (v *validator) identityMissing(path, part, problem string) {
	if !v.spoilt(part) {
		v.fail(path, problem, "set "+part)
	}
}

func (v *validator) bucketDay(b *Bucket, path string) {
	const day = 24 * time.Hour
	whole := b.Window > 0 && b.Window%day == 0 && !b.Algorithm.Kind().Clock() && b.Algorithm != "sliding-window-log"
	if _, err := loadZone(b.Zone); err != nil {
		v.fail(path+".zone", fmt.Sprintf("%q is no time zone", b.Zone), "write a name like UTC, Europe/Berlin or America/New_York")
	} else if b.Zone != "UTC" && !whole && !v.spoilt(path+".window") {
		v.warn(path+".zone", "has no effect: only fixed windows and sliding counters of whole days follow a zone", "remove it")
	}
	if b.Day != DayVisitor {
		return
	}
	switch {
	case b.Key.Kind() != rows.Cookie:
		v.fail(path+".day", fmt.Sprintf("visitor begins the day at the cookie's issue, and this bucket counts by %s", b.Key), "write key: cookie, or day: calendar")
	case b.Window != day && !v.spoilt(path+".window"):
		v.fail(path+".day", fmt.Sprintf("visitor is for days, and the window is %s", formatDuration(b.Window)), "write window: 24h, or day: calendar")
	case !whole && !v.spoilt(path+".window"):
		v.fail(path+".day", fmt.Sprintf("%s does not count in days", b.Algorithm), "use algorithm: fixed-window")
	case b.Zone != "UTC":
		v.warn(path+".zone", "has no effect with day: visitor", "remove it")
	}
}

// loadZone is time.LoadLocation for names that mean the same everywhere.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("no zone is named %q", name)
	}
	return time.LoadLocation(name)
}

func (v *validator) bucketFlush(b *Bucket, path string) {
	switch path += ".flush_every"; {
	case b.FlushEvery == 0:
	case b.Key.Kind().Own():
		v.fail(path, fmt.Sprintf("%s counters are reported with each navigation", b.Key), "remove it; it is for network, asn, header and global")
	case b.Algorithm.Kind().Clock():
		v.fail(path, fmt.Sprintf("hits of %s cannot be reported late", b.Algorithm), "remove it, or use a window algorithm")
	case b.FlushEvery > b.Window && !v.spoilt(path[:len(path)-len("flush_every")]+"window"):
		v.fail(path, fmt.Sprintf("%s is longer than the window: hits would be reported when nobody asks any more", formatDuration(b.FlushEvery)), "write a small part of the window")
	}
}

func (v *validator) bucketPaths(b *Bucket, path string) {
	path += ".paths"
	if v.patterns(path, b.Paths) == nil || v.exclude == nil {
		return
	}
	for i, p := range b.Paths {
		if excludesAll(v.exclude, p) {
			v.warn(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%q is excluded by count.exclude and never counted", p), "remove it from one of the lists")
		}
	}
}

// shadowed warns of buckets that cannot fire, because a longer window of the
// same key admits less. Clocks are left out: a burst fires within seconds.
func (v *validator) shadowed() {
	for i := range v.f.Buckets {
		long := &v.f.Buckets[i]
		for j := range v.f.Buckets {
			short := &v.f.Buckets[j]
			covers := len(long.Paths) == 0 || slices.Equal(long.Paths, short.Paths)
			if long.Key != short.Key || !covers || long.Algorithm.Kind().Clock() || short.Algorithm.Kind().Clock() ||
				long.Window <= short.Window || long.Limit >= short.Limit || long.Limit < 1 {
				continue
			}
			v.warn(fmt.Sprintf("buckets[%d].limit", i),
				fmt.Sprintf("%s admits %d in %s, fewer than %s in %s (%d): %s never fires",
					long.Name, long.Limit, formatDuration(long.Window), short.Name, formatDuration(short.Window), short.Limit, short.Name),
				"raise the one or remove the other")
		}
	}
}

// coverage warns of clients that no bucket limits.
func (v *validator) coverage() {
	everyone := false
	for i := range v.f.Buckets {
		b := &v.f.Buckets[i]
		k := b.Key.Kind()
		everyone = everyone || len(b.Paths) == 0 && (k == rows.Address || k == rows.Network || k == rows.Global)
	}
	if !everyone {
		v.warn("buckets", "no bucket holds for every client on every page: who sends no cookie, key or token is not limited", "add a bucket with key: address and without paths")
	}
}
