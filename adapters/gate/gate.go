package gate

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
)

// A Limiter decides; [core.Limiter] does, and so may a holder that swaps one
// for another when the policy changes. All methods are safe for concurrent use.
type Limiter interface {
	Decide(ctx context.Context, r *core.Request) core.Decision
	Answered(ctx context.Context, r *core.Request, d *core.Decision, a core.Answer) bool
	Settle(ctx context.Context) error
	Policy() *core.Policy
}

var _ Limiter = (*core.Limiter)(nil)

// Config says what a gate works with. Limiter and Answer are required, and an
// Origin or a CheckPath: a gate without either has nothing to do.
type Config struct {
	Limiter Limiter
	Answer  *answer.Writer
	Log     *hitlog.Log  // nil = no hit log
	Cookies Cookies      // nil = none are set
	Metrics *Metrics     // nil = counted nowhere
	Logger  *slog.Logger // what an operator must know; nil = slog.Default()

	// Origin is the site behind the proxy, as scheme://host[:port] and nothing
	// more. nil = forward-auth only.
	Origin *url.URL
	// OwnHost sends the origin its own name as Host, for origins that answer to no
	// other (other functions, hosted platforms); X-Forwarded-Host then tells the
	// visitor's. False = the Host that the visitor sent.
	OwnHost bool
	// Transport talks to the origin; nil = NewTransport().
	Transport http.RoundTripper
	// BodyIdle is how long a client may pause within a request body; 0 = 2
	// minutes, negative = for ever.
	BodyIdle time.Duration

	// The gate's own paths. Without Origin they default to /check, /denied and
	// /healthz; with it they are off unless named, since they would hide the
	// origin's pages of that name.
	CheckPath  string
	DeniedPath string
	HealthPath string

	// Peers and PeerSecrets say which proxies may ask CheckPath: those in one of
	// the ranges, and those that send one of the secrets in PeerSecretHeader.
	// With neither set only loopback may. Anyone else who could ask would drain
	// other people's budgets.
	Peers            []netip.Prefix
	PeerSecretHeader string
	PeerSecrets      []string

	// Platform tells the client as the platform itself reports it, for client:
	// {from: platform}; nil = nobody does.
	Platform func(*http.Request) netip.Addr
	// Trace tells the id by which the platform's own logs know the request; nil =
	// the trace id of a W3C traceparent field.
	Trace func(*http.Request) string
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// gate is the handler.
type gate struct {
	Config
	proxy  *httputil.ReverseProxy // nil = forward-auth only
	watch  watchdog
	origin noise // of origin errors
	stray  noise // of forward-auth requests that nobody may make
}

// New returns the handler. The error lists everything in the Config that cannot
// work.
func New(cfg Config) (http.Handler, error) {
	var errs []error
	if cfg.Limiter == nil {
		errs = append(errs, errors.New("gate: no limiter"))
	}
	if cfg.Answer == nil {
		errs = append(errs, errors.New("gate: no answer writer"))
	}
	if cfg.Origin == nil {
		cfg.CheckPath = orDefault(cfg.CheckPath, "/check")
		cfg.DeniedPath = orDefault(cfg.DeniedPath, "/denied")
		cfg.HealthPath = orDefault(cfg.HealthPath, "/healthz")
	} else if err := checkOrigin(cfg.Origin); err != nil {
		errs = append(errs, err)
	}
	for _, p := range []string{cfg.CheckPath, cfg.DeniedPath, cfg.HealthPath} {
		if p != "" && (!strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/")) {
			errs = append(errs, fmt.Errorf("gate: path %q must begin with a slash and not end in one", p))
		}
	}
	if (len(cfg.PeerSecrets) > 0) != (cfg.PeerSecretHeader != "") {
		errs = append(errs, errors.New("gate: a peer secret needs a header, and a header secrets"))
	}
	if slices.Contains(cfg.PeerSecrets, "") {
		errs = append(errs, errors.New("gate: an empty peer secret is none"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(cfg.Peers) == 0 && len(cfg.PeerSecrets) == 0 {
		cfg.Peers = loopback
	}
	cfg.PeerSecretHeader = http.CanonicalHeaderKey(cfg.PeerSecretHeader)
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Trace == nil {
		cfg.Trace = traceparent
	}
	if cfg.BodyIdle == 0 {
		cfg.BodyIdle = 2 * time.Minute
	}
	g := &gate{Config: cfg}
	if cfg.Origin != nil {
		g.proxy = g.newProxy()
	}
	return g, nil
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func checkOrigin(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("gate: origin %q must be http://host[:port] or https://…", u.Redacted())
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "", u.User != nil, u.Opaque != "":
		return fmt.Errorf("gate: origin %q must have no path, query or user: paths are passed on as they come", u.Redacted())
	}
	return nil
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.BodyIdle > 0 && r.Body != nil && r.Body != http.NoBody {
		body := &patientBody{ReadCloser: r.Body, control: http.NewResponseController(w), idle: g.BodyIdle}
		r.Body = body
		defer body.leave()
	}
	if _, asked := r.Header[DoctorHeader]; asked && g.diagnose(w, r) {
		return
	}
	path := r.URL.Path
	switch {
	case g.HealthPath != "" && path == g.HealthPath:
		serveHealth(w, r)
	case g.CheckPath != "" && (path == g.CheckPath || strings.HasPrefix(path, g.CheckPath) && path[len(g.CheckPath)] == '/'):
		g.serveCheck(w, r)
	case g.DeniedPath != "" && path == g.DeniedPath:
		g.serveDenied(w, r)
	case g.proxy != nil:
		g.serveProxy(w, r)
	default:
		http.NotFound(w, r)
	}
}

// A call is one request on its way through the gate.
type call struct {
	req    core.Request
	dec    core.Decision
	ref    string
	trace  string
	body   *patientBody // nil = none, or without a deadline
	logged bool
	settle chan struct{} // closed when the store's leftover work is done; nil = none was begun
	cookie string        // to be set with the answer; "" = none
	late   bool          // charged again after the answer: settle once more
}

// decide fills in the decision. The charge must not depend on whether the
// client stays: else leaving early would be free.
func (g *gate) decide(c *call, r *http.Request) {
	c.req.Header = core.Fields(r.Header)
	c.req.Peer = peerAddr(r)
	c.req.Time = g.Now()
	if g.Platform != nil {
		c.req.Platform = g.Platform(r)
	}
	c.dec = g.Limiter.Decide(context.WithoutCancel(r.Context()), &c.req)
	if g.Cookies != nil {
		c.cookie = g.Cookies.Offer(&c.req, &c.dec)
	}
	if c.dec.Class == core.Ignored {
		return
	}
	source := &g.Limiter.Policy().Client
	for _, w := range g.watch.see(source, &c.req, &c.dec) {
		g.Logger.Warn("stile: the client address looks wrong: "+w.text, "setting", w.setting)
	}
}

// charged reports whether the store was asked, so that it may have work left.
func (c *call) charged() bool {
	return c.dec.StoreTime > 0 || len(c.dec.States) > 0 || c.dec.Err != nil
}

// settleTimeout bounds leftover work. The store's own deadline is shorter; this
// one only keeps a handler from hanging.
const settleTimeout = 5 * time.Second

func (g *gate) settleNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := g.Limiter.Settle(ctx); err != nil {
		g.Metrics.settleFailed.Add(1)
		g.Logger.Debug("stile: settle", "error", err)
	}
}

// record counts the finished decision and logs it, once.
func (g *gate) record(ctx context.Context, c *call, status int) {
	if c.logged {
		return
	}
	c.logged = true
	g.Metrics.decision(&c.dec)
	if g.Log == nil || c.dec.Outcome == core.Pass && c.dec.Err == nil {
		return
	}
	g.Log.Write(context.WithoutCancel(ctx), hitlog.Record{Request: &c.req, Decision: &c.dec, Status: status, Ref: c.ref, Trace: c.trace})
}

// blocked builds the answer for a decision that does not let the request
// through; ok is false when it does. A policy that observes never blocks.
func (g *gate) blocked(c *call, r *http.Request) (a answer.Answer, ok bool) {
	unavailable := c.dec.Outcome == core.Unavailable && !c.dec.Observe
	if !unavailable && !c.dec.Refused() {
		return answer.Answer{}, false
	}
	c.ref = answer.NewRef()
	q := g.ask(r, c)
	if unavailable {
		return g.Answer.Unavailable(q), true
	}
	return g.Answer.Limited(&c.dec, q), true
}

func (g *gate) ask(r *http.Request, c *call) answer.Request {
	return answer.Request{Accept: r.Header["Accept"], Ref: c.ref, Now: c.req.Time}
}

// peerAddr is the connection's other end; invalid when it has no address.
func peerAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// mayAsk reports whether a request is from a proxy that is trusted to ask on
// behalf of others.
func (g *gate) mayAsk(r *http.Request) bool {
	peer := peerAddr(r)
	for _, p := range g.Peers {
		if peer.IsValid() && p.Contains(peer) {
			return true
		}
	}
	ok := 0
	if len(g.PeerSecrets) > 0 {
		sent := []byte(r.Header.Get(g.PeerSecretHeader))
		for _, secret := range g.PeerSecrets {
			ok |= subtle.ConstantTimeCompare(sent, []byte(secret))
		}
	}
	return ok == 1
}

func serveHealth(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte("ok\n"))
	}
}
