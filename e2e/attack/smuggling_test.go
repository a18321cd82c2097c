package attack_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
)

// smuggled are messages that two parsers might cut differently. A request hidden
// in one of them asks for /smuggled.
var smuggled = map[string]string{
	"CL.TE":                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE.CL":                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n23\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n",
	"TE.TE":                    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE with a tab":            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE of another word":       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"TE with a vertical tab":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"blank before the colon":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"obs-fold":                 "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"folded TE":                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"two lengths":              "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"two lengths in one":       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"length with a sign":       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"negative length":          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"bare LF":                  "GET / HTTP/1.1\nHost: a\nX: y\n\nGET /smuggled HTTP/1.1\nHost: a\n\n",
	"bare CR in a value":       "GET / HTTP/1.1\r\nHost: a\r\nX: y\rGET /smuggled HTTP/1.1\r\n\r\n",
	"bare LF in a chunk":       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\n.\n0\n\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"chunk extension":          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\nX\r\n.\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"oversized chunk length":   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET with a body":          "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"two hosts":                "GET /smuggled HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"no host":                  "GET /smuggled HTTP/1.1\r\n\r\n",
	"a blank in the target":    "GET / /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"h2c":                      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
	"HTTP/0.9":                 "GET /smuggled\r\n\r\n",
	"trailers as fields":       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Forwarded-For\r\n\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
	"connection names a field": "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Forwarded-For\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
}

// A rawOrigin keeps the bytes of each connection: what another parser than Go's
// would have to cut into requests. It answers once and closes.
type rawOrigin struct {
	url string

	mu       sync.Mutex
	received []string
}

func newRawOrigin(t *testing.T) *rawOrigin {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &rawOrigin{url: "http://" + ln.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { o.serve(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		serving.Wait()
	})
	return o
}

// serve takes all that comes until the other side has been silent for a moment.
func (o *rawOrigin) serve(c net.Conn) {
	defer c.Close()
	var all []byte
	buf := make([]byte, 4096)
	for {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := c.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			break
		}
	}
	if len(all) == 0 {
		return
	}
	o.mu.Lock()
	o.received = append(o.received, string(all))
	o.mu.Unlock()
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
}

// strict says what is not exactly one request by the letter of RFC 9112, ""
// if nothing: every parser cuts what passes here alike.
func strict(raw string) string {
	head, body, ok := strings.Cut(raw, "\r\n\r\n")
	if !ok {
		return "no end of the head"
	}
	lines := strings.Split(head, "\r\n")
	if parts := strings.Split(lines[0], " "); len(parts) != 3 || parts[2] != "HTTP/1.1" || !strings.HasPrefix(parts[1], "/") {
		return "request line " + strconv.Quote(lines[0])
	}
	var lengths, encodings []string
	hosts := 0
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return "a control byte in " + strconv.Quote(line)
		}
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		if !ok || name == "" || strings.ContainsAny(name, " \t:()<>@,;") {
			return "field " + strconv.Quote(line)
		}
		switch strings.ToLower(name) {
		case "content-length":
			lengths = append(lengths, value)
		case "transfer-encoding":
			encodings = append(encodings, value)
		case "host":
			hosts++
		case "upgrade", "http2-settings", "te":
			return "field " + strconv.Quote(line)
		}
	}
	switch {
	case hosts != 1:
		return strconv.Itoa(hosts) + " hosts"
	case len(lengths)+len(encodings) > 1:
		return "two ways to find the body's end"
	case len(encodings) == 1:
		return strictChunks(encodings[0], body)
	case len(lengths) == 1:
		if n, err := strconv.Atoi(lengths[0]); err != nil || n != len(body) || lengths[0][0] == '+' {
			return "length " + lengths[0] + " for a body of " + strconv.Itoa(len(body))
		}
	case body != "":
		return "bytes after the end: " + strconv.Quote(body)
	}
	return ""
}

func strictChunks(encoding, body string) string {
	if encoding != "chunked" {
		return "encoding " + strconv.Quote(encoding)
	}
	for {
		if body == "" {
			return "" // given up on the way, with the connection
		}
		size, rest, ok := strings.Cut(body, "\r\n")
		n, err := strconv.ParseUint(size, 16, 31)
		if !ok || err != nil || int(n)+2 > len(rest) {
			return "chunk " + strconv.Quote(size)
		}
		if n == 0 {
			if !strings.HasSuffix(rest, "\r\n") || strings.Count(rest, "\r\n\r\n") > 1 || rest != "\r\n" && !strings.HasSuffix(rest, "\r\n\r\n") {
				return "after the last chunk: " + strconv.Quote(rest)
			}
			return ""
		}
		if rest[n:n+2] != "\r\n" {
			return "the end of a chunk of " + size
		}
		body = rest[n+2:]
	}
}

// TestStrict: the judge of the next test finds what it is there for.
func TestStrict(t *testing.T) {
	t.Parallel()
	for raw, good := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                                                   true,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy":                           true,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n": true,
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n":                             false,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxy":                           false,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /":      false,
	} {
		if problem := strict(raw); (problem == "") != good {
			t.Errorf("%q: %q", raw, problem)
		}
	}
	bad := 0
	for _, raw := range smuggled {
		if strict(raw) != "" {
			bad++
		}
	}
	if bad < len(smuggled)-3 {
		t.Errorf("only %d of %d shapes are not strict", bad, len(smuggled))
	}
}

// TestSmuggling: what reaches the site is one clean request for each that Stile
// saw and counted, whatever the client sent.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	for name, raw := range smuggled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin := newRawOrigin(t)
			s := stand.Start(t, wirePolicy, stand.Options{Origin: origin.url, Transport: &http.Transport{DisableKeepAlives: true}})
			send(t, s.Addr, raw)
			s.Stop()
			pages := 0
			origin.mu.Lock()
			defer origin.mu.Unlock()
			for _, got := range origin.received {
				if problem := strict(got); problem != "" {
					t.Errorf("%s in\n%q", problem, got)
				}
				if strings.HasPrefix(got, "GET ") {
					pages++
				}
				head, _, _ := strings.Cut(strings.ToLower(got), "\r\n\r\n")
				if !strings.Contains(head, "\r\nx-forwarded-for: 127.0.0.1\r\n") || strings.Count(head, "\r\nx-forwarded-for: ") != 1 {
					t.Errorf("another X-Forwarded-For in\n%q", got)
				}
			}
			if counted := len(s.Log()); pages != counted {
				t.Errorf("%d pages reached the site and %d were counted: %q", pages, counted, origin.received)
			}
		})
	}
}
