package wire_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/wire"
)

const ranges = "stile-crawler-ranges 1\n\nlist google-common\nsource https://example.org/\nfetched 2026-10-01T00:00:00Z\n11.22.33.0/24\n"

// source answers every request for a list, and counts them.
type source struct {
	body  string
	calls atomic.Int64
}

func (s *source) RoundTrip(r *http.Request) (*http.Response, error) {
	s.calls.Add(1)
	return &http.Response{
		StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(s.body)),
	}, nil
}

func googlebot(r *wire.Ready, addr string) core.Decision {
	return r.Decide(context.Background(), &core.Request{
		Method: "GET", Host: "example.org", Path: "/", Peer: netip.MustParseAddr(addr), Time: noon,
		Header: http.Header{"User-Agent": {"Mozilla/5.0 (compatible; Googlebot/2.1)"}},
	})
}

func parseAt(t *testing.T, dir, text string) *policy.File {
	t.Helper()
	env := map[string]string{"SECRET": strings.Repeat("k", 40)}
	f, _, err := policy.Parse(filepath.Join(dir, "stile.yaml"), []byte(text), func(n string) string { return env[n] })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCrawlersAreThePolicys: its file proves, beside what is built in; classes
// that earn nothing are not proven; a reload may change all of it.
func TestCrawlersAreThePolicys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ranges.txt"), []byte(ranges), 0o600); err != nil {
		t.Fatal(err)
	}
	lists := &source{body: `{"prefixes":[]}`}
	now := func() time.Time { return noon }
	with := limit(1) + "crawlers: {file: ranges.txt}\n"
	r, _ := ready(t, wire.Config{Policy: parseAt(t, dir, with), Now: now, Proving: wire.CrawlerConfig{Transport: lists}})
	for _, addr := range []string{"11.22.33.7"} { // the list of the file is newer than the one built in
		if d := googlebot(r, addr); d.Reason != core.ReasonCrawler || d.Crawler.Proof != "range" {
			t.Errorf("%s: %s, %+v; want a verified crawler", addr, d.Reason, d.Crawler)
		}
	}
	if !r.Due() || lists.calls.Load() != 0 {
		t.Errorf("due: %v; %d fetches before anybody asked for them", r.Due(), lists.calls.Load())
	}
	verifier := r.Crawlers()
	if _, err := r.Reload(t.Context(), parseAt(t, dir, limit(2)+"exempt: {crawlers: {search: ordinary, preview: ordinary}}\n")); err != nil {
		t.Fatal(err)
	}
	if r.Crawlers() != nil || r.Due() {
		t.Error("crawlers are proven that earn nothing")
	}
	if d := googlebot(r, "66.249.66.1"); d.Reason != core.ReasonWithin {
		t.Errorf("ordinary: %s", d.Reason)
	}
	if err := r.Refresh(t.Context(), time.Second); err != nil || lists.calls.Load() != 0 {
		t.Errorf("%v, %d fetches with nothing to prove", err, lists.calls.Load())
	}
	if _, err := r.Reload(t.Context(), parseAt(t, dir, with)); err != nil {
		t.Fatal(err)
	}
	if r.Crawlers() == verifier || r.Crawlers() == nil {
		t.Error("the file is not read again by a reload")
	}
}

// TestReloadKeepsProofs: a reload that is about limits fetches nothing anew.
func TestReloadKeepsProofs(t *testing.T) {
	t.Parallel()
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(1))})
	verifier := r.Crawlers()
	if _, err := r.Reload(t.Context(), parse(t, limit(2))); err != nil {
		t.Fatal(err)
	}
	if verifier == nil || r.Crawlers() != verifier {
		t.Error("the verifier was exchanged with the limits")
	}
}

