package crawlers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const goodList = `{"creationTime":"2026-06-01T00:00:00.000000","prefixes":[{"ipv4Prefix":"66.249.64.0/19"}]}`

func TestRefreshKeepsTheLastGoodList(t *testing.T) {
	t.Parallel()
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, goodList)
	}
	huge := func(announce bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if announce {
				w.Header().Set("Content-Length", "209715200")
			}
			chunk := bytes.Repeat([]byte("66.249.64.0/27\n"), 4096)
			for range 209715200/len(chunk) + 1 { // 200 MB, unless the reader hangs up
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	elsewhere := newListServer(t, body(goodList))
	for name, bad := range map[string]http.HandlerFunc{
		"empty body":            body(""),
		"empty list":            body(`{"prefixes":[]}`),
		"HTML":                  body("<!doctype html><title>moved</title>"),
		"HTML by its type":      html,
		"200 MB":                huge(false),
		"200 MB announced":      huge(true),
		"everything":            body(`{"prefixes":[{"ipv4Prefix":"0.0.0.0/0"}]}`),
		"older than held":       body(strings.Replace(goodList, "2026-06-01", "2026-05-31", 1)),
		"from the future":       body(strings.Replace(goodList, "2026-06-01", "2027-06-01", 1)),
		"server error":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"not found":             func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"no content":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"not modified, unasked": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) },
		"redirect to another host": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/list.json", http.StatusFound)
		},
		"redirect to http": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusFound)
		},
		"redirect for ever": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
		"connection cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			_, _ = io.WriteString(w, goodList[:20])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newListServer(t, body(goodList))
			k, logs := newClock(day), &logBuffer{}
			v := newVerifier(t, Config{Catalogue: oneList(s.URL + "/list.json"), NoShipped: true, Transport: s.Client().Transport, Now: k.now, Logger: logs.logger()})
			if verified(v, "66.249.66.1", uaChrome, k.now()) != NoProof {
				t.Fatal("verified before any list was had")
			}
			if err := v.Refresh(context.Background(), 0); err != nil {
				t.Fatal(err)
			}
			if verified(v, "66.249.66.1", uaChrome, k.now()) != ByRange {
				t.Fatal("not verified by the fetched list")
			}
			s.serve(bad)
			k.advance(27 * time.Hour)
			if err := v.Refresh(context.Background(), 0); err == nil {
				t.Error("no error")
			}
			if verified(v, "66.249.66.1", uaChrome, k.now()) != ByRange {
				t.Error("the last good list was dropped")
			}
			if verified(v, "45.55.1.2", uaChrome, k.now()) != NoProof {
				t.Error("the bad list came into force")
			}
			st := v.List()[0]
			if st.Failures != 1 || st.Error == "" || st.Prefixes != 1 || st.Age < 26*time.Hour {
				t.Errorf("status %+v", st)
			}
			if !strings.Contains(logs.String(), "not refreshed") {
				t.Errorf("not logged: %s", logs)
			}
			if n := s.requests.Load(); v.Due() || n > 6 {
				t.Errorf("due at once again, or %d requests", n)
			}
		})
	}
	if n := elsewhere.requests.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

func TestRedirectWithinTheHost(t *testing.T) {
	t.Parallel()
	s := newListServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/list.json" {
			http.Redirect(w, r, "/moved.json", http.StatusMovedPermanently)
			return
		}
		body(goodList)(w, r)
	})
	v := newVerifier(t, Config{Catalogue: oneList(s.URL + "/list.json"), NoShipped: true, Transport: s.Client().Transport, Logger: (&logBuffer{}).logger()})
	if err := v.Refresh(context.Background(), 0); err != nil || v.List()[0].Prefixes != 1 {
		t.Errorf("%v, %+v", err, v.List()[0])
	}
}

