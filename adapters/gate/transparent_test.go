package gate_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

// raw sends bytes to the gate and hands back the connection. Reads fail after
// ten seconds, so that a broken gate fails a test and does not hang it.
func (r *rig) raw(text string) (net.Conn, *bufio.Reader) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		r.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// seen answers with what the origin got, as HTTP text.
var seen = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s\nHost: %s\n", r.Method, r.RequestURI, r.Host)
	_ = r.Header.Write(w)
})

// TestTargetIsPassedOnAsSent: query and path reach the origin byte by byte.
func TestTargetIsPassedOnAsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1000), seen)
	for _, target := range []string{
		"/?x=1;y=2&z=3", "/?", "/?a=%zz&b=%", "/?a=b+c%20d&&", "/a%2Fb//c", "/a%20b", "//evil.example/x", "/%E4%B8%AD", "/a/../b", "/;p=1/x;q", "/%3F?%3F", "/a|b\"c",
	} {
		_, br := r.raw("GET " + target + " HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		body, _ := io.ReadAll(res.Body)
		got, _, _ := strings.Cut(string(body), "\n")
		// Go's client writes these two in their escaped form, which is the same URL.
		want := "GET " + strings.NewReplacer("|", "%7C", `"`, "%22").Replace(target)
		if got != want {
			t.Errorf("origin saw %q, want %q", got, want)
		}
		if !strings.Contains(string(body), "Host: example.org\n") {
			t.Errorf("%s: Host is not the client's: %s", target, body)
		}
	}
}

// TestOpaqueTargetsAreNotProxied: the gate is no forward proxy.
func TestOpaqueTargetsAreNotProxied(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1000), seen)
	for request, want := range map[string]int{
		"CONNECT example.net:443 HTTP/1.1\r\nHost: example.net\r\n\r\n":                                       400,
		"GET mailto:x HTTP/1.1\r\nHost: example.org\r\n\r\n":                                                  400,
		"GET http://example.net/x HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n":      200,
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n":                                                        400,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":      200, // the length is dropped (RFC 9112 §6.3)
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx":                       400,
		"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For : 1.2.3.4\r\n\r\n":                                      400,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n":                                    501,
		"GET /" + strings.Repeat("x", 70<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n":                                431,
		"GET / HTTP/1.1\r\nHost: a\r\nCookie: " + strings.Repeat("x", 70<<10) + "\r\nX-End: 1\r\n\r\n":        431,
		"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9, x\r\nSec-Fetch-Dest: \x01\r\n\r\n":        400,
		"OPTIONS /page HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nOrigin: https://x.test\r\n\r\n": 200,
	} {
		_, br := r.raw(request)
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("%.60q: %v", request, err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != want {
			t.Errorf("%.60q: %d, want %d: %.200s", request, res.StatusCode, want, body)
		}
		if want == 200 && strings.HasPrefix(request, "GET http://") && !strings.Contains(string(body), "GET /x\nHost: example.net") {
			t.Errorf("absolute form: %s", body)
		}
	}
}

// TestForwardedFieldsTellTheTruth: what a client says of itself is overwritten;
// what a believed proxy says is kept and continued.
func TestForwardedFieldsTellTheTruth(t *testing.T) {
	t.Parallel()
	lie := []string{
		"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "X-Forwarded-Port: 444", "X-Forwarded-Prefix: /p", "Forwarded: for=192.0.2.66",
		"X-Forwarded-For: 192.0.2.66", "Host: example.org", "X_Forwarded_For: 192.0.2.67", "x-forwarded_host: evil2.example",
	}
	for name, c := range map[string]struct {
		source   core.ClientSource
		secret   string
		believed bool
	}{
		"remote":                   {core.ClientSource{From: core.FromRemote}, "", false},
		"any peer":                 {core.ClientSource{From: core.FromXFF, TrustedHops: 1}, "", true},
		"listed peer":              {core.ClientSource{From: core.FromXFF, TrustedHops: 1, Peers: prefixes("127.0.0.0/8")}, "", true},
		"another peer":             {core.ClientSource{From: core.FromXFF, TrustedHops: 1, Peers: prefixes("10.0.0.0/8")}, "", false},
		"trusted range":            {core.ClientSource{From: core.FromXFF, TrustedProxies: prefixes("127.0.0.0/8")}, "", true},
		"outside of trusted range": {core.ClientSource{From: core.FromXFF, TrustedProxies: prefixes("10.0.0.0/8")}, "", false},
		"right secret":             {core.ClientSource{From: core.FromXFF, TrustedHops: 1, PeerSecretHeader: "X-Edge", PeerSecrets: []string{"s3cret"}}, "s3cret", true},
		"wrong secret":             {core.ClientSource{From: core.FromXFF, TrustedHops: 1, PeerSecretHeader: "X-Edge", PeerSecrets: []string{"s3cret"}}, "guess", false},
	} {
		p := hourly(1000)
		p.Client = c.source
		r := newRig(t, p, seen)
		fields := lie
		if c.secret != "" {
			fields = append(fields[:len(fields):len(fields)], "X-Edge: "+c.secret)
		}
		got := r.get("", "/", fields...).body
		want := []string{"X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Host: example.org\r\n", "X-Forwarded-Proto: http\r\n"}
		not := []string{"192.0.2.66", "X-Forwarded-Port", "X-Forwarded-Prefix", "evil.example", "evil2", "192.0.2.67", "s3cret", "guess"}
		if c.believed {
			want = []string{"X-Forwarded-For: 192.0.2.66, 127.0.0.1\r\n", "X-Forwarded-Host: evil.example\r\n", "X-Forwarded-Proto: https\r\n", "Forwarded: for=127.0.0.1\r\n", "X-Forwarded-Port: 444\r\n"}
			not = []string{"s3cret", "192.0.2.67", "evil2"}
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: origin lacks %q in\n%s", name, w, got)
			}
		}
		for _, n := range not {
			if strings.Contains(got, n) {
				t.Errorf("%s: origin got %q in\n%s", name, n, got)
			}
		}
	}
}

