package gate

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/stilehq/stile/core"
)

// speaksForOthers reports whether the peer's X-Forwarded-* are to be believed:
// the policy takes a client from a header at all, and takes it from this peer.
func speaksForOthers(s *core.ClientSource, r *core.Request) bool {
	if s.From == core.FromRemote || !s.Proven(r) {
		return false
	}
	if s.From == core.FromXFF && len(s.TrustedProxies) > 0 {
		for _, p := range s.TrustedProxies {
			if r.Peer.IsValid() && p.Contains(r.Peer) {
				return true
			}
		}
		return false
	}
	return true
}

// kept are what a believed peer says; each is passed on with our hop added
// where the field is a chain.
var kept = [...]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// setForwarded tells the origin the truth about the request. It reads the
// request as received and runs after hop-by-hop fields are gone, so naming one
// of these in Connection changes nothing.
func setForwarded(pr *httputil.ProxyRequest, believed bool) {
	in, out := pr.In.Header, pr.Out.Header
	dropLookalikes(out)
	if !believed {
		for name := range out {
			if strings.HasPrefix(name, "X-Forwarded-") {
				delete(out, name)
			}
		}
		pr.SetXForwarded()
		return
	}
	out["X-Forwarded-For"] = slices.Clone(in["X-Forwarded-For"])
	pr.SetXForwarded()
	for _, name := range kept[1:] {
		if v := in[name]; len(v) > 0 {
			out[name] = slices.Clone(v)
		}
	}
	if v := in["Forwarded"]; len(v) > 0 { // RFC 7239
		hop := "for=unknown"
		if peer := peerAddr(pr.In); peer.Is4() {
			hop = "for=" + peer.String()
		} else if peer.IsValid() {
			hop = `for="[` + peer.String() + `]"`
		}
		out["Forwarded"] = append(slices.Clone(v), hop)
	}
}

// dropLookalikes removes fields such as X_Forwarded_For: to an origin that names
// fields as CGI does (WSGI, Rack, PHP) they are the same as the real ones, and no
// proxy writes them.
func dropLookalikes(out http.Header) {
	for name := range out {
		if !strings.ContainsRune(name, '_') {
			continue
		}
		plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if strings.HasPrefix(plain, "x-forwarded-") {
			delete(out, name)
		}
	}
}

// redirectTarget resolves a Location as a browser would, into the form in which
// the next request will arrive: host, decoded path and query. It is empty when
// the redirect leads nowhere that this gate could see.
func redirectTarget(r *core.Request, out *http.Request, location string) string {
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return ""
	}
	scheme := orDefault(out.Header.Get("X-Forwarded-Proto"), "http")
	base := url.URL{Scheme: scheme, Host: r.Host, Path: r.Path}
	t := base.ResolveReference(u)
	if t.Scheme != "http" && t.Scheme != "https" {
		return ""
	}
	host := t.Host
	if u.Host != "" {
		host = strings.ToLower(host)
		port := ":80"
		if t.Scheme == "https" {
			port = ":443"
		}
		host = strings.TrimSuffix(host, port)
	}
	if host == "" && (u.Host != "" || u.User != nil) {
		return "" // "//@" and "//:80" name no site
	}
	target := host + orDefault(t.Path, "/")
	if t.RawQuery != "" {
		target += "?" + t.RawQuery
	}
	return target
}

// traceparent reads the trace id of a W3C Trace Context field: the second of
// four parts, 32 hex digits.
func traceparent(r *http.Request) string {
	v := r.Header.Get("Traceparent")
	if len(v) < 55 || v[2] != '-' || v[35] != '-' {
		return ""
	}
	id := v[3:35]
	for i := 0; i < len(id); i++ {
		if c := id[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return ""
		}
	}
	return id
}
