// Package openredis opens a store in Redis or Valkey by URL; see the forms at
// redis.FromURL. It links that store's client and no other.
package openredis

import (
	"net/url"

	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/redis"
)

// Opener opens URLs such as redis://127.0.0.1:6379.
var Opener = open.New([]string{"redis", "rediss", "valkey", "valkeys"}, "redis://127.0.0.1:6379", config, redis.Open)

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
