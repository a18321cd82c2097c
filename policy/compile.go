package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
	_ "time/tzdata" // zones mean the same on machines without a zone database

	"github.com/gaissmai/bart"

	"github.com/stilehq/stile/core"
)

// Core compiles the policy for core.New at the time now, which decides which
// networks have expired. A parsed File always compiles; the error is for one
// that was put together by hand.
func (f *File) Core(now time.Time) (core.Policy, error) {
	p := core.Policy{
		Site:         f.Site,
		Off:          f.Mode == ModeOff,
		Observe:      f.Mode == ModeObserve,
		Scale:        f.Scale,
		Client:       f.Client.core(),
		Claims:       f.Count.Claims.core(),
		ClaimsFactor: f.Count.ClaimsFactor,
		Networks:     f.networks(now),
		Crawlers:     map[string]core.Treatment{},
		OnError:      f.Store.OnError.Mode(),
	}
	for class, t := range f.Exempt.Crawlers {
		p.Crawlers[class] = core.Treatment{Exempt: t.Exempt, Multiply: t.Multiply}
	}
	var err error
	p.Count.Methods = slices.Clone(f.Count.Methods)
	if p.Count.Include, err = core.CompilePatterns(f.Count.Include...); err != nil {
		return core.Policy{}, fmt.Errorf("policy: count.include: %w", err)
	}
	if p.Count.Exclude, err = core.CompilePatterns(f.Count.Exclude...); err != nil {
		return core.Policy{}, fmt.Errorf("policy: count.exclude: %w", err)
	}
	for i := range f.Buckets {
		b, err := f.Buckets[i].core()
		if err != nil {
			return core.Policy{}, fmt.Errorf("policy: buckets[%d]: %w", i, err)
		}
		p.Buckets = append(p.Buckets, b)
	}
	return p, nil
}

func (c *Client) core() core.ClientSource {
	return core.ClientSource{
		From:             c.From.core(),
		Header:           c.From.Header(),
		TrustedHops:      c.TrustedHops,
		TrustedProxies:   slices.Clone(c.TrustedProxies),
		Peers:            slices.Clone(c.Peers),
		PeerSecretHeader: c.PeerSecret.Header,
		PeerSecrets:      c.PeerSecret.Secrets.Values(),
		IPv6Prefix:       c.IPv6Prefix,
	}
}

func (b *Bucket) core() (core.Bucket, error) {
	out := core.Bucket{
		Name:       b.Name,
		Key:        b.Key.Kind(),
		Header:     b.Key.Header(),
		Algorithm:  b.Algorithm.Kind(),
		Limit:      b.Limit,
		Window:     b.Window,
		Burst:      b.Burst,
		Visitor:    b.Day == DayVisitor,
		FlushEvery: b.FlushEvery,
	}
	if b.Zone != "UTC" && !out.Visitor {
		zone, err := loadZone(b.Zone)
		if err != nil {
			return core.Bucket{}, err
		}
		out.Zone = zone
	}
	if len(b.Paths) > 0 {
		paths, err := core.CompilePatterns(b.Paths...)
		if err != nil {
			return core.Bucket{}, err
		}
		out.Paths = paths
	}
	return out, nil
}

// A networkTable finds the longest configured range. It is immutable.
type networkTable struct{ table bart.Table[core.Network] }

var _ core.Networks = (*networkTable)(nil)

// LookupNetwork implements core.Networks.
func (t *networkTable) LookupNetwork(addr netip.Addr) (core.Network, bool) {
	if !addr.IsValid() {
		return core.Network{}, false
	}
	return t.table.Lookup(addr.Unmap())
}

// networks compiles the ranges that have not expired by now. One that expires
// later hides a wider one around it until the policy is loaded again.
func (f *File) networks(now time.Time) core.Networks {
	t := &networkTable{}
	for _, n := range f.Exempt.Networks {
		if !n.Until.IsZero() && !now.Before(n.Until.Time) {
			continue
		}
		t.table.Insert(n.CIDR, core.Network{
			Prefix:   n.CIDR,
			Exempt:   n.Multiply == 0,
			Multiply: n.Multiply,
			Reason:   n.Reason,
			Until:    n.Until.Time,
		})
	}
	if t.table.Size() == 0 {
		return nil
	}
	return t
}
