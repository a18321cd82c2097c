package lambda

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestEvents: what each documented event says of its request.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		kind         shape
		method, host string
		path, query  string
		client       string
		cookie       string
		counted      bool
	}{
		{"rest-authorizer", restAuthorizer, "GET", "abc123.execute-api.eu-west-1.amazonaws.com", "/walks/three", "page=2&q=x&q=a+b", "198.51.100.7", "a=1; b=2", true},
		{"rest-authorizer-token", tokenAuthorizer, "", "", "/", "", "", "", false},
		{"websocket-authorizer", socketAuthorizer, "", "abc123.execute-api.eu-west-1.amazonaws.com", "/", "", "198.51.100.7", "", false},
		{"http-authorizer-1.0", httpAuthorizer1, "GET", "abc123.execute-api.eu-west-1.amazonaws.com", "/walks/three", "page=2", "198.51.100.7", "", true},
		{"http-authorizer-2.0", httpAuthorizer2, "GET", "abc123.execute-api.eu-west-1.amazonaws.com", "/walks/three", "page=2", "198.51.100.7", "a=1; b=2", true},
		{"http-proxy-2.0", functionURL, "GET", "abc123.execute-api.eu-west-1.amazonaws.com", "/walks/three", "page=2", "198.51.100.7", "a=1", true},
		{"function-url", functionURL, "GET", "urlid.lambda-url.eu-west-1.on.aws", "/walks/a/b c", "x=1;y=2&page=2", "198.51.100.7", "a=1; b=2", true},
		{"function-url-post", functionURL, "POST", "urlid.lambda-url.eu-west-1.on.aws", "/echo", "", "198.51.100.7", "", false},
		{"function-url-cloudfront", functionURL, "GET", "urlid.lambda-url.eu-west-1.on.aws", "/walks/three", "", "192.0.2.80", "", true},
		{"alb", loadBalancer, "GET", "lb-1.eu-west-1.elb.amazonaws.com", "/walks/a/b", "page=2&q=a%20b", "198.51.100.7", "a=1; b=2", true},
		{"alb-multi-value", loadBalancer, "GET", "lb-1.eu-west-1.elb.amazonaws.com", "/walks/three", "page=2&q=x&q=a%20b", "2001:db8::7", "a=1; b=2", true},
		{"alb-health-check", loadBalancer, "GET", "", "/", "", "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, kind, err := parse(fixture(t, c.name))
			if err != nil || kind != c.kind {
				t.Fatalf("shape %d, %v: want %d", kind, err, c.kind)
			}
			r := e.request(noon)
			var client netip.Addr
			if c.client != "" {
				client = netip.MustParseAddr(c.client)
			}
			if r.Method != c.method || r.Host != c.host || r.Path != c.path || r.RawQuery != c.query || r.Platform != client || r.Peer != client {
				t.Errorf("got %s %s %s?%s of %v\nwant %s %s %s?%s of %v", r.Method, r.Host, r.Path, r.RawQuery, r.Platform, c.method, c.host, c.path, c.query, client)
			}
			if got := strings.Join(r.Header.Values("Cookie"), "|"); got != c.cookie {
				t.Errorf("cookies %q, want %q", got, c.cookie)
			}
			if len(r.Header.Values("Upgrade")) > 0 {
				t.Error("a claim to be a WebSocket got through, and would not be counted")
			}
			counted := limiterFor(t, "").site.Limiter.Decide(t.Context(), r).Class == core.Counted
			if counted != c.counted && kind != tokenAuthorizer && kind != socketAuthorizer {
				t.Errorf("counted %v, want %v", counted, c.counted)
			}
		})
	}
}

// TestForeignEvents: what is no request is refused without quoting it.
func TestForeignEvents(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `null`, `[]`, `{}`, `"x"`, `{"Records":[]}`, `{"headers":{"a":1}}`, `{"version":"2.0"}`, `{"source":"aws.events","secret":"hunter2"}`} {
		if _, _, err := parse([]byte(text)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func FuzzEvent(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "events", "*.json"))
	if err != nil || len(names) == 0 {
		f.Fatal("no fixtures")
	}
	for _, n := range names {
		f.Add(fixture(f, strings.TrimSuffix(filepath.Base(n), ".json")))
	}
	f.Add([]byte(`{"type":"REQUEST","methodArn":"arn:x/y","path":"%zz?#","headers":{"\u0000":"\n","host":null}}`))
	fn := limiterFor(f, "")
	f.Fuzz(func(t *testing.T, data []byte) {
		e, kind, err := parse(data)
		if err != nil {
			return
		}
		r := e.request(noon)
		if !strings.HasPrefix(r.Path, "/") {
			t.Errorf("path %q", r.Path)
		}
		if len(r.Header.Values("Upgrade")) > 0 {
			t.Error("a claim to be a WebSocket got through")
		}
		if kind == functionURL || kind == loadBalancer {
			if in := e.incoming(t.Context()); in.URL.Host != "" || in.URL.Scheme != "" {
				t.Errorf("the visitor chose the origin: %v", in.URL)
			}
			return
		}
		// An authorizer's event always gets an answer.
		if _, err := fn.authorize(t.Context(), e, kind); err != nil {
			t.Errorf("error %v", err)
		}
	})
}
