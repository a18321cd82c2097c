package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openmemory"
	"github.com/stilehq/stile/wire"
)

const head = "version: 1\nsite: test\ncontact: mailto:ops@example.org\n"

func limit(n int) string {
	return head + fmt.Sprintf("buckets:\n  - {name: hour, key: address, algorithm: fixed-window, limit: %d, window: 1h}\n", n)
}

func parse(t *testing.T, text string) *policy.File {
	t.Helper()
	env := map[string]string{"SECRET": strings.Repeat("k", 40)}
	f, _, err := policy.Parse(filepath.Join(t.TempDir(), "stile.yaml"), []byte(text), func(n string) string { return env[n] })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func registry(t *testing.T, more ...open.Opener) *open.Registry {
	t.Helper()
	r, err := open.NewRegistry(append([]open.Opener{openmemory.Opener}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ready(t *testing.T, cfg wire.Config) (*wire.Ready, *bytes.Buffer) {
	t.Helper()
	var lines bytes.Buffer
	cfg.HitLog = hitlog.NewHandler(&lines, hitlog.Names{})
	if cfg.Stores == nil {
		cfg.Stores = registry(t)
	}
	r, err := wire.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r, &lines
}

var noon = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

func visit(r *wire.Ready, addr string) core.Decision {
	return r.Decide(context.Background(), &core.Request{
		Method: "GET", Host: "example.org", Path: "/", Header: http.Header{"Sec-Fetch-Dest": {"document"}},
		Peer: netip.MustParseAddr(addr), Time: noon,
	})
}

func admitted(r *wire.Ready, addr string, hits int) (n int) {
	for range hits {
		if d := visit(r, addr); d.Outcome == core.Admit {
			n++
		}
	}
	return n
}

func TestPartsAgree(t *testing.T) {
	t.Parallel()
	r, lines := ready(t, wire.Config{Policy: parse(t, limit(3))})
	if n := admitted(r, "198.51.100.1", 5); n != 3 {
		t.Errorf("%d admitted, want 3", n)
	}
	d := visit(r, "198.51.100.1")
	p := r.Parts()
	a := p.Answer.Limited(&d, answer.Request{Ref: answer.NewRef(), Now: noon})
	if a.Status != 429 || !bytes.Contains(a.Body, []byte("mailto:ops@example.org")) {
		t.Errorf("answer %d without the policy's contact:\n%s", a.Status, a.Body)
	}
	q := &core.Request{Method: "GET", Host: "example.org", Path: "/", Time: noon}
	p.Log.Write(t.Context(), hitlog.Record{Request: q, Decision: &d, Status: 429})
	e, err := hitlog.Parse(bytes.TrimSpace(lines.Bytes()))
	if err != nil || e.Event != hitlog.Limited || e.Site != "test" || e.Store != "memory" {
		t.Errorf("log line %+v, %v: want limited, site test, store memory", e, err)
	}
	if e := r.Explain(t.Context(), q); len(e.Steps) == 0 {
		t.Error("Explain says nothing")
	}
}

// TestReloadKeepsCounts lowers and raises a limit while the store stays.
func TestReloadKeepsCounts(t *testing.T) {
	t.Parallel()
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(3))})
	if n := admitted(r, "198.51.100.1", 3); n != 3 {
		t.Fatalf("%d admitted, want 3", n)
	}
	if _, err := r.Reload(t.Context(), parse(t, limit(5))); err != nil {
		t.Fatal(err)
	}
	if n := admitted(r, "198.51.100.1", 9); n != 2 {
		t.Errorf("after raising 3 to 5: %d more admitted, want 2", n)
	}
	if _, err := r.Reload(t.Context(), parse(t, limit(2))); err != nil {
		t.Fatal(err)
	}
	if n := admitted(r, "198.51.100.1", 3); n != 0 {
		t.Errorf("after lowering to 2: %d more admitted, want 0", n)
	}
	if n := admitted(r, "198.51.100.2", 3); n != 2 {
		t.Errorf("another client: %d admitted, want 2", n)
	}
}

func TestBadReloadKeepsTheOldPolicy(t *testing.T) {
	t.Parallel()
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(3))})
	before := r.Parts()
	text := strings.Replace(limit(5), "site: test", "site: other", 1) +
		"store: {max_keys: 5000, timeout: 99ms}\nanswer: {html: absent.html}\n"
	_, err := r.Reload(t.Context(), parse(t, text))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"site: cannot change", "store.max_keys: cannot change", "store.timeout: cannot change", "answer.html", "restart"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if r.Parts() != before {
		t.Error("the old policy was exchanged")
	}
}