// TestHopByHopTricks: naming a field in Connection takes it from the origin, and
// neither from the decision nor from what we tell the origin.
func TestHopByHopTricks(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), seen)
	ask := func(connection, rest string) (int, string) {
		_, br := r.raw("GET /page HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close, " + connection + "\r\n" + rest + "\r\n")
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	status, body := ask("X-Forwarded-For, X-Forwarded-Host, Accept", "Accept: text/html\r\nSec-Fetch-Dest: document\r\n")
	if status != 200 || !strings.Contains(body, "X-Forwarded-For: 203.0.113.9, 127.0.0.1\r\n") || !strings.Contains(body, "X-Forwarded-Host: example.org") {
		t.Fatalf("%d %s", status, body)
	}
	if status, _ := ask("X-Forwarded-For", "Sec-Fetch-Dest: document\r\n"); status != 429 {
		t.Errorf("hiding the chain got a fresh client: %d", status)
	}
	if status, _ := ask("Sec-Fetch-Dest", "Sec-Fetch-Dest: document\r\n"); status != 429 {
		t.Errorf("hiding the destination: %d", status)
	}
	if status, _ := ask("Sec-Fetch-Dest", "Sec-Fetch-Dest: image\r\n"); status != 200 {
		t.Errorf("a claim is judged by what it says: %d", status)
	}
}

func TestEncodingsAndValidatorsPassThrough(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("<p>page"))
	z.Close()
	r := newRig(t, hourly(1000), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Accept-Encoding", r.Header.Get("Accept-Encoding"))
		w.Header().Set("X-User-Agent", fmt.Sprint(r.Header["User-Agent"]))
		switch r.URL.Path {
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
		default:
			http.ServeContent(w, r, "x.bin", time.Unix(1700000000, 0), strings.NewReader("0123456789"))
		}
	}))
	if got := r.get("203.0.113.9", "/gzip"); got.body != packed.String() || got.header.Get("Content-Encoding") != "gzip" || got.header.Get("X-Accept-Encoding") != "" {
		t.Errorf("gzip: %+v", got)
	}
	if got := r.get("203.0.113.9", "/file", "Range: bytes=2-4"); got.status != 206 || got.body != "234" || got.header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("range: %+v", got)
	}
	last := r.get("203.0.113.9", "/file").header.Get("Last-Modified")
	got := r.get("203.0.113.9", "/file", "If-Modified-Since: "+last)
	if got.status != 304 || got.body != "" {
		t.Errorf("304: %+v", got)
	}
	if got.header.Get("RateLimit") != "" {
		t.Errorf("a 304 would write its fields into what a shared cache has stored: %v", got.header)
	}
	if got := r.do("HEAD", "203.0.113.9", "/file"); got.status != 200 || got.header.Get("Content-Length") != "10" || got.body != "" {
		t.Errorf("HEAD: %+v", got)
	}
	_, br := r.raw("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if res, err := http.ReadResponse(br, nil); err != nil || res.Header.Get("X-User-Agent") != "[]" {
		t.Errorf("a missing User-Agent became %v (%v)", res.Header, err)
	}
}

// TestInformationalAnswersAndTrailers both ways.
func TestInformationalAnswersAndTrailers(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1000), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "got %q, trailer %q", body, r.Trailer.Get("X-Client-Sum"))
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "43")
	}))
	_, br := r.raw("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Client-Sum\r\nConnection: close\r\nTE: trailers\r\n\r\n" +
		"5\r\nhello\r\n0\r\nX-Client-Sum: 41\r\n\r\n")
	early, err := http.ReadResponse(br, nil)
	if err != nil || early.StatusCode != 103 || early.Header.Get("Link") == "" || early.Header.Get("RateLimit") != "" {
		t.Fatalf("%v %+v", err, early)
	}
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != `got "hello", trailer "41"` {
		t.Errorf("%v %s", err, body)
	}
	if res.Trailer.Get("X-Sum") != "42" || res.Trailer.Get("X-Late") != "43" {
		t.Errorf("trailers %v", res.Trailer)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1000), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	c, br := r.raw("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
	line, err := textproto.NewReader(br).ReadLine()
	if err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q %v", line, err)
	}
	_, _ = io.WriteString(c, "hi")
	_, _ = textproto.NewReader(br).ReadLine()
	for {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == 100 {
			continue
		}
		if body, _ := io.ReadAll(res.Body); string(body) != "hi" {
			t.Errorf("%q", body)
		}
		return
	}
}
