package sizing

import (
	"net/netip"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/sizing/accesslog"
)

// Options tune a measurement. The zero value reads any log, counts what core
// counts by default and takes days in UTC.
type Options struct {
	Log  accesslog.Options
	Zone *time.Location // where days begin; nil = UTC. Hours stay absolute
	// Count says what a page is: the policy's own rule. The zero value is core's.
	Count core.Count
	// IPv6Prefix is what is one client in IPv6, 32..64; 0 = 64.
	IPv6Prefix int
	// Crawlers proves claims; nil = every claim stays a claim.
	Crawlers core.CrawlerVerifier
	// Monitoring are the site's own probes and offices, left out of all shares.
	Monitoring []netip.Prefix
	// MaxClients bounds the table of addresses; 0 = 4 million.
	MaxClients int
	// Progress is called while reading.
	Progress func(accesslog.Progress)
}

func (o *Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

func (o *Options) prefix() int {
	if o.IPv6Prefix < 32 || o.IPv6Prefix > 64 {
		return 64
	}
	return o.IPv6Prefix
}

func (o *Options) maxClients() int {
	if o.MaxClients <= 0 {
		return 4 << 20
	}
	return o.MaxClients
}
