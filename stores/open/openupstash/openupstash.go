// Package openupstash opens a store in Upstash Redis by URL; see the forms at
// upstash.FromURL. It links that store's client and no other.
package openupstash

import (
	"context"
	"net/url"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/upstash"
)

// Opener opens URLs such as upstash://name.upstash.io.
var Opener = open.Opener{
	Schemes: []string{"upstash", "https", "http"}, // http: a front on this machine only
	Example: "upstash://name.upstash.io",
	Validate: func(u *url.URL, o open.Options) error {
		_, err := config(u, o)
		return err
	},
	Open: func(ctx context.Context, u *url.URL, o open.Options) (core.Store, error) {
		c, err := config(u, o)
		if err != nil {
			return nil, err
		}
		s, err := upstash.Open(ctx, c)
		if s == nil {
			return nil, err // a nil *Store would be a store that is not nil
		}
		return s, err
	},
}

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