// TestReloadUnderLoad is for the race detector, and holds the count exact over
// exchanges.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(500))})
	same := parse(t, limit(500))
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 4 {
		wg.Go(func() {
			n := admitted(r, "198.51.100.1", 200)
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Go(func() {
		for range 20 {
			if _, err := r.Reload(context.Background(), same); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if total != 500 {
		t.Errorf("%d admitted over reloads, want exactly 500", total)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	_, err := wire.New(t.Context(), wire.Config{})
	if err == nil {
		t.Error("an empty Config was accepted")
	}
	text := limit(3) + "identify: {cookie: {secrets: env:SECRET}}\nclient: {from: xff, trusted_hops: 1, peers: [10.0.0.0/8], asn: header:X-Asn}\n"
	_, err = wire.New(t.Context(), wire.Config{Policy: parse(t, text), Stores: registry(t), HitLog: hitlog.NewHandler(&bytes.Buffer{}, hitlog.Names{})})
	if err != nil {
		t.Errorf("a cookie and a field of a proven edge: %v", err)
	}
	text = limit(3) + "identify: {jwt: {jwks_file: none.json, issuer: 'https://id.example.org', audience: shop}, api_keys: {file: none.yaml}}\n" +
		"client: {asn: 'file:none.tsv'}\ncrawlers: {file: none.txt}\n"
	_, err = wire.New(t.Context(), wire.Config{Policy: parse(t, text), Stores: registry(t), HitLog: hitlog.NewHandler(&bytes.Buffer{}, hitlog.Names{})})
	for _, path := range []string{"identify.jwt", "identify.api_keys", "client.asn", "crawlers.file"} {
		if err == nil || !strings.Contains(err.Error(), path+": ") {
			t.Errorf("a file of %s that is not there: %v", path, err)
		}
	}
	_, err = wire.New(t.Context(), wire.Config{Policy: parse(t, limit(3)), Stores: registry(t), StoreURL: "mysql://x", HitLog: hitlog.NewHandler(&bytes.Buffer{}, hitlog.Names{})})
	if !errors.Is(err, open.ErrURL) {
		t.Errorf("unknown store: %v", err)
	}
}

// A faulty store is shared, and fails when told to.
type faulty struct {
	core.Store
	err  atomic.Pointer[error]
	hang atomic.Bool
}

func (s *faulty) Features() core.Features {
	return core.Features{Name: "faulty", Shared: true, Clocks: true, RetainsRows: true}
}

func (s *faulty) Apply(ctx context.Context, b *core.Batch) error {
	if s.hang.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := s.err.Load(); err != nil {
		for i := range b.Rows {
			b.Rows[i].Err = *err
		}
		return *err
	}
	return s.Store.Apply(ctx, b)
}

func far(s core.Store, err error) open.Opener {
	return open.Opener{
		Schemes: []string{"far"}, Example: "far://host",
		Validate: func(*url.URL, open.Options) error { return nil },
		Open:     func(context.Context, *url.URL, open.Options) (core.Store, error) { return s, err },
	}
}

// TestStartsWithoutItsStore opens a store whose server is out of reach at first.
func TestStartsWithoutItsStore(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("connection refused: %w", core.ErrNotApplied)
	s := &faulty{Store: memory.New(memory.Config{})}
	s.err.Store(&down)
	r, _ := ready(t, wire.Config{Policy: parse(t, limit(3)), Stores: registry(t, far(s, down)), StoreURL: "far://host"})
	if !errors.Is(r.StoreProblem, down) {
		t.Errorf("StoreProblem is %v", r.StoreProblem)
	}
	if d := visit(r, "198.51.100.1"); d.Outcome != core.Admit || d.Reason != core.ReasonStoreOpen || d.Err == nil {
		t.Errorf("while it is down: %s, %s, %v; want admitted as store-error-open", d.Outcome, d.Reason, d.Err)
	}
	s.err.Store(nil)
	if n := admitted(r, "198.51.100.1", 5); n != 3 {
		t.Errorf("once it is up: %d admitted, want 3", n)
	}
}

// TestDeadlineIsThePolicys: a store that hangs costs a visitor store.timeout, and
// after some failures nothing at all.
func TestDeadlineIsThePolicys(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: memory.New(memory.Config{})}
	s.hang.Store(true)
	var operator lockedBuffer
	r, _ := ready(t, wire.Config{
		Policy: parse(t, limit(3)+"store: {timeout: 20ms}\n"), Stores: registry(t, far(s, nil)), StoreURL: "far://host",
		Logger: slog.New(slog.NewTextHandler(&operator, nil)),
	})
	spared := 0
	for range 12 {
		d := visit(r, "198.51.100.1")
		if d.Outcome != core.Admit || d.Err == nil {
			t.Fatalf("%s, %s, %v; want admitted with the store's error", d.Outcome, d.Reason, d.Err)
		}
		if errors.Is(d.Err, core.ErrNotApplied) {
			spared++
		}
	}
	if r.Store().Guard.State() == "closed" || spared == 0 {
		t.Errorf("the breaker did not open (%d of 12 calls were spared)", spared)
	}
	if !strings.Contains(operator.String(), "does not answer") || !strings.Contains(operator.String(), "store.on_error: open") {
		t.Errorf("the operator was not told:\n%s", operator.String())
	}
}

// TestSpendingLimitIsThePolicys pays for no operation beyond it.
func TestSpendingLimitIsThePolicys(t *testing.T) {
	t.Parallel()
	s := &faulty{Store: memory.New(memory.Config{})}
	var operator lockedBuffer
	r, _ := ready(t, wire.Config{
		Policy: parse(t, limit(1000)+"store: {max_ops_per_day: 5}\n"), Stores: registry(t, far(s, nil)), StoreURL: "far://host",
		Logger: slog.New(slog.NewTextHandler(&operator, nil)),
	})
	for i := range 20 {
		visit(r, fmt.Sprintf("198.51.100.%d", i+1))
	}
	if got := r.Store().Meter.Read(); got.Writes != 5 {
		t.Errorf("%d writes were paid for, want 5", got.Writes)
	}
	if !strings.Contains(operator.String(), "spending limit") {
		t.Errorf("the operator was not told:\n%s", operator.String())
	}
}

// A lockedBuffer is written by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "limited.html")
	if err := os.WriteFile(page, []byte("<!doctype html><p>Slow down, {{retry_after}} s. Ref {{ref}}. {{contact}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, _, err := policy.Parse(filepath.Join(dir, "stile.yaml"), []byte(limit(1)+"answer: {html: limited.html}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := ready(t, wire.Config{Policy: f})
	visit(r, "198.51.100.1")
	d := visit(r, "198.51.100.1")
	a := r.Parts().Answer.Limited(&d, answer.Request{Ref: answer.NewRef(), Now: noon})
	if !bytes.Contains(a.Body, []byte("Slow down, 3600 s.")) {
		t.Errorf("the template beside the policy file was not used:\n%s", a.Body)
	}
}
