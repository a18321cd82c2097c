package gate_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/stores/memory"
)

// A rig is a gate over a real limiter, with its log, in front of an origin.
type rig struct {
	t       testing.TB
	url     string // of the gate
	addr    string
	metrics *gate.Metrics
	hits    syncBuffer
	ops     syncBuffer
	limiter *core.Limiter
}

// syncBuffer is a bytes.Buffer for many goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (r *rig) entries() []hitlog.Entry {
	r.t.Helper()
	var out []hitlog.Entry
	for line := range strings.Lines(r.hits.String()) {
		e, err := hitlog.Parse([]byte(line))
		if err != nil {
			r.t.Fatalf("%v: %s", err, line)
		}
		out = append(out, e)
	}
	return out
}

// hourly is a policy of one bucket over the address, which is the last entry of
// X-Forwarded-For, so that a test has as many clients as it likes.
func hourly(limit int64) core.Policy {
	return core.Policy{
		Site: "test", Client: core.ClientSource{From: core.FromXFF, TrustedHops: 1},
		Buckets: []core.Bucket{{Name: "hour", Key: rows.Address, Algorithm: core.FixedWindow, Limit: limit, Window: time.Hour}},
	}
}

// clock stands in the middle of an hour.
func clock() time.Time { return time.Date(2026, 11, 30, 12, 30, 0, 0, time.UTC) }

func newRig(t testing.TB, p core.Policy, origin http.Handler, change ...func(*gate.Config)) *rig {
	t.Helper()
	r := &rig{t: t, metrics: gate.NewMetrics()}
	shared, local := memory.New(memory.Config{}), memory.New(memory.Config{})
	t.Cleanup(func() { shared.Close(); local.Close() })
	var err error
	if r.limiter, err = core.New(p, core.Options{Store: shared, Local: local}); err != nil {
		t.Fatal(err)
	}
	aw, err := answer.New(answer.Config{Contact: "mailto:ops@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	hl, err := hitlog.New(hitlog.Config{Handler: hitlog.NewHandler(&r.hits, hitlog.Names{}), Site: p.Site, Store: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := gate.Config{
		Limiter: r.limiter, Answer: aw, Log: hl, Metrics: r.metrics, Now: clock,
		Logger: slog.New(slog.NewTextHandler(&r.ops, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if origin != nil {
		o := httptest.NewServer(origin)
		t.Cleanup(o.Close)
		cfg.Origin = mustURL(t, o.URL)
	}
	for _, f := range change {
		f(&cfg)
	}
	h, err := gate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.url, r.addr = serve(t, h, gate.ServerConfig{})
	return r
}

// serve runs the real server on loopback.
func serve(t testing.TB, h http.Handler, c gate.ServerConfig) (base, addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Grace == 0 {
		c.Grace = 2 * time.Second
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gate.NewServer(h, c).Run(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return "http://" + ln.Addr().String(), ln.Addr().String()
}

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// noFollow leaves redirects and encodings alone.
var noFollow = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

type reply struct {
	status int
	header http.Header
	body   string
}

// get asks for a page as a browser of the client does; fields are "Name: value".
func (r *rig) get(client, path string, fields ...string) reply {
	return r.do("GET", client, path, fields...)
}

func (r *rig) do(method, client, path string, fields ...string) reply {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if client != "" {
		req.Header.Set("X-Forwarded-For", client)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	res, err := noFollow.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatalf("%s %s: body: %v", method, path, err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

func page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<p>page %s", r.URL.Path)
}

var pages = http.HandlerFunc(page)

func TestLimitThroughTheProxy(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(3), pages)
	for i := range 3 {
		got := r.get("203.0.113.9", fmt.Sprintf("/a%d", i), "Sec-Fetch-Dest: document")
		if got.status != 200 || got.body != fmt.Sprintf("<p>page /a%d", i) || got.header.Get("X-RateLimit-Remaining") != fmt.Sprint(2-i) {
			t.Fatalf("%d: %+v", i, got)
		}
	}
	got := r.get("203.0.113.9", "/a3", "Sec-Fetch-Dest: document")
	if got.status != 429 || got.header.Get("Retry-After") != "1800" || got.header.Get("Cache-Control") != "no-store" || !strings.Contains(got.body, "ops@example.org") {
		t.Fatalf("%+v", got)
	}
	if got := r.do("HEAD", "203.0.113.9", "/a3"); got.status != 200 {
		t.Errorf("HEAD is no page view: %+v", got)
	}
	if got := r.get("203.0.113.9", "/a3", "Accept: application/json, text/html;q=0.5"); got.status != 429 || !strings.HasPrefix(got.body, `{"error":{"code":"RATE_LIMITED"`) {
		t.Errorf("JSON: %+v", got)
	}
	for _, path := range []string{"/site.css", "/_next/static/x.js", "/robots.txt", "/feed/", "/?feed=rss2"} {
		if got := r.get("203.0.113.9", path); got.status != 200 || got.header.Get("RateLimit") != "" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := r.get("203.0.113.10", "/a3", "Sec-Fetch-Dest: document"); got.status != 200 {
		t.Errorf("another client: %+v", got)
	}
	es := r.entries()
	if len(es) != 6 || es[0].Event != hitlog.Hit || es[0].Status != 200 || es[3].Event != hitlog.Limited || es[3].Status != 429 || es[3].IP != "203.0.113.9" {
		t.Fatalf("log: %+v", es)
	}
	if !answer.ValidRef(es[3].Ref) || !strings.Contains(got.body, es[3].Ref) {
		t.Errorf("reference %q is not in the page", es[3].Ref)
	}
}

func TestObserveRefusesNobody(t *testing.T) {
	t.Parallel()
	p := hourly(1)
	p.Observe = true
	r := newRig(t, p, pages)
	for range 3 {
		if got := r.get("203.0.113.9", "/"); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	es := r.entries()
	if len(es) != 3 || es[0].Event != hitlog.Hit || es[1].Event != hitlog.WouldLimit || es[2].Status != 200 {
		t.Errorf("%+v", es)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	p := hourly(1)
	l, err := core.New(p, core.Options{Store: memory.New(memory.Config{}), Local: memory.New(memory.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	aw, _ := answer.New(answer.Config{})
	for want, cfg := range map[string]gate.Config{
		"no limiter":            {Answer: aw},
		"no answer writer":      {Limiter: l},
		"http://host":           {Limiter: l, Answer: aw, Origin: mustURL(t, "localhost:3000")},
		"must have no path":     {Limiter: l, Answer: aw, Origin: mustURL(t, "http://localhost:3000/base")},
		"query or user":         {Limiter: l, Answer: aw, Origin: mustURL(t, "http://u:p@localhost:3000")},
		"begin with a slash":    {Limiter: l, Answer: aw, CheckPath: "check"},
		"needs a header":        {Limiter: l, Answer: aw, PeerSecrets: []string{"x"}},
		"an empty peer secret":  {Limiter: l, Answer: aw, PeerSecretHeader: "X-S", PeerSecrets: []string{""}},
		"and not end in one":    {Limiter: l, Answer: aw, HealthPath: "/h/"},
		"and a header secrets ": {Limiter: l, Answer: aw, PeerSecretHeader: "X-S"},
	} {
		if _, err := gate.New(cfg); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%s: %v", want, err)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("a password is in the error: %v", err)
		}
	}
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}