// TestRefresh fetches once, within its budget; Run does by itself, and ends.
func TestRefresh(t *testing.T) {
	t.Parallel()
	body := fmt.Sprintf(`{"creationTime":%q,"prefixes":[{"ipv4Prefix":"11.22.33.0/24"}]}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000"))
	lists := &source{body: body}
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(1)), Proving: wire.CrawlerConfig{Transport: lists}})
	_ = r.Refresh(t.Context(), 5*time.Second) // lists of other formats fail
	if d := googlebot(r, "11.22.33.7"); d.Reason != core.ReasonCrawler {
		t.Errorf("after a refresh: %s", d.Reason)
	}
	if n := lists.calls.Load(); n == 0 {
		t.Error("nothing was fetched")
	}

	lists = &source{body: body}
	r, _ = ready(t, wire.Config{Policy: parse(t, limit(1)), Proving: wire.CrawlerConfig{Transport: lists}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	deadline := time.Now().Add(20 * time.Second)
	for googlebot(r, "11.22.33.7").Reason != core.ReasonCrawler && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := r.Reload(t.Context(), parse(t, limit(2)+"exempt: {crawlers: {search: ordinary, preview: ordinary}}\n")); err != nil {
		t.Error(err)
	}
	if _, err := r.Reload(t.Context(), parse(t, limit(2))); err != nil {
		t.Error(err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("Run does not end with its context")
	}
	// Whether the table is the built-in one again or was refreshed already is a
	// matter of moments; that there is one is not.
	shipped, fetched := googlebot(r, "66.249.66.1"), googlebot(r, "11.22.33.7")
	if shipped.Reason != core.ReasonCrawler && fetched.Reason != core.ReasonCrawler {
		t.Errorf("after two reloads: %s and %s", shipped.Reason, fetched.Reason)
	}
}

// TestIdentities: each part of identify becomes a proof, in the order of what it
// proves, and a bucket counts by it.
func TestIdentities(t *testing.T) {
	t.Parallel()
	text := limit(1) + `  - {name: visitor, key: cookie, algorithm: fixed-window, limit: 3, window: 24h}
  - {name: partner, key: api-key, algorithm: fixed-window, limit: 5, window: 24h}
  - {name: host, key: asn, algorithm: fixed-window, limit: 1000, window: 24h}
identify:
  cookie: {secrets: env:SECRET}
  api_keys: {keys: [{hash: 9af15b336e6a9619928537df30b2e6a2376569fcf9d7e773eccede65606529a0, name: partner, tier: 2}]}
client: {from: xff, trusted_hops: 1, peers: [10.0.0.0/8], asn: "header:X-Asn"}
`
	r, _ := ready(t, wire.Config{Policy: parse(t, text), Now: func() time.Time { return noon }})
	cookies := r.Parts().Cookies
	if cookies == nil {
		t.Fatal("no cookies are signed")
	}
	ask := func(h http.Header) core.Decision {
		h.Set("X-Forwarded-For", "198.51.100.1")
		return r.Decide(context.Background(), &core.Request{Method: "GET", Host: "example.org", Path: "/", Peer: netip.MustParseAddr("10.0.0.1"), Time: noon, Header: h})
	}
	cookie := cookies.Name() + "=" + cookies.Issue(noon, netip.MustParseAddr("198.51.100.1"))
	for _, tt := range []struct {
		what   string
		header http.Header
		kind   core.Kind
		limit  int64
		asn    bool
	}{
		{"nobody", http.Header{}, rows.Address, 1, false},
		{"a cookie", http.Header{"Cookie": {cookie}}, rows.Cookie, 3, false},
		{"a key", http.Header{"X-Api-Key": {"0"}}, rows.Address, 1, false},
		{"the key", http.Header{"X-Api-Key": {"0000"}}, rows.APIKey, 10, false},
		{"the key and a cookie, from a hosting network", http.Header{"X-Api-Key": {"0000"}, "Cookie": {cookie}, "X-Asn": {"16509"}}, rows.APIKey, 10, true},
		{"from a consumer network", http.Header{"X-Api-Key": {"0000"}, "X-Asn": {"3320"}}, rows.APIKey, 10, false},
	} {
		d := ask(tt.header)
		if d.Key.Kind != tt.kind || d.States[0].Limit != tt.limit {
			t.Errorf("%s: %s of %d, want %s of %d", tt.what, d.Key, d.States[0].Limit, tt.kind, tt.limit)
		}
		if got := d.States[len(d.States)-1].Key == rows.ASN; got != tt.asn {
			t.Errorf("%s: counted by network: %v, want %v", tt.what, got, tt.asn)
		}
	}
	known := r.Parts().Cookies
	if _, err := r.Reload(t.Context(), parse(t, strings.Replace(text, "limit: 3", "limit: 4", 1))); err != nil {
		t.Fatal(err)
	}
	if r.Parts().Cookies != known {
		t.Error("a reload about limits forgot what newcomers have earned")
	}
}

// TestOperatorsWord: what one instance lifts holds on another over a store that
// they share, and a store of one process is not asked for it.
func TestOperatorsWord(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: memory.New(memory.Config{})}
	first, _ := ready(t, wire.Config{Policy: parse(t, limit(1)), Stores: registry(t, far(s, nil)), StoreURL: "far://host"})
	second, _ := ready(t, wire.Config{Policy: parse(t, limit(1)), Stores: registry(t, far(s, nil)), StoreURL: "far://host"})
	if n := admitted(second, "198.51.100.1", 3); n != 1 {
		t.Fatalf("%d admitted, want 1", n)
	}
	if err := first.Parts().Limiter.LiftAll(t.Context(), noon, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	q := &core.Request{Method: "GET", Host: "example.org", Path: "/", Peer: netip.MustParseAddr("198.51.100.1"), Time: noon.Add(30 * time.Second)}
	if d := second.Decide(t.Context(), q); d.Refused() {
		t.Errorf("after 30 s: %+v", d)
	}
	alone, _ := ready(t, wire.Config{Policy: parse(t, limit(1))})
	admitted(alone, "198.51.100.1", 5)
	if got := alone.Store().Meter.Read(); got.Trips != 3 || got.Reads != 0 {
		t.Errorf("a store of one process: %d trips and %d reads, want 3 and 0", got.Trips, got.Reads)
	}
}

func TestOffPassesAll(t *testing.T) {
	t.Parallel()
	r, lines := ready(t, wire.Config{Policy: parse(t, "mode: off\n"+limit(1)+"store: {on_error: closed}\n")})
	for i := range 5 {
		d := visit(r, fmt.Sprintf("198.51.100.%d", i))
		if d.Outcome != core.Pass || d.Reason != core.ReasonOff {
			t.Errorf("%s (%s)", d.Outcome, d.Reason)
		}
		a := http.Header{}
		r.Parts().Answer.Annotate(200, a, &d)
		if len(a) > 0 {
			t.Errorf("fields of a policy that is off: %v", a)
		}
	}
	if lines.Len() > 0 || r.Store().Meter.Read().Trips != 0 {
		t.Errorf("%d trips, log:\n%s", r.Store().Meter.Read().Trips, lines)
	}
}

// TestSuspensionInMemoryRows: a mark of 61 bits fits a store whose counters begin
// with 24, beside the counts that are there.
func TestSuspensionInMemoryRows(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: memory.New(memory.Config{})}
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(5)), Stores: registry(t, far(s, nil)), StoreURL: "far://host"})
	if n := admitted(r, "198.51.100.1", 2); n != 2 {
		t.Fatalf("%d admitted, want 2", n)
	}
	k, err := core.ParseKey("198.51.100.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	l := r.Parts().Limiter
	if err := l.Suspend(t.Context(), k, time.Time{}, noon, noon.Add(30*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if d := visit(r, "198.51.100.1"); d.Reason != core.ReasonSuspended || d.RetryAfter != 30*time.Minute {
		t.Errorf("%s for %v, want suspended for 30m", d.Reason, d.RetryAfter)
	}
	if d := visit(r, "198.51.100.2"); d.Outcome != core.Admit {
		t.Errorf("another client: %s", d.Reason)
	}
	if err := l.Lift(t.Context(), k, time.Time{}, noon); err != nil {
		t.Fatal(err)
	}
	if n := admitted(r, "198.51.100.1", 9); n != 5 {
		t.Errorf("%d admitted after a lift, want 5", n)
	}
}
