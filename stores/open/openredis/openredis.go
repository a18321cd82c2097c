// Package openredis opens a store in Redis or Valkey by URL; see the forms at
// redis.FromURL. It links that store's client and no other.
package openredis

import (
	"context"
	"net/url"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/redis"
)

// Opener opens URLs such as redis://127.0.0.1:6379.
var Opener = open.Opener{
	Schemes: []string{"redis", "rediss", "valkey", "valkeys"},
	Example: "redis://127.0.0.1:6379",
	Validate: func(u *url.URL, o open.Options) error {
		_, err := config(u, o)
		return err
	},
	Open: func(ctx context.Context, u *url.URL, o open.Options) (core.Store, error) {
		c, err := config(u, o)
		if err != nil {
			return nil, err
		}
		s, err := redis.Open(ctx, c)
		if s == nil {
			return nil, err // a nil *Store would be a store that is not nil
		}
		return s, err
	},
}

func config(u *url.URL, o open.Options) (redis.Config, error) {
	c, err := redis.FromURL(u, o.Getenv)
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
