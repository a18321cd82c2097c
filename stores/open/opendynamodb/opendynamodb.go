// Package opendynamodb opens a store in DynamoDB by URL; see the forms at
// dynamodb.FromURL. It links that store's client and no other.
package opendynamodb

import (
	"context"
	"net/url"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/dynamodb"
	"github.com/stilehq/stile/stores/open"
)

// Opener opens URLs such as dynamodb://table?region=eu-west-1.
var Opener = open.Opener{
	Schemes: []string{"dynamodb"},
	Example: "dynamodb://table?region=eu-west-1",
	Validate: func(u *url.URL, o open.Options) error {
		_, err := config(u, o)
		return err
	},
	Open: func(ctx context.Context, u *url.URL, o open.Options) (core.Store, error) {
		c, err := config(u, o)
		if err != nil {
			return nil, err
		}
		s, err := dynamodb.Open(ctx, c)
		if s == nil {
			return nil, err // a nil *Store would be a store that is not nil
		}
		return s, err
	},
}

func config(u *url.URL, o open.Options) (dynamodb.Config, error) {
	c, err := dynamodb.FromURL(u, o.Getenv)
	if err != nil {
		return c, err
	}
	c.Namer = o.Namer
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = o.ConnectTimeout
	}
	return c, nil
}
