package gcp

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/stilehq/stile/core"
)

// Ingress says what requests pass before they reach the function.
type Ingress uint8

const (
	Direct       Ingress = iota // the run.app URL itself
	LoadBalancer                // an external Application Load Balancer
)

// String returns the word of STILE_INGRESS.
func (i Ingress) String() string {
	if i == LoadBalancer {
		return "load-balancer"
	}
	return "direct"
}

// ParseIngress reads STILE_INGRESS; "" is Direct.
func ParseIngress(s string) (Ingress, error) {
	switch s {
	case "", "direct":
		return Direct, nil
	case "load-balancer":
		return LoadBalancer, nil
	}
	return Direct, fmt.Errorf("STILE_INGRESS %q: want direct or load-balancer", s)
}

// forwarded returns the n-th entry of X-Forwarded-For from the right, 1 being
// the rightmost, over all its lines; invalid when there is none or it is no
// address. What is further to the left may be the client's own invention.
func forwarded(h http.Header, n int) netip.Addr {
	lines := h["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			entry := rest
			if at := strings.LastIndexByte(rest, ','); at >= 0 {
				entry, rest = rest[at+1:], rest[:at]
			} else {
				more = false
			}
			if entry = strings.Trim(entry, " \t"); entry == "" {
				continue
			}
			if n--; n == 0 {
				a, _ := core.ParseClient(entry)
				return a
			}
		}
	}
	return netip.Addr{}
}

// client is what the platform says of the client.
func (i Ingress) client(r *http.Request) netip.Addr {
	if i == LoadBalancer {
		return forwarded(r.Header, 2)
	}
	return forwarded(r.Header, 1)
}

// arrived returns the request as it reached Google: the connection's other end
// is whom Google's front end was connected to, a balancer or the client itself,
// and not the front end; and TLS was spoken there. Without X-Forwarded-For (on
// a machine at home) it is left as it is.
func arrived(r *http.Request) *http.Request {
	peer := forwarded(r.Header, 1)
	https := last(r.Header["X-Forwarded-Proto"]) == "https"
	if !peer.IsValid() && !https {
		return r
	}
	out := r.WithContext(r.Context()) // a copy
	if peer.IsValid() {
		out.RemoteAddr = netip.AddrPortFrom(peer, 0).String()
	}
	if https && out.TLS == nil {
		out.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	return out
}

func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	s := lines[len(lines)-1]
	return strings.Trim(s[strings.LastIndexByte(s, ',')+1:], " \t")
}
