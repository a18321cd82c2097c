package gate

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
)

// The forms in which a proxy may name the original request. They are told apart
// by the endpoint's address and never by which fields are present: a proxy
// passes its client's fields on besides its own, and the client writes those.
//
//	/check              X-Forwarded-Method, -Uri, -Host (Traefik, Caddy, HAProxy)
//	/check?mode=nginx   X-Original-Method, X-Original-URI, Host; refuses with 403 and marks
//	/check/the/path     the request line itself (Envoy's path_prefix)
const modeNginx = "nginx"

// serveCheck answers 200, or why not. It is closed to all but proven proxies.
func (g *gate) serveCheck(w http.ResponseWriter, r *http.Request) {
	if !g.mayAsk(r) {
		g.closed(w, r)
		return
	}
	c := &call{trace: g.Trace(r)}
	nginx := r.URL.Query().Get("mode") == modeNginx && r.URL.Path == g.CheckPath
	if problem := g.original(c, r, nginx); problem != "" {
		g.Metrics.checkMalformed.Add(1)
		if left, ok := g.stray.due(g.Now()); ok {
			g.Logger.Error("stile: a forward-auth request does not name its original: "+problem, "peer", r.RemoteAddr, "left_out", left)
		}
		http.Error(w, "stile: "+problem, http.StatusBadRequest)
		return
	}
	g.decide(c, r)
	a, blocked := g.blocked(c, r)
	if c.charged() {
		g.settleNow(r.Context())
	}
	switch {
	case !blocked:
		a = g.Answer.Allowed(&c.dec)
		g.record(r.Context(), c, 0) // what the visitor gets is the proxy's business
	default:
		g.record(r.Context(), c, a.Status)
		if nginx {
			a = g.Answer.Marked(&c.dec, c.ref)
		}
	}
	if c.cookie != "" {
		// The proxy passes it on; docs/identities.md says how each does. Whether a
		// shared cache may keep the page, only it can know.
		w.Header().Add("Set-Cookie", c.cookie)
	}
	a.Write(w, r.Method)
}

// original fills in the request that the proxy asks about, or says what is
// missing.
func (g *gate) original(c *call, r *http.Request, nginx bool) (problem string) {
	c.req.Host, c.req.Blind = r.Host, true
	switch {
	case nginx:
		c.req.Method = last(r.Header, "X-Original-Method")
		if !c.setURI(last(r.Header, "X-Original-Uri")) {
			return "mode=nginx needs X-Original-URI (proxy_set_header X-Original-URI $request_uri)"
		}
		if c.req.Method == "" {
			return "mode=nginx needs X-Original-Method (proxy_set_header X-Original-Method $request_method)"
		}
	case r.URL.Path != g.CheckPath:
		c.req.Method = r.Method
		c.req.Path, c.req.RawQuery = strings.TrimPrefix(r.URL.Path, g.CheckPath), r.URL.RawQuery
	default:
		c.req.Method = last(r.Header, "X-Forwarded-Method")
		if !c.setURI(last(r.Header, "X-Forwarded-Uri")) {
			return "X-Forwarded-Uri is missing; nginx asks " + g.CheckPath + "?mode=nginx, Envoy " + g.CheckPath + "/the/path"
		}
		if c.req.Method == "" {
			return "X-Forwarded-Method is missing"
		}
		if host := last(r.Header, "X-Forwarded-Host"); host != "" {
			c.req.Host = host
		}
	}
	return ""
}

// setURI reads a request target as the proxy received it. A path that does not
// decode is taken as it stands: it must not escape the count.
func (c *call) setURI(uri string) bool {
	if uri == "" {
		return false
	}
	if !strings.HasPrefix(uri, "/") {
		u, err := url.Parse(uri) // absolute form
		if err != nil {
			return false
		}
		uri = orDefault(u.EscapedPath(), "/")
		if u.RawQuery != "" {
			uri += "?" + u.RawQuery
		}
	}
	path, query, _ := strings.Cut(uri, "?")
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	c.req.Path, c.req.RawQuery = path, query
	return true
}

// last returns the line that was added last: the proxy's own, if it adds
// instead of setting.
func last(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// maxWait bounds what a proxy may say about the wait: the longest window.
const maxWait = 400 * 24 * time.Hour

// serveDenied renders the page of a refusal that CheckPath told nginx by marks,
// for its error_page. It decides and counts nothing.
func (g *gate) serveDenied(w http.ResponseWriter, r *http.Request) {
	if !g.mayAsk(r) {
		g.closed(w, r)
		return
	}
	q := answer.Request{Accept: r.Header["Accept"], Ref: last(r.Header, answer.MarkRef), Now: g.Now()}
	if last(r.Header, answer.MarkOutcome) == answer.OutcomeUnavailable {
		g.Answer.Unavailable(q).Write(w, r.Method)
		return
	}
	d := core.Decision{Outcome: core.Refuse, Binding: -1}
	if s, err := strconv.ParseInt(last(r.Header, "X-Retry-After"), 10, 64); err == nil && s > 0 {
		d.RetryAfter = min(time.Duration(min(s, int64(maxWait/time.Second)))*time.Second, maxWait)
	}
	g.Answer.Limited(&d, q).Write(w, r.Method)
}

// closed turns a stranger away. Nothing is counted, or calling the endpoint
// with a victim's address would use up the victim's budget.
func (g *gate) closed(w http.ResponseWriter, r *http.Request) {
	g.Metrics.checkClosed.Add(1)
	if left, ok := g.stray.due(g.Now()); ok {
		g.Logger.Warn("stile: forward-auth request from a peer that is not listed", "peer", r.RemoteAddr, "setting", "client.peers", "left_out", left)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "Forbidden", http.StatusForbidden)
}
