package signature

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/crawlers/internal/fetch"
)

// stub is a key directory over TLS that can be told to misbehave.
type stub struct {
	*httptest.Server
	handler  atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64
}

func newStub(t *testing.T, h http.HandlerFunc) *stub {
	t.Helper()
	s := &stub{}
	s.handler.Store(&h)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.handler.Load())(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *stub) serve(h http.HandlerFunc) { s.handler.Store(&h) }

func jwk(k ed25519.PublicKey, more string) string {
	return `{"kty":"OKP","crv":"Ed25519","kid":"not believed","x":"` + base64.RawURLEncoding.EncodeToString(k) + `"` + more + `}`
}

func directory(keys ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", directoryType)
		_, _ = io.WriteString(w, `{"keys":[`+strings.Join(keys, ",")+`]}`)
	}
}

type rig struct {
	t       *testing.T
	v       *Verifier
	stub    *stub
	private ed25519.PrivateKey
	at      atomic.Int64
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, private: private, stub: newStub(t, directory(jwk(public, "")))}
	r.at.Store(vectorTime.Unix())
	cfg.Agents = []Agent{{Name: "tester", Class: "ai-user", Directory: r.stub.URL + "/.well-known/http-message-signatures-directory"}}
	cfg.Now, cfg.Logger = r.now, slog.New(slog.DiscardHandler)
	if cfg.Transport == nil {
		cfg.Transport = r.stub.Client().Transport
	}
	if r.v, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) now() time.Time { return time.Unix(r.at.Load(), 0) }

func (r *rig) refresh() error { return r.v.Refresh(context.Background(), 0) }

// request is signed now with a key.
func (r *rig) request(private ed25519.PrivateKey) Reason {
	r.t.Helper()
	m := message("", "", `a="`+r.stub.URL+`"`)
	sign(private, m, `"@authority" "signature-agent";key="a"`, r.at.Load(), r.at.Load()+300)
	return r.v.Verify(m, r.now()).Reason
}

func TestKeysComeFromThePinnedDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	if got := r.request(r.private); got != ReasonNoKeys || r.stub.requests.Load() != 0 {
		t.Fatalf("before any fetch: %v after %d requests", got, r.stub.requests.Load())
	}
	if err := r.refresh(); err != nil {
		t.Fatal(err)
	}
	if got := r.request(r.private); got != ReasonVerified {
		t.Errorf("%v, want verified", got)
	}
	if err := r.refresh(); err != nil || r.stub.requests.Load() != 1 {
		t.Errorf("fetched %d times within the hour (%v)", r.stub.requests.Load(), err)
	}
	if s := r.v.List(); len(s) != 1 || s[0].Keys != 1 || s[0].Confirmed.IsZero() {
		t.Errorf("%+v", s)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	if err := r.refresh(); err != nil {
		t.Fatal(err)
	}
	public, private, _ := ed25519.GenerateKey(nil)
	r.stub.serve(directory(jwk(public, "")))
	for range 50 { // unknown keys cannot make us ask more than once in five minutes
		if got := r.request(private); got != ReasonUnknownKey {
			t.Fatal(got)
		}
		_ = r.refresh()
	}
	if n := r.stub.requests.Load(); n != 1 {
		t.Errorf("%d requests within five minutes, want 1", n)
	}
	r.at.Add(301)
	r.request(private)
	if err := r.refresh(); err != nil || r.request(private) != ReasonVerified {
		t.Errorf("the new key is not known (%v)", err)
	}
	if got := r.request(r.private); got != ReasonUnknownKey {
		t.Errorf("the old key: %v", got)
	}
	r.stub.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	r.at.Add(301)
	before := r.stub.requests.Load()
	for range 50 {
		r.request(r.private)
		_ = r.refresh()
	}
	if n := r.stub.requests.Load() - before; n != 1 {
		t.Errorf("a failing directory was asked %d times at once, want 1", n)
	}
	if r.request(private) != ReasonVerified {
		t.Error("a failed fetch dropped the held keys")
	}
}

