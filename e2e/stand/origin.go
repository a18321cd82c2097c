package stand

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Seen is one request as it reached an origin.
type Seen struct {
	Method, Path, Host string // Path is the request target as sent
	Header             http.Header
	Body               string
}

// An Origin is a site that records every request.
//
//	/style.css, /pixel.png    assets
//	/public/…                 a page that a shared cache may store
//	/forbidden                a page that the site itself answers with 403
//	/broken                   a page that the site itself answers with 500
//	/redirect/N               N redirects, then a page
//	/socket                   a WebSocket that sends everything back
//	everything else           a page
type Origin struct {
	Addr string // host:port
	URL  string // http://host:port

	mu     sync.Mutex
	seen   []Seen
	forget bool
}

// NewOrigin starts a site until the test ends.
func NewOrigin(t testing.TB) *Origin {
	o := &Origin{}
	srv := httptest.NewServer(o)
	t.Cleanup(srv.Close)
	o.URL = srv.URL
	o.Addr = srv.Listener.Addr().String()
	return o
}

// Seen returns what reached the origin so far.
func (o *Origin) Seen() []Seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

// InProcess returns a site without a connection, for tests that ask many
// thousand times; it is also the transport that reaches it.
func InProcess() *Origin { return &Origin{URL: "http://site.test", Addr: "site.test"} }

// RoundTrip implements http.RoundTripper.
func (o *Origin) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	o.ServeHTTP(rec, in)
	res := rec.Result()
	res.Request = r
	return res, nil
}

// Forget makes the origin keep nothing of what it sees from now on.
func (o *Origin) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget = true
}

// ServeHTTP implements http.Handler.
func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	o.mu.Lock()
	if !o.forget {
		o.seen = append(o.seen, Seen{Method: r.Method, Path: r.RequestURI, Host: r.Host, Header: r.Header.Clone(), Body: string(body)})
	}
	o.mu.Unlock()
	status := http.StatusOK
	path, _, _ := strings.Cut(r.URL.Path, ";") // as servers of Java cut it
	switch {
	case strings.HasSuffix(path, ".css"):
		w.Header().Set("Content-Type", "text/css")
		return
	case strings.HasSuffix(path, ".png"):
		w.Header().Set("Content-Type", "image/png")
		return
	case strings.HasPrefix(r.URL.Path, "/redirect/"):
		n := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/redirect/%d", &n)
		target := "/landing"
		if n > 1 {
			target = fmt.Sprintf("/redirect/%d", n-1)
		}
		http.Redirect(w, r, target, http.StatusFound)
		return
	case r.URL.Path == "/socket" && strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		echo(w, r.Header.Get("Sec-Websocket-Key"))
		return
	case strings.HasPrefix(r.URL.Path, "/public/"):
		w.Header().Set("Cache-Control", "public, max-age=60")
	case r.URL.Path == "/forbidden":
		status = http.StatusForbidden
	case r.URL.Path == "/broken":
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><title>page</title><p>page %s, %d bytes received", html.EscapeString(r.RequestURI), len(body))
}

// echo takes the connection over: for the proxies in front, bytes after 101 are
// no HTTP any more, whatever they are.
func echo(w http.ResponseWriter, key string) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	accept := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455 §4.2.2
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(accept[:]) + "\r\n\r\n")
	if rw.Flush() == nil {
		_, _ = io.Copy(c, rw)
	}
}
