// Package all registers the opener of every store. Only the command line imports
// it: the functions link no more stores than they can use.
package all

import (
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/opendynamodb"
	"github.com/stilehq/stile/stores/open/openfirestore"
	"github.com/stilehq/stile/stores/open/openmemory"
	"github.com/stilehq/stile/stores/open/openredis"
	"github.com/stilehq/stile/stores/open/openupstash"
)

// Registry returns a table with every opener. The error means that the program
// was built wrongly.
func Registry() (*open.Registry, error) {
	return open.NewRegistry(
		openmemory.Opener,
		openredis.Opener,
		openupstash.Opener,
		openfirestore.Opener,
		opendynamodb.Opener,
	)
}
