package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
)

func forwarded(uri string, fields ...string) []string {
	return append([]string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: " + uri, "X-Forwarded-Host: example.org", "Sec-Fetch-Dest: document"}, fields...)
}

// TestCheckForms: each proxy's way of naming the original request.
func TestCheckForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path string
		fields       []string
	}{
		"traefik, caddy": {"GET", "/check", forwarded("/page?x=1")},
		"nginx":          {"GET", "/check?mode=nginx", []string{"X-Original-Method: GET", "X-Original-URI: /page?x=1", "Host: example.org", "Sec-Fetch-Dest: document"}},
		"envoy":          {"GET", "/check/page?x=1", []string{"Host: example.org", "Sec-Fetch-Dest: document"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, hourly(2), nil)
			for i := range 2 {
				got := r.do(c.method, "203.0.113.9", c.path, c.fields...)
				if got.status != 200 || got.body != "" || got.header.Get("X-RateLimit-Remaining") != fmt.Sprint(1-i) || got.header.Get("RateLimit") == "" {
					t.Fatalf("%+v", got)
				}
			}
			got := r.do(c.method, "203.0.113.9", c.path, c.fields...)
			es := r.entries()
			last := es[len(es)-1]
			if len(es) != 3 || last.Path != "/page" || last.Host != "example.org" || last.Method != "GET" || last.Status != 429 || last.IP != "203.0.113.9" {
				t.Fatalf("log %+v", es)
			}
			if name == "nginx" {
				if got.status != 403 || got.header.Get("Retry-After") != "1800" || got.header.Get(answer.MarkOutcome) != "limited" || got.header.Get(answer.MarkRef) != last.Ref || got.body != "" {
					t.Errorf("%+v", got)
				}
			} else if got.status != 429 || got.header.Get("Retry-After") != "1800" || !strings.Contains(got.body, last.Ref) || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestCheckCannotBeTalkedRound: fields that the client sent and the proxy passed
// on do not choose what is counted.
func TestCheckCannotBeTalkedRound(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), nil)
	nginx := []string{"X-Original-Method: GET", "X-Original-URI: /page", "Sec-Fetch-Dest: document"}
	trick := []string{"X-Forwarded-Uri: /x.css", "X-Forwarded-Method: POST"}
	for i, want := range []int{200, 403} {
		if got := r.get("203.0.113.9", "/check?mode=nginx", append(trick, nginx...)...); got.status != want {
			t.Errorf("nginx %d: %d, want %d", i, got.status, want)
		}
	}
	for i, want := range []int{200, 429} {
		if got := r.get("203.0.113.10", "/check", forwarded("/page", "X-Original-URI: /x.css", "X-Original-Method: POST")...); got.status != want {
			t.Errorf("traefik %d: %d, want %d", i, got.status, want)
		}
	}
	for i, want := range []int{200, 429} {
		fields := []string{"Sec-Fetch-Dest: document", "X-Forwarded-Uri: /x.css", "X-Original-URI: /x.css"}
		if got := r.get("203.0.113.11", "/check/page", fields...); got.status != want {
			t.Errorf("envoy %d: %d, want %d", i, got.status, want)
		}
	}
	for i, want := range []int{200, 429} {
		fields := append([]string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /x.css"}, forwarded("/page")...)
		if got := r.get("203.0.113.12", "/check", fields...); got.status != want {
			t.Errorf("a proxy that adds lines %d: %d, want %d", i, got.status, want)
		}
	}
	for i, want := range []int{200, 429} {
		if got := r.get("203.0.113.13", "/check", forwarded("/%zz/page")...); got.status != want {
			t.Errorf("a path that does not decode %d: %d, want %d", i, got.status, want)
		}
	}
}

func TestCheckWithoutTheOriginalIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), nil)
	for path, fields := range map[string][]string{
		"/check":            {"X-Original-URI: /page", "X-Original-Method: GET"},
		"/check?mode=nginx": {"X-Forwarded-Uri: /page", "X-Forwarded-Method: GET"},
	} {
		if got := r.get("203.0.113.9", path, fields...); got.status != 400 || !strings.Contains(got.body, "needs X-Original-URI") && !strings.Contains(got.body, "?mode=nginx") {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if !strings.Contains(r.ops.String(), "does not name its original") {
		t.Errorf("operator's log: %s", r.ops.String())
	}
}

// TestCheckIsClosedToStrangers: calling it from outside drains nobody.
func TestCheckIsClosedToStrangers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gate.Config){
		"ranges": func(c *gate.Config) { c.Peers = prefixes("10.0.0.0/8") },
		"secret": func(c *gate.Config) { c.PeerSecretHeader, c.PeerSecrets = "X-Stile-Peer", []string{"old", "new"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, hourly(1), nil, change)
			for range 5 {
				for _, path := range []string{"/check", "/check?mode=nginx", "/check/page", "/denied"} {
					if got := r.get("198.51.100.7", path, forwarded("/page", "X-Stile-Peer: wrong", "X-Original-URI: /page", "X-Original-Method: GET")...); got.status != 403 || got.header.Get(answer.MarkOutcome) != "" {
						t.Fatalf("%s: %+v", path, got)
					}
				}
			}
			if len(r.entries()) != 0 {
				t.Fatalf("counted: %+v", r.entries())
			}
			if !strings.Contains(metricsText(t, r.metrics), "stile_check_closed_total 20\n") || !strings.Contains(r.ops.String(), "not listed") {
				t.Error("strangers are not counted and logged")
			}
			if name == "secret" {
				for i, secret := range []string{"old", "new"} {
					if got := r.get(fmt.Sprintf("198.51.100.%d", i), "/check", forwarded("/page", "X-Stile-Peer: "+secret)...); got.status != 200 {
						t.Errorf("%s: %d", secret, got.status)
					}
				}
			}
		})
	}
}

func TestDeniedRendersAndCountsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), nil)
	for range 3 {
		got := r.get("203.0.113.9", "/denied", "X-Retry-After: 62", "X-Stile-Ref: ABCDEFGH2345", "Sec-Fetch-Dest: document")
		if got.status != 429 || got.header.Get("Retry-After") != "62" || !strings.Contains(got.body, "ABCDEFGH2345") {
			t.Fatalf("%+v", got)
		}
	}
	if got := r.get("203.0.113.9", "/denied", "X-Stile-Outcome: unavailable"); got.status != 503 {
		t.Errorf("%+v", got)
	}
	for _, hostile := range []string{"-1", "x", "1e9", "99999999999999999999", "<b>"} {
		if got := r.get("203.0.113.9", "/denied", "X-Retry-After: "+hostile, "X-Stile-Ref: <script>"); got.status != 429 || got.header.Get("Retry-After") != "1" || strings.Contains(got.body, "<script>alert") {
			t.Errorf("%q: %+v", hostile, got)
		}
	}
	if got := r.get("203.0.113.9", "/denied", "X-Retry-After: 9223372036854775807"); got.header.Get("Retry-After") != "34560000" {
		t.Errorf("%v", got.header)
	}
	if got := r.get("203.0.113.9", "/check", forwarded("/page")...); got.status != 200 {
		t.Errorf("rendering was counted: %d", got.status)
	}
}

func TestCheckOutage(t *testing.T) {
	t.Parallel()
	p := hourly(1)
	p.OnError = core.FailClosed
	l, err := core.New(core.Policy{Claims: core.ClaimsOff, Client: p.Client, Buckets: p.Buckets, OnError: p.OnError}, core.Options{Store: brokenStore{}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, p, nil, func(c *gate.Config) { c.Limiter = l })
	if got := r.get("203.0.113.9", "/check", forwarded("/page")...); got.status != 503 {
		t.Errorf("%+v", got)
	}
	if got := r.get("203.0.113.9", "/check?mode=nginx", "X-Original-URI: /page", "X-Original-Method: GET"); got.status != 403 || got.header.Get(answer.MarkOutcome) != "unavailable" {
		t.Errorf("%+v", got)
	}
}

func TestOwnPaths(t *testing.T) {
	t.Parallel()
	alone := newRig(t, hourly(1), nil)
	for range 3 {
		if got := alone.get("203.0.113.9", "/healthz"); got.status != 200 || got.body != "ok\n" {
			t.Fatalf("%+v", got)
		}
	}
	if got := alone.get("203.0.113.9", "/page"); got.status != 404 {
		t.Errorf("forward-auth has no pages: %d", got.status)
	}
	proxy := newRig(t, hourly(10), pages)
	for _, path := range []string{"/check", "/denied", "/healthz", "/checkout"} {
		if got := proxy.get("203.0.113.9", path); !strings.Contains(got.body, "page "+path) {
			t.Errorf("the origin's %s is hidden: %+v", path, got)
		}
	}
	both := newRig(t, hourly(1), pages, func(c *gate.Config) { c.CheckPath, c.HealthPath = "/-/check", "/-/healthz" })
	if got := both.get("203.0.113.9", "/-/check", forwarded("/page")...); got.status != 200 || got.body != "" {
		t.Errorf("%+v", got)
	}
	if got := both.get("203.0.113.9", "/page"); got.status != 429 {
		t.Errorf("proxy and check count apart: %d", got.status)
	}
	if got := both.get("203.0.113.9", "/-/healthz"); got.status != 200 || got.body != "ok\n" {
		t.Errorf("%+v", got)
	}
}
