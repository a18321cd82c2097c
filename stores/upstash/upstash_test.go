package upstash_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
	"github.com/stilehq/stile/stores/upstash"
	"github.com/stilehq/stile/stores/upstash/upstashtest"
)

// patient is the bound of calls without a deadline: many cases run at once, and
// a loaded machine under the race detector may be slow.
const patient = 20 * time.Second

var namer = rows.Namer{Site: "test"}

func start(tb testing.TB) (*redistest.Server, *upstashtest.Front) {
	server := redistest.Start(tb)
	client := goredis.NewClient(&goredis.Options{Addr: server.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 64})
	tb.Cleanup(func() { _ = client.Close() })
	return server, upstashtest.Start(tb, client)
}

func open(tb testing.TB, f *upstashtest.Front, addr string) *upstash.Store {
	tb.Helper()
	s, err := upstash.Open(context.Background(), upstash.Config{URL: "http://" + addr, Token: f.Token, Namer: namer, Timeout: patient})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func harness(server *redistest.Server, f *upstashtest.Front) storetest.Harness {
	return storetest.Harness{
		Open:    func(tb testing.TB) core.Store { return open(tb, f, f.Addr) },
		Backend: f.Addr,
		Through: func(tb testing.TB, addr string) core.Store { return open(tb, f, addr) },
		// A record of zeros, left by a refund of a vanished one, counts as
		// absent: see package bitfield.
		Exists: func(_ core.Store, r *core.Row) (bool, error) {
			v, err := server.Client().Do(context.Background(), "BITFIELD_RO", namer.Name(r), "GET", "u63", "#0").Int64Slice()
			return err == nil && v[0] != 0, err
		},
		Expiry: func(_ core.Store, r *core.Row) (time.Time, bool) {
			d, err := server.Client().ExpireTime(context.Background(), namer.Name(r)).Result()
			return time.Unix(int64(d/time.Second), 0), err == nil && d > 0
		},
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, harness(start(t)))
}

// began is the time of every row: a row that lived a second longer than it was
// told before would rightly have its expiry set again.
var began = time.Now().Unix()

func row(id string, cells ...core.Cell) core.Row {
	day := began / 86400
	return core.Row{Key: core.Key{Kind: rows.User, ID: id}, Plan: 7, Epoch: day, Start: day * 86400,
		Until: began + 7200, Cells: cells}
}

func hit() []core.Cell {
	return []core.Cell{{Slot: 10, Add: 1}, {Slot: 9}, {Slot: 24, Add: 1}}
}

func apply(s *upstash.Store, list ...core.Row) error {
	return s.Apply(context.Background(), &core.Batch{Now: time.Now(), Rows: list})
}

// TestBill asserts what is billed, counted at the server, and the HTTP requests.
func TestBill(t *testing.T) {
	t.Parallel()
	server, f := start(t)
	s := open(t, f, f.Addr)
	for _, step := range []struct {
		name           string
		row            core.Row
		settle         bool
		write, ro, exp int64
		requests       int64
	}{
		{"first hit", row("bill", hit()...), true, 1, 0, 1, 2},
		{"steady", row("bill", hit()...), true, 1, 0, 0, 1},
		{"refund", row("bill", core.Cell{Slot: 10, Add: -1}, core.Cell{Slot: 24, Add: -1}), true, 1, 0, 0, 1},
		{"read", row("bill", core.Cell{Slot: 10}), true, 0, 1, 0, 1},
		{"first hit of another, not settled", row("bill2", hit()...), false, 1, 0, 0, 1},
		{"the expiry rides with the next hit", row("bill", hit()...), false, 1, 0, 1, 1},
	} {
		server.ResetCalls()
		requests, trips, commands := f.Requests(), s.Trips(), s.Commands()
		if err := apply(s, step.row); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.settle {
			if err := s.Settle(context.Background()); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		}
		calls := server.Calls()
		if calls["bitfield"] != step.write || calls["bitfield_ro"] != step.ro || calls["expireat"] != step.exp {
			t.Errorf("%s: commands %v, want %d BITFIELD, %d BITFIELD_RO, %d EXPIREAT", step.name, calls, step.write, step.ro, step.exp)
		}
		if got := f.Requests() - requests; got != step.requests || s.Trips()-trips != got {
			t.Errorf("%s: %d requests, %d trips, want %d", step.name, got, s.Trips()-trips, step.requests)
		}
		if got, want := s.Commands()-commands, step.write+step.ro+step.exp; got != want {
			t.Errorf("%s: Commands grew by %d, want %d", step.name, got, want)
		}
	}
}

// TestAnswers: what each answer of the service means for the row.
func TestAnswers(t *testing.T) {
	t.Parallel()
	_, f := start(t)
	s := open(t, f, f.Addr)
	for _, c := range []struct {
		status int
		body   string
		is     error
		proven bool
	}{
		{401, `{"error":"Unauthorized"}`, upstash.ErrAuth, true},
		{403, ``, upstash.ErrAuth, true},
		{400, `{"error":"WRONGPASS invalid or missing auth token"}`, upstash.ErrAuth, true},
		{400, `{"error":"NOPERM this user has no permissions"}`, upstash.ErrReadOnly, true},
		{400, `{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500000."}`, upstash.ErrQuota, true},
		{400, `{"error":"ERR something new"}`, upstash.ErrUnknown, false},
		{400, `no json`, upstash.ErrUnknown, false},
		{404, `<html>`, upstash.ErrEndpoint, true},
		{307, ``, upstash.ErrEndpoint, true},
		{429, ``, upstash.ErrThrottled, true},
		{500, `{"error":"ERR internal"}`, upstash.ErrUnknown, false},
		{502, `<html>`, upstash.ErrUnknown, false},
		{200, `{"result":[1,2,3]}`, upstash.ErrUnknown, false},       // too few numbers
		{200, `{"result":[0,1,-1,1]}`, upstash.ErrUnknown, false},    // a negative count
		{200, `{"result":"AQ=="}`, upstash.ErrUnknown, false},        // not a list
		{200, `{"error":"OOM full"}`, core.ErrNotApplied, true},      // an error inside a 200
		{200, `{"result":[0,1,0,1]`, upstash.ErrUnknown, false},      // cut off
		{200, strings.Repeat(" ", 3<<20), upstash.ErrUnknown, false}, // too long
		{200, ``, upstash.ErrUnknown, false},
	} {
		f.Answer(c.status, c.body)
		before := f.Requests()
		err := apply(s, row("answers", hit()...))
		body := c.body[:min(len(c.body), 60)]
		if !errors.Is(err, c.is) || errors.Is(err, core.ErrNotApplied) != c.proven {
			t.Errorf("%d %s: got %v, want %v (proves that nothing ran: %v)", c.status, body, err, c.is, c.proven)
		}
		if err != nil && strings.Contains(err.Error(), f.Token) {
			t.Errorf("%d: the error shows the token: %v", c.status, err)
		}
		if n := f.Requests() - before; n != 1 {
			t.Errorf("%d %s: %d requests, want 1: it was sent again", c.status, body, n)
		}
	}
	f.Answer(0, "")
	if err := apply(s, row("answers", hit()...)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestItemErrors: one failed command of a pipeline leaves the others' outcomes.
func TestItemErrors(t *testing.T) {
	t.Parallel()
	server, f := start(t)
	s := open(t, f, f.Addr)
	bad := row("list", hit()...)
	server.Do("LPUSH", namer.Name(&bad), "x")
	b := &core.Batch{Now: time.Now(), Rows: []core.Row{row("ok1", hit()...), bad, row("ok2", hit()...)}}
	err := s.Apply(context.Background(), b)
	if !errors.Is(err, core.ErrNotApplied) || !errors.Is(b.Rows[1].Err, core.ErrNotApplied) {
		t.Errorf("got %v and %v, want proof that the middle row is unchanged", err, b.Rows[1].Err)
	}
	for _, i := range []int{0, 2} {
		if r := b.Rows[i]; r.Err != nil || r.Cells[0].Value != 1 || r.Cells[2].Value != 1 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// TestNoServer: a refused dial proves that nothing was applied.
func TestNoServer(t *testing.T) {
	t.Parallel()
	s, err := upstash.Open(context.Background(), upstash.Config{URL: "http://127.0.0.1:1", Token: "secret-token"})
	if s == nil || !errors.Is(err, core.ErrNotApplied) {
		t.Fatalf("Open: store %v, error %v: want a store and the reason", s, err)
	}
	defer s.Close()
	if err := apply(s, row("x", hit()...)); !errors.Is(err, core.ErrNotApplied) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	_, f := start(t)
	s, err := upstash.Open(context.Background(), upstash.Config{URL: f.URL, Token: "wrong"})
	if s == nil || !errors.Is(err, upstash.ErrAuth) {
		t.Errorf("wrong token: %v", err)
	}
	s = open(t, f, f.Addr)
	f.Answer(200, `[{"result":["1000000000","0"]},{"result":[0]}]`)
	if err := s.Probe(context.Background()); !upstash.IsWarning(err) {
		t.Errorf("clock of 2001: %v", err)
	}
	f.Answer(200, `[{"result":["1000000000","0"]},{"error":"NOPERM this user has no permissions to run the 'bitfield' command"}]`)
	if err := s.Probe(context.Background()); !errors.Is(err, upstash.ErrReadOnly) || upstash.IsWarning(err) {
		t.Errorf("read-only token: %v", err)
	}
}

func TestFromURL(t *testing.T) {
	t.Parallel()
	env := map[string]string{upstash.EnvURL: "https://env.upstash.io", upstash.EnvToken: "tok"}
	for in, want := range map[string]string{
		"upstash://a.upstash.io":                      "https://a.upstash.io",
		"upstash://":                                  "https://env.upstash.io",
		"https://b.upstash.io/":                       "https://b.upstash.io/",
		"https://b.upstash.io?timeout=2s":             "https://b.upstash.io",
		"http://127.0.0.1:8079":                       "http://127.0.0.1:8079",
		"upstash://:sesame@[2001:db8::1]:443":         "https://[2001:db8::1]:443",
		"http://example.com":                          "",
		"ftp://a.upstash.io":                          "",
		"https://a.upstash.io/db":                     "",
		"https://a.upstash.io?nonsense=1&timeout=now": "",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		c, err := upstash.FromURL(u, func(k string) string { return env[k] })
		if (err == nil) != (want != "") || c.URL != want {
			t.Errorf("%s: got %q, %v; want %q", in, c.URL, err, want)
		}
	}
	u, _ := url.Parse("http://:sesame%20x@example.com?nonsense=1")
	_, err := upstash.FromURL(u, nil)
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("the token is shown or nothing is wrong: %v", err)
	}
	for _, part := range []string{"plain http", "token", "nonsense"} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%v: does not tell of %s", err, part)
		}
	}
}
