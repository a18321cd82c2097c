// Package openfirestore opens a store in Firestore by URL; see the forms at
// firestore.FromURL. It links that store's client and no other.
package openfirestore

import (
	"context"
	"net/url"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/firestore"
	"github.com/stilehq/stile/stores/open"
)

// Opener opens URLs such as firestore://project.
var Opener = open.Opener{
	Schemes: []string{"firestore"},
	Example: "firestore://project",
	Validate: func(u *url.URL, o open.Options) error {
		_, err := config(u, o)
		return err
	},
	Open: func(ctx context.Context, u *url.URL, o open.Options) (core.Store, error) {
		c, err := config(u, o)
		if err != nil {
			return nil, err
		}
		s, err := firestore.Open(ctx, c)
		if s == nil {
			return nil, err // a nil *Store would be a store that is not nil
		}
		return s, err
	},
}

func config(u *url.URL, o open.Options) (firestore.Config, error) {
	c, err := firestore.FromURL(u, o.Getenv)
	if err != nil {
		return c, err
	}
	c.Namer = o.Namer
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = o.ConnectTimeout
	}
	return c, nil
}