func TestDefaultTransportStaysOutside(t *testing.T) {
	t.Parallel()
	s := newListServer(t, body(goodList))
	v := newVerifier(t, Config{Catalogue: oneList(s.URL), NoShipped: true, Logger: (&logBuffer{}).logger()})
	if err := v.Refresh(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "public") || s.requests.Load() != 0 {
		t.Errorf("loopback was asked: %v", err)
	}
}

func TestConditionalFetch(t *testing.T) {
	t.Parallel()
	for _, validator := range []string{"ETag", "Last-Modified"} {
		full, same := 0, 0
		value := map[string]string{"ETag": `"v1"`, "Last-Modified": "Mon, 01 Jun 2026 00:00:00 GMT"}[validator]
		ask := map[string]string{"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[validator]
		s := newListServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(ask) == value {
				same++
				w.WriteHeader(http.StatusNotModified)
				return
			}
			full++
			w.Header().Set(validator, value)
			body(goodList)(w, r)
		})
		k := newClock(day)
		v := newVerifier(t, Config{Catalogue: oneList(s.URL), NoShipped: true, Transport: s.Client().Transport, Now: k.now, Logger: (&logBuffer{}).logger()})
		for range 4 {
			if err := v.Refresh(context.Background(), 0); err != nil {
				t.Fatal(err)
			}
			if v.List()[0].Age != 0 {
				t.Errorf("%s: age %v right after the source confirmed it", validator, v.List()[0].Age)
			}
			k.advance(27 * time.Hour)
		}
		if full != 1 || same != 3 {
			t.Errorf("%s: %d full answers and %d not modified, want 1 and 3", validator, full, same)
		}
	}
}

func TestStaleListsAreWarnedOf(t *testing.T) {
	t.Parallel()
	s := newListServer(t, body(goodList))
	k, logs := newClock(day), &logBuffer{}
	v := newVerifier(t, Config{Catalogue: oneList(s.URL), NoShipped: true, Transport: s.Client().Transport, Now: k.now, Logger: logs.logger(), MaxAge: 48 * time.Hour})
	if !v.List()[0].Stale {
		t.Error("a list that holds nothing is not called stale")
	}
	if err := v.Refresh(context.Background(), 0); err != nil || v.List()[0].Stale {
		t.Fatal(err, v.List()[0].Stale)
	}
	s.serve(body(""))
	for range 8 {
		k.advance(8 * time.Hour)
		_ = v.Refresh(context.Background(), 0)
	}
	if n := strings.Count(logs.String(), "ranges are old"); n != 1 {
		t.Errorf("warned %d times within a day of being stale, want once", n)
	}
	if oldest, empty := v.Age(); oldest != 64*time.Hour || empty != 0 || !v.List()[0].Stale {
		t.Errorf("age %v, %d empty, stale %v", oldest, empty, v.List()[0].Stale)
	}
	k.advance(24 * time.Hour)
	_ = v.Refresh(context.Background(), 0)
	if n := strings.Count(logs.String(), "ranges are old"); n != 2 {
		t.Errorf("warned %d times, want once a day", n)
	}
}

