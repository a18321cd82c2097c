// Package soak_test runs a Stile over Redis under mixed load while the store is
// killed and started again, and holds that nothing it has grows.
//
//	go test ./e2e/soak -v -timeout 0 -args -soak 30m      (scripts/soak.sh)
package soak_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

var length = flag.Duration("soak", 6*time.Second, "how long the load lasts")

const soakPolicy = `
version: 1
site: soak
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [127.0.0.1/32]}
buckets:
  - {name: minute, key: address, algorithm: sliding-window-counter, limit: 60, window: 1m}
  - {name: day, key: address, algorithm: fixed-window, limit: 100000, window: 24h}
  - {name: network-day, key: network, algorithm: fixed-window, limit: 10000000, window: 24h, flush_every: 1m}
store: {timeout: 150ms, on_error: open}
`

// tally counts answers by kind of request and status, and how long they took.
type tally struct {
	mu       sync.Mutex
	statuses map[string]int
	times    []time.Duration // of navigations, a sample of them
	sent     atomic.Int64
}

func (c *tally) add(kind string, status int, took time.Duration) {
	n := c.sent.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[fmt.Sprintf("%s %d", kind, status)]++
	if kind == "page" && (n%8 == 0) && len(c.times) < 1<<20 {
		c.times = append(c.times, took)
	}
}

// kinds are what the load is mixed of, as often as they are listed.
var kinds = []struct {
	name, method, path string
	fields             []string
}{
	{"page", "GET", "/article/1", stand.Page},
	{"page", "GET", "/article/2?x=1", stand.Page},
	{"page", "GET", "/article/3", nil},
	{"asset", "GET", "/style.css", []string{"Sec-Fetch-Dest: style"}},
	{"asset", "GET", "/pixel.png", []string{"Sec-Fetch-Dest: image"}},
	{"prefetch", "GET", "/article/4", []string{"Sec-Fetch-Dest: document", "Sec-Purpose: prefetch"}},
	{"claim", "GET", "/article/5", []string{"Sec-Fetch-Dest: empty", "RSC: 1"}},
	{"liar", "GET", "/article/6", []string{"Sec-Fetch-Dest: image"}},
	{"redirect", "GET", "/redirect/1", stand.Page},
	{"form", "POST", "/comment", []string{"Content-Type: text/plain"}},
	{"json", "GET", "/article/7", []string{"Accept: application/json"}},
}

// client draws one: mostly of a few thousand, some busy, some of a crowd that is
// seldom seen twice. All have been seen once the first quarter of a long run is
// over, so that what grows afterwards is no table that fills.
func client(r *rand.Rand) string {
	switch n := r.IntN(100); {
	case n < 30:
		return fmt.Sprintf("203.0.113.%d", r.IntN(5)+1)
	case n < 60:
		return fmt.Sprintf("198.51.%d.%d", r.IntN(20), r.IntN(100)+1)
	case n < 95:
		return fmt.Sprintf("2001:db8:%x:%x::1", r.IntN(40), r.IntN(50))
	}
	return fmt.Sprintf("2001:db9:%x:%x::1", r.IntN(100), r.IntN(200))
}

func TestSoak(t *testing.T) {
	bin, ok := stand.Find("redis-server")
	require.Server(t, "redis", ok, "apt-get install redis-server")
	addr := stand.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	dir := t.TempDir()
	redis := func() *stand.Process {
		cmd := exec.Command(bin, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir, "--maxmemory", "256mb", "--maxmemory-policy", "volatile-ttl")
		cmd.Stdout = io.Discard
		p := stand.Run(t, cmd)
		p.WaitListen(addr, 10*time.Second)
		return p
	}
	store := redis()
	origin := stand.NewOrigin(t)
	origin.Forget()
	// What was said of the site; what is said of the store is expected here.
	faults := &about{word: "the origin"}
	defer func() {
		if t.Failed() {
			t.Logf("of the origin was said:\n%s", faults.lines)
		}
	}()
	s := stand.Start(t, soakPolicy, stand.Options{Origin: origin.URL, Store: "redis://" + addr, HitLog: io.Discard, Logger: slog.New(slog.NewTextHandler(faults, nil))})

	before := take(time.Now())
	ctx, stop := context.WithTimeout(t.Context(), *length)
	defer stop()
	load := &tally{statuses: map[string]int{}}
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	var workers sync.WaitGroup
	for i := range 12 {
		workers.Go(func() { work(ctx, s.URL, transport, load, rand.New(rand.NewPCG(uint64(i), 7))) })
	}
	for range 4 {
		workers.Go(func() { leave(ctx, s.Addr) })
	}

	// The store is killed for a fifth of each period, and comes back empty.
	period := outages(*length)
	kills := 0
	var samples []sample
	began := time.Now()
	tick := time.NewTicker(max(*length/120, 100*time.Millisecond))
	defer tick.Stop()
	// The hand on the switch looks often: samples, which are rarer than outages in
	// a long run, could miss each of them.
	hand := time.NewTicker(period / 30)
	defer hand.Stop()
	up := true
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			samples = append(samples, take(began))
		case <-hand.C:
			down := time.Since(began)%period > period*4/5
			if down && up {
				store.Kill()
				kills++
			} else if !down && !up {
				store = redis()
			}
			up = !down
		}
	}
	workers.Wait()
	transport.CloseIdleConnections()

	load.report(t, *length, kills)
	if len(samples) >= 40 {
		flat(t, samples)
	}
	settled(t, before)
}

