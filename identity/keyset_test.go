package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// service is a sign-in service that publishes keys, over real HTTP.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  atomic.Int64
}

func newService(t *testing.T, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.mu.Lock()
		h := s.answer
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

func serve(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }
}

// clock is a settable time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func fetched(t *testing.T, s *service, c *clock, log *bytes.Buffer) *KeySet {
	t.Helper()
	cfg := KeySetConfig{URL: s.URL + "/jwks.json", Now: c.now}
	if log != nil {
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	k, err := NewKeySet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreFetchedOffThePath(t *testing.T) {
	t.Parallel()
	s := signers()
	svc := newService(t, serve(keySet(published("e1", s["ec"]))))
	c := &clock{at: morning}
	k := fetched(t, svc, c, nil)
	tokens := newTokens(t, func(c *JWTConfig) { c.Keys = k })
	known := func(kid, key string) bool {
		return tokens.Identify(bearing("Authorization", signed(kid, "ES256", s[key], claims()), morning), client).Kind != 0
	}
	if known("e1", "ec") || svc.asked.Load() != 0 {
		t.Fatal("a token was verified, or a fetch made, before the first refresh")
	}
	if !k.Due() {
		t.Fatal("the first refresh is not due")
	}
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !known("e1", "ec") || k.Len() != 1 {
		t.Fatal("not verified after the refresh")
	}
	// A new key appears: the token that names it makes a refresh due, not before
	// a minute has passed, and does not wait for it.
	svc.set(serve(keySet(published("e2", s["other"]))))
	if known("e2", "other") || k.Due() {
		t.Error("an unknown key is known, or is asked for at once")
	}
	c.pass(time.Minute)
	if err := k.Refresh(t.Context()); err != nil || svc.asked.Load() != 2 {
		t.Fatalf("%v, %d fetches, want 2", err, svc.asked.Load())
	}
	if !known("e2", "other") || known("e1", "ec") {
		t.Error("the new set is not taken over, or the withdrawn key still verifies a remembered token")
	}
	// Invented key ids make no storm.
	for i := range 100 {
		known(fmt.Sprintf("invented%d", i), "ec")
		k.Refresh(t.Context())
	}
	if n := svc.asked.Load(); n != 2 {
		t.Errorf("%d fetches after 100 invented key ids within a minute, want 2", n)
	}
	// Unasked, the set is fetched again after its interval.
	c.pass(time.Minute)
	k.Refresh(t.Context())
	c.pass(59 * time.Minute)
	if k.Due() {
		t.Error("due before the interval")
	}
	c.pass(time.Minute)
	if !k.Due() {
		t.Error("not due after the interval")
	}
}

// TestBadAnswersKeepTheKeys: what comes back is refused, the last good set
// serves on, and the log says so without the body.
func TestBadAnswersKeepTheKeys(t *testing.T) {
	t.Parallel()
	s := signers()
	good := keySet(published("e1", s["ec"]))
	elsewhere := newService(t, serve(keySet(published("e1", s["other"]))))
	small := must(StaticKeySet(good)).held.Load()
	if len(small.keys) != 1 {
		t.Fatal("no key")
	}
	weak := published("w", s["rsa"])
	weak["n"] = b64(bytes.Repeat([]byte{0xff}, 128))
	offCurve := published("o", s["ec"])
	offCurve["y"] = b64(bytes.Repeat([]byte{1}, 32))
	encryption := published("x", s["ec"])
	encryption["use"] = "enc"
	many := make([]map[string]any, maxKeys+1)
	for i := range many {
		many[i] = published("m", s["ec"])
	}
	for name, h := range map[string]http.HandlerFunc{
		"empty":         serve(nil),
		"no keys":       serve([]byte(`{"keys":[]}`)),
		"another shape": serve([]byte(`["secret-body"]`)),
		"HTML":          serve([]byte("<!doctype html><p>secret-body")),
		"HTML with keys": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Write(good)
		},
		"500":         func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret-body", 500) },
		"304 unasked": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) },
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			block := bytes.Repeat([]byte(" "), 64<<10)
			for range 64 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
		"redirect elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) },
		"cut off":            func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5000"); w.Write(good) },
		"a shared secret":    serve(keySet(map[string]any{"kty": "oct", "k": "c2VjcmV0", "kid": "e1"})),
		"1024 bits":          serve(keySet(weak)),
		"off the curve":      serve(keySet(offCurve)),
		"for encryption":     serve(keySet(encryption)),
		"too many":           serve(keySet(many...)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := newService(t, serve(good))
			c := &clock{at: morning}
			var log bytes.Buffer
			k := fetched(t, svc, c, &log)
			if err := k.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			svc.set(h)
			c.pass(2 * time.Hour)
			err := k.Refresh(t.Context())
			if err == nil || name != "cut off" && !errors.Is(err, ErrKeySet) {
				t.Errorf("error %v, want ErrKeySet", err)
			}
			if k.Len() != 1 || len(k.find("e1", "ES256")) != 1 {
				t.Error("the held key is gone")
			}
			if !strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "secret-body") {
				t.Errorf("log %q", log.String())
			}
			// Tried again after one minute, two, four.
			asked := svc.asked.Load()
			for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
				c.pass(wait - time.Second)
				if k.Due() {
					t.Errorf("due before %v", wait)
				}
				c.pass(time.Second)
				k.Refresh(t.Context())
				if asked++; svc.asked.Load() != asked && name != "redirect elsewhere" {
					t.Errorf("not tried again after %v", wait)
				}
			}
			c.pass(25 * time.Hour)
			k.Refresh(t.Context())
			if !strings.Contains(log.String(), "level=ERROR") {
				t.Error("keys of more than a day are no error in the log")
			}
		})
	}
	if elsewhere.asked.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestKeysNotModified(t *testing.T) {
	t.Parallel()
	good := keySet(published("e1", signers()["ec"]))
	svc := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		w.Write(good)
	})
	c := &clock{at: morning}
	k := fetched(t, svc, c, nil)
	for range 3 {
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.pass(time.Hour)
	}
	if k.Len() != 1 || svc.asked.Load() != 3 {
		t.Errorf("%d keys after %d fetches", k.Len(), svc.asked.Load())
	}
}

