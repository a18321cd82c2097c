package gate_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
)

// TestOriginDown: an honest page of our own, and none of Go's words in it.
func TestOriginDown(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String()
	ln.Close()
	r := newRig(t, hourly(10), nil, func(c *gate.Config) { c.Origin = mustURL(t, dead) })
	got := r.get("203.0.113.9", "/", "Sec-Fetch-Dest: document")
	if got.status != 502 || !strings.Contains(got.body, "not answering") || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%+v", got)
	}
	for _, word := range []string{"dial", "refused", "127.0.0.1", "tcp"} {
		if strings.Contains(got.body, word) {
			t.Errorf("%q is in the page", word)
		}
	}
	es := r.entries()
	if len(es) != 1 || es[0].Status != 502 || !strings.Contains(got.body, es[0].Ref) || !strings.Contains(r.ops.String(), es[0].Ref) {
		t.Errorf("log %+v, operator's log %s", es, r.ops.String())
	}
	if got := r.get("203.0.113.9", "/", "Accept: application/problem+json"); got.status != 502 || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%+v", got)
	}
}

// slowTransport answers nothing in time.
type slowTransport struct{}

type timeoutError struct{}

func (timeoutError) Error() string   { return "too slow" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

func (slowTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", Err: timeoutError{}}
}

func TestOriginTooSlow(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(10), pages, func(c *gate.Config) { c.Transport = slowTransport{} })
	if got := r.get("203.0.113.9", "/"); got.status != 504 || !strings.Contains(got.body, "not answering") {
		t.Errorf("%+v", got)
	}
}

// TestBrokenOriginBodyLooksBroken: a client must not take a torn answer for a
// whole one.
func TestBrokenOriginBodyLooksBroken(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
		},
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		o := httptest.NewUnstartedServer(handler)
		o.Config.ErrorLog = discardLog
		o.Start()
		t.Cleanup(o.Close)
		r := newRig(t, hourly(10), nil, func(c *gate.Config) { c.Origin = mustURL(t, o.URL) })
		_, br := r.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n")
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half" {
			t.Errorf("%s: read %q without an error", name, body)
		}
		if es := r.entries(); len(es) != 1 || es[0].Status != 200 {
			t.Errorf("%s: log %+v", name, es)
		}
	}
}
