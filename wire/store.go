package wire

import (
	"context"
	"log/slog"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/wrap"
)

// openStore opens the driver that the URL names and puts it behind its wrappers.
// A store beside an error is usable.
func openStore(ctx context.Context, cfg Config) (stacked *wrap.Stacked, driver core.Store, err error) {
	f := cfg.Policy
	names, err := namer(f)
	if err != nil {
		return nil, nil, err
	}
	driver, err = open.Store(ctx, cfg.StoreURL, cfg.Stores, open.Options{
		Namer:          names,
		MaxKeys:        f.Store.MaxKeys,
		ConnectTimeout: f.Store.ConnectTimeout,
		Timeout:        f.Store.Timeout,
		Getenv:         cfg.Getenv,
	})
	if driver == nil {
		return nil, nil, err
	}
	return wrapped(driver, cfg), driver, err
}

// wrapped puts the wrappers on a driver. Memory is wrapped like any other store,
// so that what is tried at home is what runs elsewhere.
func wrapped(driver core.Store, cfg Config) *wrap.Stacked {
	log, s := cfg.Logger, cfg.Policy.Store
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return wrap.Stack(driver, wrap.GuardConfig{
		Timeout: s.Timeout,
		OnChange: func(state string) {
			if state == "open" {
				log.Error("the store does not answer; it is asked again in a while", "until_then", "store.on_error: "+string(s.OnError))
			} else {
				log.Warn("the store's breaker changed", "state", state)
			}
		},
	}, wrap.SpendConfig{
		PerSecond: s.MaxOpsPerSecond,
		PerDay:    s.MaxOpsPerDay,
		OnSpent: func(bound string) {
			log.Error("the store's spending limit is reached: counting is local until it is over", "bound", "store."+bound)
		},
	})
}

// featuresOf asks a store what it can do; one that does not say is taken for one
// that can do everything and shares nothing.
func featuresOf(s core.Store) core.Features {
	if f, ok := s.(core.Featurer); ok {
		return f.Features()
	}
	return core.Features{Name: "unnamed", Clocks: true}
}