// about keeps the lines of a log that hold a word, up to some kilobytes.
type about struct {
	word  string
	mu    sync.Mutex
	lines []byte
}

func (a *about) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if bytes.Contains(p, []byte(a.word)) && len(a.lines) < 8<<10 {
		a.lines = append(a.lines, p...)
	}
	return len(p), nil
}

// outages is how often the store is killed in a run of a length.
func outages(d time.Duration) time.Duration {
	return max(3*time.Second, min(d/8, time.Minute))
}

// work sends one request after the other.
func work(ctx context.Context, base string, tr *http.Transport, load *tally, r *rand.Rand) {
	c := &http.Client{Transport: tr, Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for ctx.Err() == nil {
		k := kinds[r.IntN(len(kinds))]
		var body io.Reader
		if k.method == "POST" {
			body = strings.NewReader(strings.Repeat("x", r.IntN(20_000)))
		}
		req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), k.method, base+k.path, body)
		if err != nil {
			load.add(k.name, -1, 0)
			return
		}
		for _, f := range k.fields {
			name, value, _ := strings.Cut(f, ": ")
			req.Header.Set(name, value)
		}
		req.Header.Set("X-Forwarded-For", client(r))
		began := time.Now()
		res, err := c.Do(req)
		if err != nil {
			load.add(k.name, 0, time.Since(began))
			continue
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		load.add(k.name, res.StatusCode, time.Since(began))
		time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
	}
}

// leave opens connections and goes away in the midst of things: in the head, in
// a body, before the answer.
func leave(ctx context.Context, addr string) {
	for i := 0; ctx.Err() == nil; i++ {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		switch i % 4 {
		case 0:
			_, _ = io.WriteString(c, "GET /article/9 HTTP/1.1\r\nHost: a\r\nX-For")
		case 1:
			_, _ = io.WriteString(c, "POST /comment HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc")
		case 2:
			_, _ = io.WriteString(c, "GET /article/9 HTTP/1.1\r\nHost: a\r\n\r\n")
		case 3:
			_, _ = io.WriteString(c, "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\nhello")
		}
		time.Sleep(20 * time.Millisecond)
		c.Close()
	}
}

// report holds that nobody met an error, and prints the figures.
func (c *tally) report(t *testing.T, d time.Duration, kills int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.times)
	if want := int(d / outages(d)); len(c.times) == 0 || kills < max(want-1, 1) {
		t.Fatalf("%d navigations were timed and the store was killed %d times of %d", len(c.times), kills, want)
	}
	at := func(p float64) time.Duration {
		return c.times[min(len(c.times)-1, int(p*float64(len(c.times))))].Round(10 * time.Microsecond)
	}
	t.Logf("%d requests in %v (%.0f/s), the store killed %d times; navigations p50 %v p99 %v longest %v",
		c.sent.Load(), d, float64(c.sent.Load())/d.Seconds(), kills, at(0.5), at(0.99), c.times[len(c.times)-1].Round(time.Millisecond))
	for key, n := range c.statuses {
		switch _, status, _ := strings.Cut(key, " "); status {
		case "200", "302", "429":
		default:
			t.Errorf("%d answers of %q", n, key)
		}
	}
	// A short run on a slow machine (the race detector) brings nobody to a limit.
	if c.sent.Load() > 5000 && c.statuses["page 429"] == 0 || c.statuses["page 200"] == 0 || c.statuses["asset 429"] > 0 || c.statuses["form 429"] > 0 {
		t.Errorf("not the mix that was meant: %v", c.statuses)
	}
	t.Logf("%v", c.statuses)
}

// settled waits until what the load opened is closed again.
func settled(t *testing.T, before sample) {
	t.Helper()
	var now sample
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		now = take(time.Now())
		// Connections to the origin stay open for a while, two goroutines each; what
		// grows for ever is what early and late are compared for.
		if now.goroutines <= before.goroutines+100 && now.descriptors <= before.descriptors+100 {
			t.Logf("before the load %d goroutines and %d descriptors, after it %d and %d", before.goroutines, before.descriptors, now.goroutines, now.descriptors)
			return
		}
	}
	t.Errorf("before the load %d goroutines and %d descriptors, long after it %d and %d", before.goroutines, before.descriptors, now.goroutines, now.descriptors)
}
