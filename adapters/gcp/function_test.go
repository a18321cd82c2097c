package gcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/internal/functiontest"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openmemory"
)

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func policyOf(client string, limit int) string {
	return fmt.Sprintf(`version: 1
site: gcptest
contact: mailto:ops@example.org
client: %s
buckets:
  - {name: hour, key: address, algorithm: fixed-window, limit: %d, window: 1h}
exempt: {crawlers: {search: ordinary, preview: ordinary}}
`, client, limit)
}

// serve starts the function behind a server that swallows panics, as the
// Functions Framework does.
func serve(t *testing.T, env map[string]string) (url string, log *output, f *Function) {
	t.Helper()
	log = &output{}
	f = New(context.Background(), Config{
		Openers: []open.Opener{openmemory.Opener}, Output: log,
		Getenv: func(name string) string { return env[name] },
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				_, _ = io.WriteString(w, "A panic occurred")
			}
		}()
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.Close(); f.Drain(context.Background()) })
	return s.URL, log, f
}

func get(t *testing.T, url string, fields ...string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Dest", "document")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func site(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(functiontest.Origin())
	t.Cleanup(s.Close)
	return s.URL
}

// TestIngress: who is counted under each ingress, and who cannot choose that.
func TestIngress(t *testing.T) {
	t.Parallel()
	secret := `{from: platform, peer_secret: {header: X-Edge, secrets: env:STILE_EDGE_SECRETS}}`
	for _, c := range []struct {
		name, ingress, client string
		requests              [][]string
		want                  []int
	}{
		{"direct: inventing entries changes nothing", "direct", "{from: remote}",
			[][]string{{"X-Forwarded-For", "198.51.100.7"}, {"X-Forwarded-For", "203.0.113.1, 198.51.100.7"}, {"X-Forwarded-For", "198.51.100.8"}}, []int{200, 429, 200}},
		{"balancer: inventing entries changes nothing", "load-balancer", "{from: platform}",
			[][]string{{"X-Forwarded-For", "198.51.100.7,34.1.2.3"}, {"X-Forwarded-For", "203.0.113.1,198.51.100.7,34.1.2.3"}, {"X-Forwarded-For", "198.51.100.8,34.1.2.3"}}, []int{200, 429, 200}},
		{"balancer with a secret: round it, one is one's own address", "load-balancer", secret,
			[][]string{
				{"X-Forwarded-For", "198.51.100.7,34.1.2.3", "X-Edge", "correct horse battery staple"},
				{"X-Forwarded-For", "198.51.100.7,192.0.2.66"},
				{"X-Forwarded-For", "198.51.100.8,192.0.2.66"},
				{"X-Forwarded-For", "198.51.100.9,192.0.2.66", "X-Edge", "guess"},
			}, []int{200, 200, 429, 429}},
		{"the policy may count hops itself", "direct", "{from: xff, trusted_hops: 2}",
			[][]string{{"X-Forwarded-For", "198.51.100.7,34.1.2.3"}, {"X-Forwarded-For", "203.0.113.1,198.51.100.7,34.1.2.4"}}, []int{200, 429}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, log, _ := serve(t, map[string]string{
				"STILE_ORIGIN": site(t), "STILE_POLICY": policyOf(c.client, 1), "STILE_INGRESS": c.ingress,
				"STILE_EDGE_SECRETS": "correct horse battery staple",
			})
			for i, fields := range c.requests {
				if got, _, _ := get(t, url+"/page", fields...); got != c.want[i] {
					t.Errorf("request %d: %d, want %d\n%s", i+1, got, c.want[i], log)
				}
			}
		})
	}
}

func TestOriginLearnsTheTruth(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, map[string]string{
		"STILE_ORIGIN": site(t), "STILE_EDGE_SECRETS": "correct horse battery staple",
		"STILE_POLICY": policyOf(`{from: platform, peer_secret: {header: X-Edge, secrets: env:STILE_EDGE_SECRETS}}`, 10),
	})
	_, body, _ := get(t, url+"/echo?x=1;y=2", "X-Forwarded-For", "198.51.100.7", "X-Forwarded-Proto", "https", "X-Edge", "correct horse battery staple")
	for _, want := range []string{"GET /echo?x=1;y=2 ", "X-Forwarded-Proto: https\n", "X-Forwarded-For: 198.51.100.7"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if strings.Contains(body, "battery") {
		t.Error("the secret went to the origin")
	}
}

// TestBrokenBodyLooksBroken under a server that catches panics, also over a
// writer that cannot be hijacked.
func TestBrokenBodyLooksBroken(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, map[string]string{"STILE_ORIGIN": site(t), "STILE_POLICY": policyOf("{from: remote}", 10)})
	for _, how := range []string{"chunked", "length"} {
		if _, body, err := get(t, url+"/abort/"+how); !errors.Is(err, io.ErrUnexpectedEOF) || len(body) != 500 {
			t.Errorf("%s: %d bytes, %v; want 500 and an unexpected end", how, len(body), err)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		func() {
			w := noHijack{w}
			defer breakOff(w)
			_, _ = w.Write(make([]byte, 500))
			_ = http.NewResponseController(w.ResponseWriter).Flush()
			panic(http.ErrAbortHandler)
		}()
	}))
	defer s.Close()
	if _, body, err := get(t, s.URL); err == nil || len(body) != 500 {
		t.Errorf("without Hijack: %d bytes, %v; want 500 and an error", len(body), err)
	}
}

