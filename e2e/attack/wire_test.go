package attack_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/e2e/stand"
)

// wirePolicy admits everything that is sent here, so that what the origin sees
// is what Stile lets through.
const wirePolicy = `
version: 1
site: attacked
contact: mailto:ops@example.org
buckets: [{name: day, key: address, algorithm: fixed-window, limit: 100000, window: 24h}]
`

// send writes raw bytes and reads what comes back until the server closes or is
// silent for a moment.
func send(t *testing.T, addr, raw string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(400 * time.Millisecond))
	_, _ = io.WriteString(c, raw)
	got, _ := io.ReadAll(c)
	return string(got)
}

// slowConnections is how many connections TestSlowloris holds open at a time.
const slowConnections = 200

// TestSlowloris: headers that come a byte at a time, and bodies that never end,
// hold nobody else up and are cut.
func TestSlowloris(t *testing.T) {
	t.Parallel()
	const slow = slowConnections
	origin := stand.NewOrigin(t)
	s := stand.Start(t, wirePolicy, stand.Options{Origin: origin.URL, Server: gate.ServerConfig{ReadHeaderTimeout: 700 * time.Millisecond}})
	var cut atomic.Int64
	done := make(chan struct{}, slow)
	for i := range slow {
		c, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() {
			defer func() { done <- struct{}{} }()
			_, _ = fmt.Fprintf(c, "GET /slow/%d HTTP/1.1\r\nHost: a\r\nX: ", i)
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, c)
				close(ended)
			}()
			for range 100 {
				select {
				case <-ended:
					cut.Add(1)
					return
				case <-time.After(50 * time.Millisecond):
					if _, err := c.Write([]byte("x")); err != nil {
						cut.Add(1)
						return
					}
				}
			}
		}()
	}
	person := stand.NewClient(t, s.URL, "127.0.0.1")
	for i := range 20 {
		if got := person.Get(article(i)); got.Status != 200 {
			t.Errorf("a person beside %d slow connections got %d", slow, got.Status)
		}
	}
	for range slow {
		<-done
	}
	if cut.Load() != slow {
		t.Errorf("%d of %d slow connections were cut", cut.Load(), slow)
	}
	if n := len(origin.Seen()); n != 20 {
		t.Errorf("the site was asked %d times, want the person's 20", n)
	}
}

