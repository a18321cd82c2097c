package gcp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/adapters/serverless"
	"github.com/stilehq/stile/stores/open"
)

// sourceDir is where Google's buildpack puts the uploaded files, below the
// working directory of the running function.
const sourceDir = "serverless_function_source_code"

// Config says what a function is made of. The zero value of all but Openers
// reads the process's environment and writes to its standard output.
type Config struct {
	Openers []open.Opener       // the stores that the program links; required
	Getenv  func(string) string // nil = os.Getenv
	Output  io.Writer           // log lines; nil = os.Stdout
}

// A Function is the handler of a Cloud Run function. It is safe for concurrent
// use.
type Function struct {
	site     *serverless.Site
	handler  http.Handler
	logger   *slog.Logger
	inFlight atomic.Int64
	grace    time.Duration // to drain in
}

// New starts the function from the environment. It never fails: what is wrong
// is logged, and visitors pass unlimited meanwhile; see serverless.Site.
func New(ctx context.Context, c Config) *Function {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Output == nil {
		c.Output = os.Stdout
	}
	f := &Function{logger: NewOperatorLog(c.Output)}
	f.site = serverless.Open(ctx, serverless.Config{
		Getenv: c.Getenv, Openers: c.Openers, Logger: f.logger, Dirs: []string{sourceDir},
		HitLog: NewHitLog(c.Output, project(ctx, c.Getenv, metadata)),
	})
	f.grace = drainTime
	if text := c.Getenv("STILE_GRACE"); text != "" {
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			f.grace = d
		} else {
			f.logger.Error("stile: STILE_GRACE: want a duration above 0, such as 8s; the default is used")
		}
	}
	ingress, err := ParseIngress(c.Getenv("STILE_INGRESS"))
	if err != nil {
		// Counting the wrong address would refuse visitors for one another.
		f.site.Disable(err)
	}
	if p := f.site.Policy; p != nil && ingress == LoadBalancer && p.Client.PeerSecret.Header == "" {
		f.logger.Warn("stile: behind a load balancer without client.peer_secret: whoever reaches the run.app URL can choose an address; set ingress to internal-and-cloud-load-balancing, or let the balancer add a secret")
	}
	f.handler = f.site.Handler(gate.Config{
		Platform: func(r *http.Request) netip.Addr { return ingress.client(r) },
		Trace:    Trace,
	})
	return f
}

// ServeHTTP decides about a request and passes it on.
func (f *Function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	defer breakOff(w)
	f.handler.ServeHTTP(w, arrived(r))
}

// breakOff ends a response whose body broke off so that nobody takes it for
// complete. ReverseProxy tells it by a panic, which the server of net/http
// would turn into a closed connection; the Functions Framework catches it
// first, writes a sentence into the body and ends that in order.
func breakOff(w http.ResponseWriter) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		control := http.NewResponseController(w)
		if conn, _, err := control.Hijack(); err == nil {
			_ = conn.Close()
			return
		}
		// Then what is still to be written must fail, the last chunk above all.
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	default:
		panic(p)
	}
}

// Drain waits until the requests under way have ended, at most until ctx does,
// then flushes the hit log and coalesced hits and closes the store.
func (f *Function) Drain(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for f.inFlight.Load() > 0 && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := f.site.Close(flush); err != nil {
		f.logger.Error("stile: the last flush failed", "error", err)
	}
}
