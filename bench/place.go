package bench

import (
	"net"
	"net/url"
	"strings"

	"github.com/stilehq/stile/stores/open"
)

// A place is where a store URL leads, as far as it can be told from outside.
type place struct {
	name string // the store's
	kind Kind
	unit string
	addr string // host:port, "" when the connection cannot be forwarded (TLS, a cluster, no server)
	why  string // addr is "": the reason
	via  func(addr string) target
}

// A target is a store URL and the environment it is opened with.
type target struct {
	url    string
	getenv func(string) string
}

// variables of stores that take their server from the environment.
const (
	firestoreHost = "FIRESTORE_EMULATOR_HOST"
	upstashURL    = "UPSTASH_REDIS_REST_URL"
)

// locate reads a store URL that open.Validate has accepted.
func locate(t target) (place, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return place{}, open.ErrURL
	}
	switch u.Scheme {
	case "memory":
		return place{name: "memory", kind: KindInProcess, unit: "operation", why: "no server"}, nil
	case "firestore":
		p := place{name: "firestore", kind: KindReal, unit: "document", addr: t.getenv(firestoreHost), why: "TLS"}
		if p.addr != "" {
			p.kind = KindEmulator
			p.via = func(addr string) target { return target{t.url, with(t.getenv, firestoreHost, addr)} }
		}
		return p, nil
	case "dynamodb":
		p := place{name: "dynamodb", kind: KindReal, unit: "request unit", why: "TLS"}
		query := u.Query()
		endpoint, err := url.Parse(query.Get("endpoint"))
		if err == nil && endpoint.Host != "" && !strings.HasSuffix(endpoint.Hostname(), ".amazonaws.com") {
			p.kind = KindEmulator
			if endpoint.Scheme == "http" {
				p.addr = endpoint.Host
				p.via = func(addr string) target {
					v, e := *u, *endpoint
					e.Host = addr
					query.Set("endpoint", e.String())
					v.RawQuery = query.Encode()
					return target{v.String(), t.getenv}
				}
			}
		}
		return p, nil
	case "upstash", "https":
		p := place{name: "upstash", kind: KindReal, unit: "command", why: "TLS"}
		rest := u
		if u.Host == "" {
			if rest, err = url.Parse(strings.TrimSpace(t.getenv(upstashURL))); err != nil {
				return place{}, open.ErrURL
			}
		}
		if rest.Scheme == "http" { // loopback only: the store refuses others
			p.kind, p.addr = KindFront, rest.Host
			p.via = func(addr string) target { return target{t.url, with(t.getenv, upstashURL, "http://"+addr)} }
		}
		return p, nil
	}
	// Redis and Valkey.
	p := place{name: "redis", kind: KindReal, unit: "command"}
	switch {
	case u.Scheme == "rediss" || u.Scheme == "valkeys":
		p.why = "TLS"
	case u.Query().Get("cluster") != "" || strings.Contains(u.Host, ","):
		p.why = "several nodes"
	default:
		p.addr = u.Host
		if u.Port() == "" {
			p.addr = net.JoinHostPort(u.Hostname(), "6379")
		}
		p.via = func(addr string) target {
			v := *u
			v.Host = addr
			return target{v.String(), t.getenv}
		}
	}
	return p, nil
}

func with(getenv func(string) string, name, value string) func(string) string {
	return func(n string) string {
		if n == name {
			return value
		}
		return getenv(n)
	}
}

// loopback reports whether a place is on the machine itself.
func (p *place) loopback() bool {
	if p.kind == KindInProcess {
		return true
	}
	host, _, err := net.SplitHostPort(p.addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
