// Command hit asks one URL for pages as fast as it can, each from another client
// address (X-Forwarded-For), and prints how long they took. With -origin it is
// instead a site that answers at once, to measure in front of. scripts/bench.sh
// uses both.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	origin := flag.String("origin", "", "be a site on this address of 127.0.0.1 instead")
	ways := flag.Int("ways", 16, "connections")
	each := flag.Duration("time", 2*time.Second, "how long")
	clients := flag.Int("clients", 4096, "different client addresses, up to 65536")
	flag.Parse()
	err := errors.New("want one URL, and -ways and -clients from 1")
	if *origin != "" {
		err = serve(*origin)
	} else if flag.NArg() == 1 && *ways > 0 && *clients > 0 && *clients <= 1<<16 {
		var r result
		if r, err = load(flag.Arg(0), *ways, *clients, *each); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(r)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hit:", err)
		os.Exit(1)
	}
}

// serve answers every request with the same page.
func serve(addr string) error {
	page := []byte("<!doctype html><title>x</title><p>A page of the size that pages have.")
	for len(page) < 8<<10 {
		page = append(page, "<p>It goes on for a while."...)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})}
	return server.Serve(l)
}

// A result is one load.
type result struct {
	Requests  int64   `json:"requests"`
	Failed    int64   `json:"failed"`  // no answer
	Refused   int64   `json:"refused"` // an answer other than 200
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_us"`
	P90       float64 `json:"p90_us"`
	P99       float64 `json:"p99_us"`
}

func load(target string, ways, clients int, d time.Duration) (result, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" {
		return result{}, errors.New("want an address such as http://127.0.0.1:8080/")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return result{}, errors.New("only on this machine: a load on somebody else's server is an attack")
	}
	client := &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{MaxIdleConnsPerHost: ways},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var (
		r             result
		next          atomic.Int64
		failed, other atomic.Int64
		mu            sync.Mutex
		took          []time.Duration
		wg            sync.WaitGroup
	)
	began := time.Now()
	for range ways {
		wg.Go(func() {
			var mine []time.Duration
			for time.Since(began) < d {
				n := next.Add(1) % int64(clients)
				q := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{
					"X-Forwarded-For": {fmt.Sprintf("198.18.%d.%d", n>>8, n&255)},
					"Accept":          {"text/html"},
					"Sec-Fetch-Dest":  {"document"},
					"Sec-Fetch-Mode":  {"navigate"},
				}}
				from := time.Now()
				a, err := client.Do(q)
				if err != nil {
					failed.Add(1)
					continue
				}
				_, err = io.Copy(io.Discard, a.Body)
				a.Body.Close()
				if err != nil {
					failed.Add(1)
					continue
				}
				if a.StatusCode != http.StatusOK {
					other.Add(1)
				}
				mine = append(mine, time.Since(from))
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(took) == 0 {
		return r, fmt.Errorf("no answer, %d failures", failed.Load())
	}
	slices.Sort(took)
	us := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	return result{
		Requests: int64(len(took)), Failed: failed.Load(), Refused: other.Load(),
		PerSecond: float64(int64(float64(len(took)) / time.Since(began).Seconds())),
		P50:       us(0.5), P90: us(0.9), P99: us(0.99),
	}, nil
}