// TestHangingServiceSlowsNobody: identifying goes on while a fetch hangs, a second
// refresh does not queue behind it, and the caller's budget ends it.
func TestHangingServiceSlowsNobody(t *testing.T) {
	t.Parallel()
	s := signers()
	svc := newService(t, serve(keySet(published("e1", s["ec"]))))
	c := &clock{at: morning}
	k := fetched(t, svc, c, nil)
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	entered := make(chan struct{})
	release := make(chan struct{})
	svc.set(func(http.ResponseWriter, *http.Request) { close(entered); <-release })
	c.pass(2 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Refresh(ctx) }()
	<-entered
	tokens := newTokens(t, func(c *JWTConfig) { c.Keys = k })
	if tokens.Identify(bearing("Authorization", signed("e1", "ES256", s["ec"], claims()), morning), client).Kind == 0 {
		t.Error("not verified while a fetch hangs")
	}
	if err := k.Refresh(t.Context()); err != nil || k.Due() {
		t.Errorf("a second refresh: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the hanging refresh: %v", err)
	}
	close(release)
}

func TestRunFetchesWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	svc := newService(t, serve(keySet(published("e1", signers()["ec"]))))
	c := &clock{at: morning}
	k := fetched(t, svc, c, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { k.Run(ctx); close(done) }()
	waitFor(t, func() bool { return k.Len() == 1 })
	c.pass(2 * time.Minute)
	k.find("e2", "ES256")
	waitFor(t, func() bool { return svc.asked.Load() == 2 })
	cancel()
	<-done
	static(t, defaultSet()).Run(t.Context()) // returns at once
}

// waitFor polls for what another goroutine is about to do.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("waited in vain")
}

func TestKeySetConfig(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "http://login.example.org/jwks", "ftp://x/y", "https://", "file:///etc/passwd", "http://127.0.0.1.example.org/"} {
		if _, err := NewKeySet(KeySetConfig{URL: u}); err == nil {
			t.Errorf("%q is accepted", u)
		}
	}
	if _, err := NewKeySet(KeySetConfig{URL: "https://login.example.org/jwks", Interval: time.Second}); err == nil {
		t.Error("a fetch each second is accepted")
	}
	if _, err := StaticKeySet([]byte("{")); !errors.Is(err, ErrKeySet) {
		t.Errorf("a bad file: %v", err)
	}
	k := static(t, defaultSet())
	if err := k.Refresh(t.Context()); err != nil || k.Due() {
		t.Errorf("a static set is due, or refreshed: %v", err)
	}
}
