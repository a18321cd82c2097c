// Package openmemory opens the store in this process's memory by URL:
//
//	memory:                     bounded by the policy's store.max_keys
//	memory://?max_keys=200000   bounded by this number of records
package openmemory

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/stores/open"
)

// Opener opens memory: URLs. Opening never fails for a URL that Validate accepts.
var Opener = open.Opener{
	Schemes: []string{"memory"},
	Example: "memory:",
	Validate: func(u *url.URL, o open.Options) error {
		_, err := config(u, o)
		return err
	},
	Open: func(_ context.Context, u *url.URL, o open.Options) (core.Store, error) {
		c, err := config(u, o)
		if err != nil {
			return nil, err
		}
		return memory.New(c), nil
	},
}

// maxKeys is the most that the store keeps apart; it lowers larger numbers
// silently, which a setting must not be.
const maxKeys = 1 << 27

func config(u *url.URL, o open.Options) (memory.Config, error) {
	var errs []error
	c := memory.Config{MaxKeys: int(min(max(o.MaxKeys, 0), maxKeys))}
	if u.Host != "" || u.Path != "" || u.Opaque != "" || u.User != nil || u.Fragment != "" {
		errs = append(errs, errors.New("memory: has no host and no path; want memory: or memory://?max_keys=N"))
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		errs = append(errs, errors.New("memory: its query cannot be read"))
	}
	for name, values := range query {
		if name != "max_keys" {
			errs = append(errs, fmt.Errorf("memory: unknown setting %q; want max_keys", name))
			continue
		}
		n, err := strconv.Atoi(values[len(values)-1])
		if err != nil || n < 1 || n > maxKeys {
			errs = append(errs, fmt.Errorf("memory: max_keys: want a number from 1 to %d", maxKeys))
			continue
		}
		c.MaxKeys = n
	}
	return c, errors.Join(errs...)
}
