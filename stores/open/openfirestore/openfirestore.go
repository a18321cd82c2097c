// Package openfirestore opens a store in Firestore by URL; see the forms at
// firestore.FromURL. It links that store's client and no other.
package openfirestore

import (
	"net/url"

	"github.com/stilehq/stile/stores/firestore"
	"github.com/stilehq/stile/stores/open"
)

// Opener opens URLs such as firestore://project.
var Opener = open.New([]string{"firestore"}, "firestore://project", config, firestore.Open)

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
