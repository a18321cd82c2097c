package soak_test

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

var (
	clients   = flag.Int("clients", 20_000, "how many distinct clients TestDistinctClients sends, up to 16,000,000")
	maxKeys   = flag.Int("max-keys", 8192, "the bound of the memory store that they meet")
	overRedis = flag.Bool("clients-redis", false, "count them in a redis-server instead, which keeps all")
	atMost    = flag.Duration("clients-for", 2*time.Hour, "end after this time with the clients that were sent until then")
	noSockets = flag.Bool("clients-in-process", false, "ask the handler of a forward-auth Stile in this process instead: no sockets, no site")
)

const (
	pages     = 20 // a client's day
	busyOnes  = 16
	batch     = 32 // requests in flight on one connection: one of a busy client, the others of new ones
	loadLines = 8
)

// distinctPolicy waits long for the store: what fails open is not counted, and
// here counting is what is looked at.
var distinctPolicy = fmt.Sprintf(`
version: 1
site: distinct
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [127.0.0.1/32]}
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: 1000000, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 24h}
store: {timeout: 5s}
`, pages)

// TestDistinctClients sends a page of each of many clients through "stile serve"
// while a few busy ones come again and again. Everybody gets the first page, the
// busy get exactly their limit however many newcomers pushed into the full table
// between, and the process does not grow.
//
//	go test ./e2e/soak -run Distinct -v -timeout 0 -args -clients 10000000 -max-keys 1048576
func TestDistinctClients(t *testing.T) {
	bin, ok := stand.Find("redis-server")
	store := fmt.Sprintf("memory://?max_keys=%d", *maxKeys)
	var redis *stand.Redis
	if *overRedis {
		require.Server(t, "redis", ok, "apt-get install redis-server")
		redis = stand.StartRedis(t, bin)
		store = redis.URL
	}
	origin := stand.NewOrigin(t)
	origin.Forget()
	// The hit log goes to a file of the system's: read here, its lines would cost
	// this process more than the clients do.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var send func(next *atomic.Int64, tell func(client, status int)) error
	end := time.Now().Add(*atMost)
	pid := os.Getpid()
	if *noSockets {
		s := stand.Start(t, distinctPolicy, stand.Options{Store: store, HitLog: null})
		send = func(next *atomic.Int64, tell func(client, status int)) error {
			return call(s.Handler(), next, end, tell)
		}
	} else {
		s := stand.Launch(t, stand.Build(t), distinctPolicy, origin.URL, null, "--store", store)
		send = func(next *atomic.Int64, tell func(client, status int)) error { return pipeline(s.URL, next, end, tell) }
		pid = s.PID()
	}
	base := int64(0)
	if redis != nil {
		base = redis.Info("used_memory")
	}

	var next, sent, other atomic.Int64
	var got, refused [busyOnes]atomic.Int64
	began, day := time.Now(), time.Now().UTC().YearDay()
	var load sync.WaitGroup
	failed := make(chan error, loadLines)
	for range loadLines {
		load.Go(func() {
			failed <- send(&next, func(client, status int) {
				sent.Add(1)
				switch {
				case client < 0 && status == http.StatusOK:
					got[-client-1].Add(1)
				case client < 0 && status == http.StatusTooManyRequests:
					refused[-client-1].Add(1)
				case client < 0 || status != http.StatusOK:
					other.Add(1)
				}
			})
		})
	}
	done := make(chan struct{})
	go func() { load.Wait(); close(done) }()
	samples := watch(t, pid, &next, done)
	for range loadLines {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}

	took := time.Since(began)
	distinct := min(int(next.Load()), *clients)
	t.Logf("%d requests of %d clients and %d busy ones in %v (%.0f/s)", sent.Load(), distinct, busyOnes, took.Round(time.Second), float64(sent.Load())/took.Seconds())
	if other.Load() != 0 {
		t.Errorf("%d answers were not the page that a new client gets", other.Load())
	}
	if time.Now().UTC().YearDay() == day { // at midnight the busy get another day's pages
		for i := range busyOnes {
			if g, r := got[i].Load(), refused[i].Load(); g != pages || r == 0 {
				t.Errorf("busy client %d got %d pages and %d refusals, want exactly %d and then refusals", i, g, r, pages)
			}
		}
	}
	steady(t, samples)
	if redis != nil {
		keys, _ := strconv.Atoi(redis.Ask("DBSIZE"))
		used := redis.Info("used_memory") - base
		t.Logf("redis: %d keys, %d MiB, %.0f bytes a key; resident %d MiB", keys, used>>20, float64(used)/float64(keys), redis.Info("used_memory_rss")>>20)
		if keys != distinct+busyOnes {
			t.Errorf("%d keys for %d clients", keys, distinct+busyOnes)
		}
	}
}

// draw takes the next batch: one request of a busy client, and one of each new
// client from first to before last.
func draw(next *atomic.Int64, end time.Time) (first, last, busy int) {
	if time.Now().After(end) {
		return 0, 0, 0
	}
	first = int(next.Add(batch-1)) - (batch - 1)
	return first, min(first+batch-1, *clients), first / (batch - 1) % busyOnes
}

