package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/wire"
)

// A front is the reverse proxy by the policy that holds at the moment. A request
// sees one policy from beginning to end.
type front struct {
	ready     *wire.Ready
	origin    *url.URL // nil = forward-auth
	ownHost   bool
	transport http.RoundTripper // outlives policies, and so do its connections
	metrics   *gate.Metrics
	logger    *slog.Logger
	handler   atomic.Pointer[http.Handler]
}

func newFront(ready *wire.Ready, origin *url.URL, ownHost bool, logger *slog.Logger) (*front, error) {
	f := &front{ready: ready, origin: origin, ownHost: ownHost, transport: gate.NewTransport(), metrics: gate.NewMetrics(), logger: logger}
	storeMetrics(f.metrics, ready.Store())
	partsMetrics(f.metrics, ready)
	return f, f.build()
}

// diagnosed is the limiter of one policy, which also answers `stile doctor`.
type diagnosed struct {
	*core.Limiter
	ready *wire.Ready
}

// Diagnose implements gate.Diagnoser.
func (d diagnosed) Diagnose(ctx context.Context, r *core.Request) (any, bool) {
	return d.ready.Diagnose(ctx, r)
}

var _ gate.Diagnoser = diagnosed{}

// build makes the proxy of the parts that hold now.
func (f *front) build() error {
	p := f.ready.Parts()
	source := p.Limiter.Policy().Client
	c := gate.Config{
		Limiter: diagnosed{p.Limiter, f.ready}, Answer: p.Answer, Log: p.Log, Metrics: f.metrics, Logger: f.logger,
		Origin: f.origin, OwnHost: f.ownHost, Transport: f.transport,
		Peers: source.Peers, PeerSecretHeader: source.PeerSecretHeader, PeerSecrets: source.PeerSecrets,
	}
	if p.Cookies != nil {
		c.Cookies = p.Cookies
	}
	h, err := gate.New(c)
	if err != nil {
		return err
	}
	f.handler.Store(&h)
	return nil
}

// reload exchanges the policy, or changes nothing and says why.
func (f *front) reload(ctx context.Context, file *policy.File) ([]policy.Warning, error) {
	warnings, err := f.ready.Reload(ctx, file)
	if err != nil {
		return warnings, err
	}
	return warnings, f.build()
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*f.handler.Load()).ServeHTTP(w, r)
}

// admin is the operator's port.
func (f *front) admin() http.Handler { return gate.Admin(f.metrics) }

// loopbackRanges are the addresses of this machine: whom the demo believes.
func loopbackRanges() []netip.Prefix {
	return []netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8),
		netip.PrefixFrom(netip.IPv6Loopback(), 128),
	}
}