func TestDirectoryRefused(t *testing.T) {
	t.Parallel()
	public, _, _ := ed25519.GenerateKey(nil)
	good := jwk(public, "")
	elsewhere := newStub(t, directory(good))
	test, _ := base64.RawURLEncoding.DecodeString(testX)
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want error
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, fetch.ErrRefused},
		"redirect within": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/.well-known/other", http.StatusFound)
		}, fetch.ErrRefused},
		"status 201": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); directory(good)(w, r) }, fetch.ErrRefused},
		"too long": {func(w http.ResponseWriter, r *http.Request) {
			directory(good+strings.Repeat(" ", maxDirectory))(w, r)
		}, fetch.ErrRefused},
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `{"keys":[`+good+`]}`)
		}, fetch.ErrRefused},
		"text": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, `{"keys":[`+good+`]}`)
		}, ErrDirectory},
		"no JSON":             {directory(`{`), ErrDirectory},
		"no keys":             {directory(), ErrDirectory},
		"33 keys":             {directory(strings.Repeat(good+",", maxKeys) + good), ErrDirectory},
		"short key":           {directory(jwk(public[:31], "")), ErrDirectory},
		"only RSA":            {directory(`{"kty":"RSA","n":"AQAB","e":"AQAB"}`), ErrDirectory},
		"only the test key":   {directory(jwk(test, "")), ErrDirectory},
		"only for encryption": {directory(jwk(public, `,"use":"enc"`)), ErrDirectory},
		"negative nbf":        {directory(jwk(public, `,"nbf":-1`)), ErrDirectory},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			if err := r.refresh(); err != nil {
				t.Fatal(err)
			}
			r.stub.serve(c.h)
			r.at.Add(3601)
			if err := r.refresh(); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if r.request(r.private) != ReasonVerified {
				t.Error("the held keys were dropped")
			}
		})
	}
	if n := elsewhere.requests.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

func TestKeyTimes(t *testing.T) {
	t.Parallel()
	at := vectorTime.Unix()
	for more, want := range map[string]Reason{
		fmt.Sprintf(`,"nbf":%d,"exp":%d`, at-10, at+10):             ReasonVerified,
		fmt.Sprintf(`,"nbf":%d`, at+10):                             ReasonUnknownKey,
		fmt.Sprintf(`,"exp":%d`, at-10):                             ReasonUnknownKey,
		fmt.Sprintf(`,"nbf":%d,"exp":%d`, (at-9)*1000, (at+9)*1000): ReasonVerified, // milliseconds
		fmt.Sprintf(`,"exp":%d`, (at-9)*1000):                       ReasonUnknownKey,
	} {
		r := newRig(t, Config{})
		r.stub.serve(directory(jwk(r.private.Public().(ed25519.PublicKey), more)))
		if err := r.refresh(); err != nil {
			t.Fatal(err)
		}
		if got := r.request(r.private); got != want {
			t.Errorf("%s: %v, want %v", more, got, want)
		}
	}
}

func TestDirectoryFreshness(t *testing.T) {
	t.Parallel()
	for control, want := range map[string]time.Duration{
		"": time.Hour, "max-age=7200": 2 * time.Hour, "max-age=1": leastAge, "public, max-age=999999999": mostAge, "no-store, max-age=7200": time.Hour,
	} {
		r := newRig(t, Config{})
		full := *r.stub.handler.Load()
		r.stub.serve(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Cache-Control", control)
			w.Header().Set("ETag", `"k"`)
			if q.Header.Get("If-None-Match") == `"k"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			full(w, q)
		})
		for k := range int64(3) {
			if err := r.refresh(); err != nil || r.stub.requests.Load() != k+1 {
				t.Fatalf("%q: %d requests in round %d (%v)", control, r.stub.requests.Load(), k, err)
			}
			if r.request(r.private) != ReasonVerified {
				t.Errorf("%q: not verified in round %d", control, k)
			}
			r.at.Add(int64(want/time.Second) - 1)
			if r.v.Due() {
				t.Errorf("%q: due before %v", control, want)
			}
			r.at.Add(1)
		}
	}
}

func TestPrivateDirectoryIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{Transport: fetch.PublicTransport()})
	if err := r.refresh(); !errors.Is(err, fetch.ErrRefused) || r.stub.requests.Load() != 0 {
		t.Errorf("loopback was asked: %v", err)
	}
}

func TestHangingDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.stub.serve(func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	if err := r.v.Refresh(context.Background(), time.Second); err == nil {
		t.Error("no error")
	}
	for range 100 {
		if err := r.v.Refresh(context.Background(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.stub.requests.Load(); n != 1 {
		t.Errorf("%d requests during the pause, want 1", n)
	}
	if got := r.request(r.private); got != ReasonNoKeys {
		t.Error(got)
	}
}
