// Package stile is the Cloud Run function "Stile": a page limiter in front of
// STILE_ORIGIN, or, without one, a forward-auth endpoint. It is the root of the
// module because Google's buildpack takes the function from there; nothing else
// imports it. docs/adapters-gcp.md says how it is configured and deployed.
//
// Every .go file in this directory must be of this package, tests included:
// the buildpack refuses a directory with two.
package stile

import (
	"context"

	// A vendored build must hold the package that the generated main runs.
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/stilehq/stile/adapters/gcp"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openfirestore"
	"github.com/stilehq/stile/stores/open/openmemory"
	"github.com/stilehq/stile/stores/open/openredis"
	"github.com/stilehq/stile/stores/open/openupstash"
)

// The store is opened here and not with the first request: the platform gives a
// starting instance its CPU without a deadline of ours, and a slow crawler that
// always meets a cold instance must still be counted.
func init() {
	f := gcp.New(context.Background(), gcp.Config{Openers: []open.Opener{
		openmemory.Opener, openredis.Opener, openupstash.Opener, openfirestore.Opener,
	}})
	f.DrainOnTerm()
	functions.HTTP("Stile", f.ServeHTTP)
}
