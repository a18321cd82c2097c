package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/stores/wrap"
)

type headers map[string][]string

func (h headers) Values(name string) []string { return h[name] }

// stile is the whole limiter as the adapters use it: classification, the wrappers
// of the store, and what is left to settle after a decision.
func stile(name string, driver core.Store, limit int64) (contender, error) {
	stack := wrap.Stack(driver, wrap.GuardConfig{Timeout: 10 * time.Second}, wrap.SpendConfig{})
	limiter, err := core.New(core.Policy{
		Site: "peers",
		Buckets: []core.Bucket{
			{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: limit, Window: time.Hour},
			{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: limit, Window: 24 * time.Hour},
		},
	}, core.Options{Store: stack, Local: memory.New(memory.Config{MaxKeys: 1024})})
	if err != nil {
		return contender{}, err
	}
	fields := headers{"Accept": {"text/html"}, "Sec-Fetch-Dest": {"document"}, "Sec-Fetch-Mode": {"navigate"}}
	return contender{
		Name: name, Ours: true,
		client: func() func(int) error {
			r := core.Request{Method: "GET", Host: "x.example", Path: "/articles/1", Header: fields}
			return func(n int) error {
				r.Peer = netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
				r.Time = time.Now()
				d := limiter.Decide(background, &r)
				if d.Err != nil {
					return d.Err
				}
				if d.Outcome != core.Admit {
					return fmt.Errorf("%s: %s", d.Outcome, d.Reason)
				}
				return limiter.Settle(background)
			}
		},
		closeAll: func() { _ = stack.Close() },
	}, nil
}
