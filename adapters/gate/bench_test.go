package gate_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/stores/memory"
)

// instant is an origin without a network, so that the proxy's own cost shows.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	contentType := "text/html"
	if strings.HasSuffix(r.URL.Path, ".css") {
		contentType = "text/css" // a page would be charged late, and be another measurement
	}
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: 4,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader("page")),
	}, nil
}

// sink is a ResponseWriter that keeps nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}

func benchGate(b *testing.B, limit int64, origin bool) http.Handler {
	b.Helper()
	l, err := core.New(hourly(limit), core.Options{Store: memory.New(memory.Config{}), Local: memory.New(memory.Config{})})
	if err != nil {
		b.Fatal(err)
	}
	aw, _ := answer.New(answer.Config{})
	hl, _ := hitlog.New(hitlog.Config{Handler: hitlog.NewHandler(io.Discard, hitlog.Names{})})
	cfg := gate.Config{Limiter: l, Answer: aw, Log: hl, Transport: instant{}, Logger: slog.New(slog.DiscardHandler)}
	if origin {
		cfg.Origin = mustURL(b, "http://origin.example")
	}
	h, err := gate.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func benchRequest(path string, fields ...string) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	return r
}

func run(b *testing.B, h http.Handler, r *http.Request) {
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(&sink{http.Header{}}, r)
	}
}

// BenchmarkProxy against the same proxy without a limiter in it.
func BenchmarkProxy(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		run(b, bareProxy(b), benchRequest("/page", "Sec-Fetch-Dest: document"))
	})
	b.Run("ignored", func(b *testing.B) {
		run(b, benchGate(b, 1<<40, true), benchRequest("/x.css", "Sec-Fetch-Dest: style"))
	})
	b.Run("counted", func(b *testing.B) {
		run(b, benchGate(b, 1<<40, true), benchRequest("/page", "Sec-Fetch-Dest: document"))
	})
	b.Run("refused", func(b *testing.B) {
		run(b, benchGate(b, 1, true), benchRequest("/page", "Sec-Fetch-Dest: document"))
	})
}

func BenchmarkCheck(b *testing.B) {
	r := benchRequest("/check", forwarded("/page")...)
	r.RemoteAddr = "127.0.0.1:1"
	run(b, benchGate(b, 1<<40, false), r)
}

func bareProxy(b *testing.B) http.Handler {
	b.Helper()
	u := mustURL(b, "http://origin.example")
	return &httputil.ReverseProxy{Transport: instant{}, FlushInterval: -1, Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(u)
		pr.SetXForwarded()
	}}
}