// TestBigHeaders: a megabyte of them, in one field or in many, is refused before
// the site hears of it.
func TestBigHeaders(t *testing.T) {
	t.Parallel()
	origin := stand.NewOrigin(t)
	s := stand.Start(t, wirePolicy, stand.Options{Origin: origin.URL})
	for name, fields := range map[string]string{
		"one field":     "X: " + strings.Repeat("x", 1<<20) + "\r\n",
		"many fields":   strings.Repeat("X: xxxxxxxxxx\r\n", 1<<16),
		"a cookie":      "Cookie: " + strings.Repeat("a=b; ", 200_000) + "\r\n",
		"a long target": "",
	} {
		target := "/"
		if name == "a long target" {
			target += strings.Repeat("x", 1<<20)
		}
		got := send(t, s.Addr, "GET "+target+" HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
		if got != "" && !strings.HasPrefix(got, "HTTP/1.1 431 ") {
			t.Errorf("%s: %.60q", name, got)
		}
	}
	if seen := origin.Seen(); len(seen) != 0 {
		t.Errorf("the site was asked %d times", len(seen))
	}
}

// hostile are texts that break logs, terminals and parsers.
var hostile = []string{
	"a\r\n{\"event\":\"hit\"}", "a\nb", "a\rb", "a\x00b", "\x1b[2J\x1b[31m", "\x9b31m", "\u0085next", "\u2028line\u2029", "\u202Egnp.exe",
	"\ufeff", "\xff\xfe\xfd", "\xc3", "\xed\xa0\x80", `"}`, `\u0000`, "</script><script>alert(1)</script>", strings.Repeat("é", 5000), "%0d%0aX: y", "{{.}}", "𝒳\U000E0001",
}

// TestLogInjection puts every hostile text into every field that is logged, past
// the server's own parser as other adapters would hand it over.
func TestLogInjection(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"100000", "1"} { // the lines of hits, and of refusals
		s := stand.Start(t, strings.ReplaceAll(wirePolicy, "100000", limit)+"client: {from: xff, trusted_hops: 1}\n",
			stand.Options{Origin: "http://site.test", Transport: stand.InProcess()})
		sent := 0
		for _, text := range hostile {
			for _, field := range []string{"User-Agent", "Sec-Fetch-Dest", "Traceparent", "X-Forwarded-For", "Host", "Path", "Accept", "Referer", "Cookie"} {
				r := httptest.NewRequest("GET", "/article", nil)
				r.RemoteAddr = "203.0.113.9:1"
				r.Header.Set("X-Forwarded-For", "203.0.113.9")
				switch field {
				case "Host":
					r.Host = text
				case "Path":
					r.URL.Path = "/" + text
				default:
					r.Header[field] = []string{text}
				}
				rec := httptest.NewRecorder()
				s.Handler().ServeHTTP(rec, r)
				sent++
				if rec.Code >= 500 {
					t.Errorf("%s %q: %d", field, text, rec.Code)
				}
				for name, values := range rec.Header() {
					for _, v := range values {
						if strings.ContainsAny(v, "\r\n\x00") {
							t.Errorf("%s %q came back in %s: %q", field, text, name, v)
						}
					}
				}
				if rec.Code == http.StatusTooManyRequests && strings.Contains(rec.Body.String(), "<script>alert(1)") {
					t.Errorf("%s %q is in the page", field, text)
				}
			}
		}
		s.Stop()
		log := s.RawLog()
		if !utf8.Valid(log) {
			t.Error("the log is no UTF-8")
		}
		for _, r := range string(log) {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029') {
				t.Errorf("the log holds %U", r)
				break
			}
		}
		lines, forged := 0, 0
		for _, e := range s.Log() {
			lines += 1 + int(e.LeftOut)
			if e.Site != "attacked" {
				forged++
			}
		}
		if forged != 0 || bytes.Count(log, []byte("\n")) != len(s.Log()) {
			t.Errorf("%d forged lines in %d", forged, len(s.Log()))
		}
		if limit != "1" && lines > sent {
			t.Errorf("%d lines for %d requests", lines, sent)
		}
	}
}

// TestStrangePaths: each is an answer below 500 that the log has, over a real
// connection.
func TestStrangePaths(t *testing.T) {
	t.Parallel()
	origin := stand.NewOrigin(t)
	s := stand.Start(t, wirePolicy, stand.Options{Origin: origin.URL})
	counted := 0
	for path, wantCounted := range map[string]bool{
		"/%00": true, "/a%00b": true, "/a%00.css": false, "/%E2%80%AE": true, "/%ff%fe": true, "/%0d%0aX:%20y": true, "/é": true, "/%c0%ae%c0%ae/": true,
		"/" + strings.Repeat("a/", 4000): true, "/" + strings.Repeat("%2e%2e/", 500): true, "/?" + strings.Repeat("a=b&", 5000): true,
		"/;;;;": true, "/..;/article": true, "/%": false, "//": true, "/\\..\\article": true, "/article%2f1": true, "/.": true, "/..": true,
	} {
		c, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n", path)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%.40q: %v", path, err)
			c.Close()
			continue
		}
		c.Close()
		if res.StatusCode >= 500 {
			t.Errorf("%.40q: %d", path, res.StatusCode)
		}
		if wantCounted {
			counted++
		}
		if got := len(s.Log()); got != counted {
			t.Errorf("%.40q: %d counted, want %d (status %d)", path, got, counted, res.StatusCode)
			counted = got
		}
	}
	for _, e := range s.Log() {
		if !strings.HasPrefix(e.Path, "/") || len(e.Path) > 1100 {
			t.Errorf("logged path %.80q (%d bytes)", e.Path, len(e.Path))
		}
	}
}