// noHijack is a writer of somebody's middleware: deadlines pass, hijacking does not.
type noHijack struct{ http.ResponseWriter }

func (w noHijack) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

func TestForeignPanicsStay(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
	}()
	func() {
		defer breakOff(httptest.NewRecorder())
		panic("mine")
	}()
}

// TestForwardAuth: without an origin the function answers /check, for callers
// with the secret only.
func TestForwardAuth(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, map[string]string{
		"STILE_EDGE_SECRETS": "correct horse battery staple",
		"STILE_POLICY":       policyOf(`{from: xff, trusted_hops: 2, peer_secret: {header: X-Edge, secrets: env:STILE_EDGE_SECRETS}}`, 1),
	})
	ask := func(more ...string) int {
		status, _, _ := get(t, url+"/check", append([]string{"X-Forwarded-Uri", "/page", "X-Forwarded-Method", "GET", "X-Forwarded-For", "198.51.100.7,192.0.2.1"}, more...)...)
		return status
	}
	if a, b, c := ask("X-Edge", "correct horse battery staple"), ask("X-Edge", "correct horse battery staple"), ask("X-Edge", "guess"); a != 200 || b != 429 || c != 403 {
		t.Errorf("%d, %d, %d; want 200, 429, 403", a, b, c)
	}
}

// TestHitLog: Cloud Logging's fields, and still lines that Stile reads back.
func TestHitLog(t *testing.T) {
	t.Parallel()
	url, log, _ := serve(t, map[string]string{"STILE_ORIGIN": site(t), "STILE_POLICY": policyOf("{from: remote}", 1), "GOOGLE_CLOUD_PROJECT": "walks"})
	const trace = "105445aa7843bc8bf206b12000100000"
	for range 2 {
		_, _, _ = get(t, url+"/page", "X-Forwarded-For", "198.51.100.7", "X-Cloud-Trace-Context", trace+"/1;o=1", "User-Agent", "Walker/1")
	}
	var events []string
	for line := range strings.Lines(log.String()) {
		e, err := hitlog.Parse([]byte(line))
		if err != nil {
			continue
		}
		events = append(events, string(e.Event)+" "+e.Severity)
		var v struct {
			Request struct {
				RequestMethod, RequestURL, UserAgent, RemoteIP string
				Status                                         int
			} `json:"httpRequest"`
			Trace string `json:"logging.googleapis.com/trace"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		r := v.Request
		if r.RequestMethod != "GET" || !strings.HasSuffix(r.RequestURL, "/page") || r.UserAgent != "Walker/1" || r.RemoteIP != "198.51.100.7" || r.Status != e.Status {
			t.Errorf("httpRequest %+v", r)
		}
		if v.Trace != "projects/walks/traces/"+trace {
			t.Errorf("trace %q", v.Trace)
		}
	}
	if got := strings.Join(events, ", "); got != "hit INFO, limited WARNING" {
		t.Errorf("events %q", got)
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	const id = "105445aa7843bc8bf206b12000100000"
	for _, c := range []struct{ name, value, want string }{
		{"X-Cloud-Trace-Context", id + "/1;o=1", id},
		{"X-Cloud-Trace-Context", id, id},
		{"X-Cloud-Trace-Context", "../../evil/1", ""},
		{"Traceparent", "00-" + id + "-00f067aa0ba902b7-01", id},
		{"Traceparent", "00-short", ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(c.name, c.value)
		if got := Trace(r); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

func TestProject(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Path != "/computeMetadata/v1/project/project-id" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = io.WriteString(w, "walks\n")
	}))
	defer s.Close()
	for _, c := range []struct {
		env    map[string]string
		server string
		want   string
	}{
		{map[string]string{"K_SERVICE": "f"}, s.URL, "walks"},
		{map[string]string{"K_SERVICE": "f", "GOOGLE_CLOUD_PROJECT": "mine"}, s.URL, "mine"},
		{nil, s.URL, ""},
		{map[string]string{"K_SERVICE": "f"}, "http://127.0.0.1:1", ""},
	} {
		if got := project(t.Context(), func(n string) string { return c.env[n] }, c.server); got != c.want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
}

// TestCookieKeys: the visitor cookie of a policy is set and believed here too.
func TestCookieKeys(t *testing.T) {
	t.Parallel()
	url, log, _ := serve(t, map[string]string{
		"STILE_ORIGIN": site(t), "STILE_COOKIE_SECRETS": strings.Repeat("0123456789abcdef", 4),
		"STILE_POLICY": policyOf("{from: remote}", 1) + "identify: {cookie: {secrets: env:STILE_COOKIE_SECRETS}}\n",
	})
	req, err := http.NewRequest("GET", url+"/page", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "198.51.100.7")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if !strings.Contains(strings.Join(res.Header["Set-Cookie"], "\n"), "__Host-stile=") {
		t.Errorf("cookies %q\n%s", res.Header["Set-Cookie"], log)
	}
}
