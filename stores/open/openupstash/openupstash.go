// Package openupstash opens a store in Upstash Redis by URL; see the forms at
// upstash.FromURL. It links that store's client and no other.
package openupstash

import (
	"net/url"

	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/upstash"
)

// Opener opens URLs such as upstash://name.upstash.io; http is for a front on this
// machine only.
var Opener = open.New([]string{"upstash", "https", "http"}, "upstash://name.upstash.io", config, upstash.Open)

func config(u *url.URL, o open.Options) (upstash.Config, error) {
	c, err := upstash.FromURL(u, o.Getenv)
	if err != nil {
		return c, err
	}
	c.Namer = o.Namer
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = o.ConnectTimeout
	}
	if c.Timeout == 0 {
		c.Timeout = o.Timeout
	}
	return c, nil
}
