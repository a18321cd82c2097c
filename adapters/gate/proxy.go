package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
)

// NewTransport returns what the proxy talks to its origin with: no proxy of the
// environment, nothing compressed or unpacked on the way, many idle connections
// to the one host. It waits for an answer as long as the client does.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   512,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

func (g *gate) newProxy() *httputil.ReverseProxy {
	transport := g.Transport
	if transport == nil {
		transport = NewTransport()
	}
	return &httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		Transport:      transport,
		FlushInterval:  -1, // what the origin sends is sent on at once
		ModifyResponse: g.answered,
		ErrorHandler:   g.failed,
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(g.Logger.Handler(), slog.LevelDebug),
	}
}

type callKey struct{}

// errRefusedLate stops an answer that turned out to be a page.
var errRefusedLate = errors.New("gate: refused after the origin's answer")

func (g *gate) serveProxy(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.Opaque != "" {
		// This is no forward proxy: an opaque target would be passed on unseen.
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	c := &call{trace: g.Trace(r)}
	c.req.Method, c.req.Host = r.Method, r.Host
	c.req.Path, c.req.RawQuery = orDefault(r.URL.Path, "/"), r.URL.RawQuery
	g.decide(c, r)
	if a, ok := g.blocked(c, r); ok {
		g.settleNow(r.Context())
		g.record(r.Context(), c, a.Status)
		c.setCookie(a.Status, w.Header())
		a.Write(w, r.Method)
		return
	}
	if c.charged() {
		c.settle = make(chan struct{})
		go func() {
			defer close(c.settle)
			g.settleNow(r.Context())
		}()
	}
	c.body, _ = r.Body.(*patientBody)
	// Also when the answer breaks off, which ReverseProxy tells by a panic.
	defer g.finish(r.Context(), c)
	g.Metrics.inFlight.Add(1)
	g.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
}

// finish waits for the store's work: nothing may be left running when the
// handler returns, since a serverless platform stops the CPU then.
func (g *gate) finish(ctx context.Context, c *call) {
	g.Metrics.inFlight.Add(-1)
	g.record(ctx, c, 0) // the client left before there was an answer
	if c.settle != nil {
		<-c.settle
	}
	if c.late {
		g.settleNow(ctx)
	}
}

func (g *gate) rewrite(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	out.URL.Scheme, out.URL.Host = g.Origin.Scheme, g.Origin.Host
	// ReverseProxy has dropped parameters that it cannot read (?x=1;y=2).
	out.URL.RawQuery, out.URL.ForceQuery = in.URL.RawQuery, in.URL.ForceQuery
	if out.Host = in.Host; g.OwnHost {
		out.Host = g.Origin.Host
	}
	if !strings.EqualFold(out.Header.Get("Upgrade"), "websocket") {
		// An origin that agreed to h2c would hand the client a tunnel in which
		// nothing is seen or counted. Only WebSockets are passed on.
		out.Header.Del("Connection")
		out.Header.Del("Upgrade")
		out.Header.Del("Http2-Settings")
	}
	c, _ := in.Context().Value(callKey{}).(*call)
	source := &g.Limiter.Policy().Client
	g.passTrailers(pr, source)
	setForwarded(pr, speaksForOthers(source, &c.req))
	if source.PeerSecretHeader != "" {
		out.Header.Del(source.PeerSecretHeader)
	}
	if g.PeerSecretHeader != "" {
		out.Header.Del(g.PeerSecretHeader)
	}
}

// answered sees the origin's head: 1xx excepted, which are passed on.
func (g *gate) answered(res *http.Response) error {
	ctx := res.Request.Context()
	c, _ := ctx.Value(callKey{}).(*call)
	a := core.Answer{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type")}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		a.Location = redirectTarget(&c.req, res.Request, res.Header.Get("Location"))
	}
	if g.Limiter.Answered(context.WithoutCancel(ctx), &c.req, &c.dec, a) {
		c.late = true
		g.Metrics.late.Add(1)
		if c.dec.Refused() || c.dec.Outcome == core.Unavailable && !c.dec.Observe {
			return errRefusedLate
		}
	}
	g.record(ctx, c, res.StatusCode)
	if res.StatusCode != http.StatusSwitchingProtocols {
		c.setCookie(res.StatusCode, res.Header)
		g.Answer.Annotate(res.StatusCode, res.Header, &c.dec)
	}
	return nil
}

// failed answers in place of an origin that did not, or whose answer is refused.
func (g *gate) failed(w http.ResponseWriter, r *http.Request, err error) {
	ctx := r.Context()
	c, _ := ctx.Value(callKey{}).(*call)
	if errors.Is(err, errRefusedLate) {
		if a, ok := g.blocked(c, r); ok {
			g.record(ctx, c, a.Status)
			a.Write(w, r.Method)
			return
		}
	}
	status := http.StatusBadGateway
	var timeout net.Error
	switch {
	case c.body != nil && c.body.stuck.Load():
		g.record(ctx, c, http.StatusRequestTimeout)
		w.Header().Set("Connection", "close")
		http.Error(w, "The request's body stopped arriving.", http.StatusRequestTimeout)
		return
	case ctx.Err() != nil:
		// The client left, or this server is shutting down: no fault of the
		// origin's. Whoever is still there must not take silence for a page.
		g.record(ctx, c, 0)
		g.Answer.OriginDown(status, g.ask(r, c)).Write(w, r.Method)
		return
	case errors.As(err, &timeout) && timeout.Timeout():
		status = http.StatusGatewayTimeout
	}
	g.Metrics.originFailed.Add(1)
	c.ref = answer.NewRef()
	if left, ok := g.origin.due(c.req.Time); ok {
		g.Logger.Error("stile: the origin did not answer", "error", err, "origin", g.Origin.Host, "ref", c.ref, "left_out", left)
	}
	g.record(ctx, c, status)
	g.Answer.OriginDown(status, g.ask(r, c)).Write(w, r.Method)
}

// buffers lends the copy loop its memory.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