// address is the one that request i of a batch comes from; the busy client's
// comes before the first.
func address(i, first, busy int) string {
	if i < first {
		return fmt.Sprintf("192.0.2.%d", busy+1)
	}
	return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
}

// status is an answer of which only the status is looked at.
type status struct {
	header http.Header
	code   int
}

func (s *status) Header() http.Header         { return s.header }
func (s *status) Write(p []byte) (int, error) { return len(p), nil }
func (s *status) WriteHeader(code int)        { s.code = cmp.Or(s.code, code) }

// call is pipeline without a connection.
func call(h http.Handler, next *atomic.Int64, end time.Time, tell func(client, status int)) error {
	fields := func(from string) http.Header {
		return http.Header{
			"Sec-Fetch-Dest": {"document"}, "Sec-Fetch-Mode": {"navigate"}, "Accept": {"text/html"},
			"X-Forwarded-For": {from}, "X-Forwarded-Method": {"GET"}, "X-Forwarded-Uri": {"/article/1"},
		}
	}
	for {
		first, last, busy := draw(next, end)
		if first >= last {
			return nil
		}
		for i := first - 1; i < last; i++ {
			r := &http.Request{
				Method: "GET", URL: &url.URL{Path: "/check"}, RequestURI: "/check", Host: "site.test", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				RemoteAddr: "127.0.0.1:50000", Body: http.NoBody, Header: fields(address(i, first, busy)),
			}
			w := &status{header: http.Header{}}
			h.ServeHTTP(w, r)
			code := cmp.Or(w.code, http.StatusOK)
			if i < first {
				tell(-busy-1, code)
			} else {
				tell(i, code)
			}
		}
	}
}

// pipeline sends batches on one connection until all clients have been sent, and
// tells each answer: of client n, or of busy client -n-1.
func pipeline(base string, next *atomic.Int64, end time.Time, tell func(client, status int)) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 64<<10)
	var out []byte
	ask := func(from string) {
		out = append(out, "GET /article/1 HTTP/1.1\r\nHost: site.test\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nAccept: text/html\r\nX-Forwarded-For: "...)
		out = append(append(out, from...), "\r\n\r\n"...)
	}
	for {
		first, last, busy := draw(next, end)
		if first >= last {
			return nil
		}
		out = out[:0]
		for i := first - 1; i < last; i++ {
			ask(address(i, first, busy))
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Write(out); err != nil {
			return err
		}
		for i := first - 1; i < last; i++ {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return fmt.Errorf("client %d: %w", i, err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if i < first {
				tell(-busy-1, res.StatusCode)
			} else {
				tell(i, res.StatusCode)
			}
		}
	}
}

// resides is what another process holds after so many clients.
type resides struct {
	clients     int64
	resident    float64 // bytes
	descriptors float64
}

// watch samples the process at each two-hundredth of the clients, and says how
// far it is at each tenth.
func watch(t *testing.T, pid int, next *atomic.Int64, done <-chan struct{}) (out []resides) {
	step := max(int64(*clients/200), 1)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for due := step; ; {
		select {
		case <-done:
			return out
		case <-tick.C:
		}
		if n := next.Load(); n >= due {
			s := resides{clients: n}
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
				if f := strings.Fields(string(text)); len(f) > 1 {
					s.resident, _ = strconv.ParseFloat(f[1], 64)
					s.resident *= float64(os.Getpagesize())
				}
			}
			if list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
				s.descriptors = float64(len(list))
			}
			if out = append(out, s); len(out)%20 == 0 {
				t.Logf("%d clients, %.1f MiB", n, s.resident/(1<<20))
			}
			due = n + step
		}
	}
}

// steady holds that the process is as large at the end as when its table was
// full: the second quarter of the run against the last.
func steady(t *testing.T, samples []resides) {
	t.Helper()
	if n := len(samples); n == 0 || samples[n-1].resident == 0 {
		t.Log("this system does not tell what a process holds")
		return
	}
	n := len(samples) / 4
	if n == 0 {
		t.Fatalf("%d samples are too few", len(samples))
	}
	mean := func(list []resides, of func(resides) float64) (m, most float64) {
		for _, s := range list {
			m += of(s) / float64(len(list))
			most = math.Max(most, of(s))
		}
		return m, most
	}
	for _, g := range []struct {
		name        string
		of          func(resides) float64
		unit, slack float64
	}{
		{"resident, MiB", func(s resides) float64 { return s.resident }, 1 << 20, 24 << 20},
		{"descriptors", func(s resides) float64 { return s.descriptors }, 1, 30},
	} {
		early, _ := mean(samples[n:2*n], g.of)
		late, most := mean(samples[len(samples)-n:], g.of)
		t.Logf("%-14s after a quarter to a half of them %6.1f, at the end %6.1f (most %.1f)", g.name, early/g.unit, late/g.unit, most/g.unit)
		if late > early*1.1+g.slack {
			t.Errorf("%s grew from %.1f to %.1f", g.name, early/g.unit, late/g.unit)
		}
	}
}