// TestHangingSourcesSlowNoRequest: sources that never answer cost the one
// request that carries the refresh its budget, others nothing, and the next
// minute's nothing either.
func TestHangingSourcesSlowNoRequest(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newListServer(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	stub := newDNS(t)
	stub.hang.Store(true)
	k := newClock(day)
	v := newVerifier(t, Config{Catalogue: oneList(s.URL), NoShipped: true, Transport: s.Client().Transport, Resolver: stub.resolver(),
		Now: k.now, Logger: (&logBuffer{}).logger(),
		Snapshots: []Snapshot{held(map[string][]string{"google": {"66.249.64.0/19"}})}})
	k.advance(48 * time.Hour)
	hit := func() {
		if verified(v, "66.249.66.1", uaGooglebot, k.now()) != ByRange || verified(v, "45.55.1.2", uaGooglebot, k.now()) != NoProof {
			t.Error("a table that is being refreshed answers differently")
		}
	}
	hit()
	done := make(chan struct{})
	go func() { defer close(done); _ = v.Refresh(context.Background(), time.Second) }()
	for busy := true; busy; { // requests meanwhile: the refresh is one's, the others pass it by
		select {
		case <-done:
			busy = false
		default:
			hit()
			if s.requests.Load() == 0 {
				continue // the refresh has not begun: this test's own lock would turn it away
			}
			if !v.flight.TryLock() {
				if err := v.Refresh(context.Background(), time.Hour); err != nil {
					t.Fatal(err)
				}
			} else {
				v.flight.Unlock()
			}
		}
	}
	hit()
	asked := s.requests.Load() + stub.queries.Load()
	if s.requests.Load() == 0 || stub.queries.Load() == 0 || !v.Due() {
		t.Fatalf("%d requests, %d queries, due %v: both sources should have been asked", s.requests.Load(), stub.queries.Load(), v.Due())
	}
	for range 100 { // within the pause: at once, or this test would take an hour each
		if err := v.Refresh(context.Background(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.requests.Load() + stub.queries.Load(); n != asked {
		t.Errorf("asked %d more times during the pause", n-asked)
	}
	gone, cancel := context.WithCancel(context.Background())
	k.advance(2 * time.Minute)
	cancel() // the answer was complete before the refresh began
	_ = v.Refresh(gone, time.Hour)
	if !v.Due() {
		t.Error("a refresh that was cut short counts as done")
	}
}

// TestHangingSourceYields: one list that hangs does not keep the others out.
func TestHangingSourceYields(t *testing.T) {
	t.Parallel()
	s := newListServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/good" {
			body(goodList)(w, r)
			return
		}
		<-r.Context().Done()
	})
	cat := oneList(s.URL + "/hang0")
	for i := 1; i < 2*fetches; i++ {
		cat.Lists = append(cat.Lists, List{ID: fmt.Sprintf("hang%d", i), URL: fmt.Sprintf("%s/hang%d", s.URL, i), Format: GoogleJSON, Agents: []string{"Googlebot"}})
	}
	cat.Lists = append(cat.Lists, List{ID: "good", URL: s.URL + "/good", Format: GoogleJSON, Agents: []string{"Googlebot"}, Dedicated: true})
	k := newClock(day)
	v := newVerifier(t, Config{Catalogue: cat, NoShipped: true, Transport: s.Client().Transport, Now: k.now, Logger: (&logBuffer{}).logger()})
	// The budget grows so that a slow machine needs more rounds, not luck.
	for budget := 50 * time.Millisecond; verified(v, "66.249.66.1", uaChrome, k.now()) != ByRange; budget *= 2 {
		if budget > 5*time.Second {
			t.Fatal("the good list was never reached")
		}
		_ = v.Refresh(context.Background(), budget)
		k.advance(2 * time.Minute)
	}
}

func TestRunRefreshesUntilStopped(t *testing.T) {
	t.Parallel()
	s := newListServer(t, body(goodList))
	stub := newDNS(t, ptr(t, "45.55.1.2", "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.2")
	v := newVerifier(t, Config{Catalogue: oneList(s.URL), NoShipped: true, Transport: s.Client().Transport, Resolver: stub.resolver(), Logger: (&logBuffer{}).logger()})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	stopped := make(chan struct{})
	go func() { defer close(stopped); v.Run(ctx) }()
	until := func(what string, addr, ua string, want Proof) {
		for verified(v, addr, ua, time.Now()) != want {
			if ctx.Err() != nil {
				t.Fatal("never:", what)
			}
			time.Sleep(time.Millisecond) // waits for another goroutine, measures nothing
		}
	}
	until("the list", "66.249.66.1", uaChrome, ByRange)
	until("the claim", "45.55.1.2", uaGooglebot, ByReverse)
	cancel()
	<-stopped
}
