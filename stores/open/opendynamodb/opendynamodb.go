// Package opendynamodb opens a store in DynamoDB by URL; see the forms at
// dynamodb.FromURL. It links that store's client and no other.
package opendynamodb

import (
	"net/url"

	"github.com/stilehq/stile/stores/dynamodb"
	"github.com/stilehq/stile/stores/open"
)

// Opener opens URLs such as dynamodb://table?region=eu-west-1.
var Opener = open.New([]string{"dynamodb"}, "dynamodb://table?region=eu-west-1", config, dynamodb.Open)

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
