package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/functiontest"
)

// response is a buffered answer in any of its forms.
type response struct {
	StatusCode        int
	StatusDescription string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              string
	IsBase64Encoded   bool
}

func (r *response) body(t *testing.T) []byte {
	t.Helper()
	if !r.IsBase64Encoded {
		return []byte(r.Body)
	}
	b, err := base64.StdEncoding.DecodeString(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (r *response) header(name string) string {
	if v := r.MultiValueHeaders[name]; len(v) > 0 {
		return strings.Join(v, "|")
	}
	return r.Headers[name]
}

// ask makes a request of a fixture's form.
func ask(t *testing.T, name, method, path string, fields ...string) []byte {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(fixture(t, name), &e); err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(path, "?")
	if c := e["requestContext"].(map[string]any); c["http"] != nil {
		e["rawPath"], e["rawQueryString"] = path, query
		c["http"].(map[string]any)["method"] = method
	} else {
		e["path"], e["httpMethod"] = path, method
		delete(e, "multiValueQueryStringParameters")
		q := map[string]any{}
		if query != "" {
			k, v, _ := strings.Cut(query, "=")
			q[k] = v
		}
		e["queryStringParameters"] = q
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if h, ok := e["multiValueHeaders"].(map[string]any); ok {
			h[fields[i]] = []string{fields[i+1]}
		} else {
			e["headers"].(map[string]any)[fields[i]] = fields[i+1]
		}
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func proxyTo(t *testing.T, origin string, limit int, more map[string]string) (*Function, *logBuffer) {
	t.Helper()
	env := map[string]string{"STILE_POLICY": policyOf("{from: remote}", limit, ""), "STILE_ORIGIN": origin}
	for k, v := range more {
		env[k] = v
	}
	return build(t, env)
}

var proxyEvents = []string{"function-url", "http-proxy-2.0", "alb", "alb-multi-value"}

// TestBufferedFaults: each fault of an origin through each buffered platform.
func TestBufferedFaults(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	f, log := proxyTo(t, origin.URL, 1000, nil)
	for _, event := range proxyEvents {
		get := func(method, path string, fields ...string) *response {
			t.Helper()
			var r response
			if err := invoke(t, f, ask(t, event, method, path, fields...), &r); err != nil {
				t.Fatal(err)
			}
			if balanced := strings.HasPrefix(event, "alb"); balanced != (r.StatusDescription != "") || (event == "alb-multi-value") != (r.MultiValueHeaders != nil) {
				t.Errorf("%s: answer in the wrong form: %+v", event, r)
			}
			return &r
		}
		page := get("GET", "/page")
		if page.StatusCode != 200 || len(page.body(t)) != 1000 || page.IsBase64Encoded || page.header("X-Ratelimit-Limit") != "1000" {
			t.Errorf("%s: page %d, %d bytes, base64 %v, %v", event, page.StatusCode, len(page.body(t)), page.IsBase64Encoded, page.Headers)
		}
		cookies := strings.Join(page.Cookies, "|")
		if cookies == "" {
			cookies = page.header("Set-Cookie")
		}
		want := "a=1; Path=/|b=2; Expires=Thu, 01 Jan 2037 00:00:00 GMT"
		if event == "alb" { // this form has room for one: docs/adapters-lambda.md
			want = "b=2; Expires=Thu, 01 Jan 2037 00:00:00 GMT"
		}
		if cookies != want {
			t.Errorf("%s: cookies %q, want %q", event, cookies, want)
		}
		if r := get("HEAD", "/page"); r.StatusCode != 200 || r.Body != "" || r.header("Content-Length") != "1000" {
			t.Errorf("%s: HEAD %+v", event, r)
		}
		if r := get("GET", "/moved"); r.StatusCode != 302 || r.header("Location") != "/page" {
			t.Errorf("%s: redirect %+v", event, r)
		}
		if r := get("GET", "/unchanged"); r.StatusCode != 304 || r.Body != "" || r.header("Etag") != `"v1"` {
			t.Errorf("%s: 304 %+v", event, r)
		}
		if r := get("GET", "/file", "range", "bytes=10-29"); r.StatusCode != 206 || r.Body != "01234567890123456789" {
			t.Errorf("%s: range %d %q", event, r.StatusCode, r.Body)
		}
		if r := get("GET", "/slow"); r.StatusCode != 200 || len(r.Body) != 1000 {
			t.Errorf("%s: slow %d, %d bytes", event, r.StatusCode, len(r.Body))
		}
		if r := get("GET", "/binary"); !r.IsBase64Encoded || !bytes.Equal(r.body(t), []byte{0x89, 'P', 'N', 'G', 0xff, 0xfe, 0}) {
			t.Errorf("%s: binary %+v", event, r)
		}
		// Nothing has gone out yet, so half a page is no page.
		for _, path := range []string{"/abort/chunked", "/abort/length"} {
			if r := get("GET", path); r.StatusCode != 502 || r.header("Cache-Control") != "no-store" || strings.Contains(r.Body, "walk") {
				t.Errorf("%s: %s %d %.80s", event, path, r.StatusCode, r.Body)
			}
		}
		for _, path := range []string{"/large", "/large?chunked"} {
			if r := get("GET", path); r.StatusCode != 502 || len(r.Body) > 4096 {
				t.Errorf("%s: %s %d, %d bytes: want the documented refusal", event, path, r.StatusCode, len(r.Body))
			}
		}
		if r := get("HEAD", "/large"); r.StatusCode != 200 {
			t.Errorf("%s: HEAD of a large file: %d", event, r.StatusCode)
		}
		// No platform of these has WebSockets: the origin is asked without Upgrade.
		if r := get("GET", "/socket", "upgrade", "websocket", "connection", "Upgrade"); r.StatusCode != 426 {
			t.Errorf("%s: WebSocket %d, want the origin's 426", event, r.StatusCode)
		}
	}
	if !strings.Contains(log.String(), errTooLarge.Error()) {
		t.Error("the log does not say why the large answer was refused")
	}
}

// TestWhatTheOriginGets: the request as the client sent it, and who it is from.
func TestWhatTheOriginGets(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	f, _ := proxyTo(t, origin.URL, 1000, nil)
	for _, c := range []struct {
		name string
		in   []byte
		want []string
	}{
		{"post", fixture(t, "function-url-post"), []string{"POST /echo " + strings.TrimPrefix(origin.URL, "http://") + "\n", "X-Forwarded-Host: urlid.lambda-url.eu-west-1.on.aws\n", "Content-Type: application/octet-stream\n", "body: 5 00fffe6869\n", "X-Forwarded-Proto: https\n"}},
		{"url", ask(t, "function-url", "GET", "/echo?x=1;y=2&z=%20"), []string{"GET /echo?x=1;y=2&z=%20 ", "Cookie: a=1; b=2\n", "198.51.100.7\n"}},
		{"alb", ask(t, "alb", "GET", "/echo?q=a%20b"), []string{"GET /echo?q=a%20b ", "Cookie: a=1; b=2\n"}},
	} {
		var r response
		if err := invoke(t, f, c.in, &r); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(r.Body, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, r.Body)
			}
		}
		if strings.Contains(r.Body, "Upgrade") {
			t.Errorf("%s: %s", c.name, r.Body)
		}
	}
}

func TestPathsStayEncoded(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"function-url": "/walks/a%2Fb%20c?x=1;y=2&page=2", "alb": "/walks/a%2Fb?page=2&q=a%20b"} {
		e, _, err := parse(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.incoming(t.Context()).URL.RequestURI(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestHealthCheckNeedsNoOrigin(t *testing.T) {
	t.Parallel()
	f, log := proxyTo(t, "http://127.0.0.1:1", 1, nil)
	for range 3 {
		var r response
		if err := invoke(t, f, fixture(t, "alb-health-check"), &r); err != nil || r.StatusCode != 200 || r.Body != "ok\n" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	// A visitor with that User-Agent is a visitor.
	var r response
	if err := invoke(t, f, ask(t, "alb", "GET", "/", "user-agent", "ELB-HealthChecker/2.0"), &r); err != nil || r.StatusCode != 502 {
		t.Errorf("%+v, %v: want the origin's absence", r, err)
	}
	if strings.Contains(log.String(), `"limited"`) {
		t.Error("health checks were counted")
	}
}

// TestProxyLimits: the fourth page is refused with a whole page, and another
// client is not.
func TestProxyLimits(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	for _, event := range proxyEvents {
		f, _ := proxyTo(t, origin.URL, 3, nil)
		var r response
		for i := range 4 {
			r = response{}
			if err := invoke(t, f, ask(t, event, "GET", "/page"), &r); err != nil || (r.StatusCode == 429) != (i == 3) {
				t.Fatalf("%s: navigation %d: %d, %v", event, i+1, r.StatusCode, err)
			}
		}
		if r.header("Retry-After") == "" || r.header("Cache-Control") != "no-store" || !strings.Contains(r.Body, "mailto:ops@example.org") {
			t.Errorf("%s: refusal %+v", event, r)
		}
	}
}

// TestCloudFront: with CloudFront in front its own word on the viewer counts,
// and only from whoever has the secret.
func TestCloudFront(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	env := map[string]string{
		"STILE_POLICY": policyOf(`{from: "header:CloudFront-Viewer-Address", peer_secret: {header: X-Edge-Secret, secrets: env:STILE_EDGE_SECRETS}}`, 1, ""),
		"STILE_ORIGIN": origin.URL, "STILE_EDGE_SECRETS": "correct horse battery staple",
	}
	f, log := build(t, env)
	get := func(fields ...string) int {
		t.Helper()
		var r response
		if err := invoke(t, f, ask(t, "function-url-cloudfront", "GET", "/page", fields...), &r); err != nil {
			t.Fatal(err, log)
		}
		return r.StatusCode
	}
	if a, b := get(), get(); a != 200 || b != 429 {
		t.Errorf("one viewer: %d, %d; want 200, 429\n%s", a, b, log)
	}
	if a := get("cloudfront-viewer-address", "198.51.100.9:1234"); a != 200 {
		t.Errorf("another viewer through the same edge: %d", a)
	}
	if a, b := get("x-edge-secret", "guess", "cloudfront-viewer-address", "198.51.100.10:1"), get("x-edge-secret", "guess", "cloudfront-viewer-address", "198.51.100.11:1"); a != 200 || b != 429 {
		t.Errorf("round the edge, with invented addresses: %d, %d; want 200, 429", a, b)
	}
}

func TestOriginDownAndLate(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	for _, streamed := range []string{"buffered", "streamed"} {
		more := map[string]string{"STILE_RESPONSES": streamed}
		down, _ := proxyTo(t, "http://127.0.0.1:1", 10, more)
		late, log := proxyTo(t, origin.URL, 10, more)
		for _, c := range []struct {
			f    *Function
			path string
			want int
		}{{down, "/page", 502}, {late, "/hang", 504}} {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			r, err := c.f.Invoke(ctx, ask(t, "function-url", "GET", c.path))
			if err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(r)
			if ctx.Err() != nil || err != nil {
				t.Errorf("%s: out of time, or %v", streamed, err)
			}
			cancel()
			head, _, _ := bytes.Cut(out, make([]byte, 8))
			var v response
			if err := json.Unmarshal(head, &v); err != nil || v.StatusCode != c.want {
				t.Errorf("%s %s: %d, %v; want %d", streamed, c.path, v.StatusCode, err, c.want)
			}
		}
		if !strings.Contains(log.String(), "within the request's time") {
			t.Errorf("%s: the log does not say that the origin was late: %s", streamed, log)
		}
	}
}

// TestStreamed reads answers as the Runtime API does.
func TestStreamed(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	f, _ := proxyTo(t, origin.URL, 1000, map[string]string{"STILE_RESPONSES": "streamed"})
	get := func(method, path string) (response, int64, error) {
		t.Helper()
		r, err := f.Invoke(t.Context(), ask(t, "function-url", method, path))
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := r.(interface{ ContentType() string }); !ok || c.ContentType() != "application/vnd.awslambda.http-integration-response" {
			t.Fatal("no streamed answer")
		}
		defer r.(io.Closer).Close()
		head := readHead(t, r)
		n, err := io.Copy(io.Discard, r)
		return head, n, err
	}
	for _, c := range []struct {
		method, path string
		status       int
		n            int64
		err          error
	}{
		{"GET", "/page", 200, 1000, nil},
		{"HEAD", "/page", 200, 0, nil},
		{"GET", "/moved", 302, -1, nil},
		{"GET", "/unchanged", 304, 0, nil},
		{"GET", "/slow", 200, 1000, nil},
		{"GET", "/large", 200, functiontest.LargeBody, nil},
		{"GET", "/large?chunked", 200, functiontest.LargeBody, nil},
		{"GET", "/abort/chunked", 200, 500, errBroken},
		{"GET", "/abort/length", 200, 500, errBroken},
	} {
		head, n, err := get(c.method, c.path)
		if head.StatusCode != c.status || c.n >= 0 && n != c.n || !errors.Is(err, c.err) {
			t.Errorf("%s %s: %d, %d bytes, %v; want %d, %d, %v", c.method, c.path, head.StatusCode, n, err, c.status, c.n, c.err)
		}
		if c.path == "/page" && len(head.Cookies) != 2 {
			t.Errorf("cookies %q", head.Cookies)
		}
	}
}

// readHead reads a streamed answer's head, up to the eight zero bytes.
func readHead(t *testing.T, r io.Reader) response {
	t.Helper()
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, make([]byte, 8)) {
		if _, err := io.ReadFull(r, one); err != nil {
			t.Fatalf("%v in the head %q", err, head)
		}
		head = append(head, one[0])
	}
	var v response
	if err := json.Unmarshal(head[:len(head)-8], &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestStreamArrivesInParts: the first half is there before the second is made.
func TestStreamArrivesInParts(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	f, _ := proxyTo(t, origin.URL, 1000, map[string]string{"STILE_RESPONSES": "streamed"})
	r, err := f.Invoke(t.Context(), ask(t, "function-url", "GET", "/slow"))
	if err != nil {
		t.Fatal(err)
	}
	readHead(t, r)
	half := make([]byte, 4096)
	if n, err := r.Read(half); n != 500 || err != nil {
		t.Errorf("the first piece has %d bytes, %v; want 500", n, err)
	}
	// The reader leaves: Close ends the request and waits for its end.
	if err := r.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-r.(*stream).done:
	default:
		t.Error("something was still at work after Close")
	}
}
