package lambda

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/stilehq/stile/answer"
)

// clientKey is where the platform's word on the client is kept in a request's
// context.
type clientKey struct{}

// incoming makes of an event the request that the client sent.
func (e *event) incoming(ctx context.Context) *http.Request {
	h, u := e.header(), e.target()
	client := e.client(h)
	// ReverseProxy says by a panic that a body broke off, but only under a server;
	// without one it would return as if the body had ended.
	ctx = context.WithValue(ctx, http.ServerContextKey, noServer)
	ctx = context.WithValue(ctx, clientKey{}, client)
	r := (&http.Request{
		Method: e.method(), URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Host: e.host(h), Body: http.NoBody,
	}).WithContext(ctx)
	h.Del("Host")
	h.Del("Content-Length") // it is the body's own
	h.Del("Transfer-Encoding")
	if client.IsValid() {
		r.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	}
	if h.Get("X-Forwarded-Proto") != "http" { // function URLs and HTTP APIs know https only
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		if decoded, err := base64.StdEncoding.DecodeString(e.Body); err == nil {
			body = decoded
		}
	}
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return r
}

var noServer = &http.Server{}

// healthCheck reports whether an event is the load balancer's own question
// whether the target lives: it adds X-Forwarded-For to everybody else's.
func (e *event) healthCheck(h http.Header) bool {
	return strings.HasPrefix(h.Get("User-Agent"), "ELB-HealthChecker/") && len(h["X-Forwarded-For"]) == 0
}

// serve runs the proxy on w and reports how it ended: nil, errBroken when the
// origin's body broke off, or what a panic said.
func (f *Function) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = errBroken
		default:
			f.logger.Error("stile: a request panicked", "panic", p)
			err = errBroken
		}
	}()
	f.proxy.ServeHTTP(w, r)
	return nil
}

// ask is what an answer in place of the origin's depends on.
func (f *Function) ask(r *http.Request, ref string) answer.Request {
	return answer.Request{Accept: r.Header["Accept"], Ref: ref, Now: f.now()}
}
