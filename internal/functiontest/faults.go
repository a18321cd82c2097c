package functiontest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FaultTable is the page whose first table says what a visitor gets of each
// fault of the site behind, through each adapter. [CheckFaults] reads what it
// expects from there, so that the page cannot say anything else than the tests.
const FaultTable = "docs/origin-faults.md"

// patience is how long a platform lets a request last where no fault is about
// that; briefly where one is.
const (
	patience = 2 * time.Minute
	brief    = 2 * time.Second
)

// StartAdapter starts an adapter in front of origin, on a platform that ends a
// request after limit, and returns where visitors reach it. Its policy must admit
// a few hundred pages.
type StartAdapter func(t *testing.T, origin string, limit time.Duration) (url string)

// CheckFaults runs every row of [FaultTable] through an adapter and compares
// what a visitor gets with the column's cell.
func CheckFaults(t *testing.T, column string, start StartAdapter) {
	t.Helper()
	want := faultColumn(t, column)
	f := &faults{start: start, release: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.Handle("/", Origin())
	mux.HandleFunc("/halves", f.halves)
	o := httptest.NewServer(mux)
	t.Cleanup(o.Close)
	f.origin = o.URL
	f.url = start(t, o.URL, patience)
	seen := 0
	for _, c := range faultCases {
		cell, ok := want[c.name]
		if !ok {
			t.Errorf("%s has no row %q", FaultTable, c.name)
			continue
		}
		seen++
		t.Run(c.name, func(t *testing.T) {
			if got := c.run(t, f); got != cell {
				t.Errorf("a visitor gets %q; the page says %q", got, cell)
			}
		})
	}
	if seen != len(want) {
		t.Errorf("%s has %d rows, of which %d are tested", FaultTable, len(want), seen)
	}
}

// faultColumn reads one column of the table, by the text of its head.
func faultColumn(t *testing.T, column string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), filepath.FromSlash(FaultTable)))
	if err != nil {
		t.Fatal(err)
	}
	out, at := map[string]string{}, -1
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			if at >= 0 {
				return out
			}
		case at < 0:
			for i, c := range cells {
				if c == column {
					at = i
				}
			}
			if at < 0 {
				t.Fatalf("%s has no column %q", FaultTable, column)
			}
		case strings.Trim(cells[0], "-") != "":
			if len(cells) <= at {
				t.Fatalf("%s: row %q is too short", FaultTable, cells[0])
			}
			out[cells[0]] = cells[at]
		}
	}
	return out
}

// faults is an adapter under test, and the site behind it.
type faults struct {
	start       StartAdapter
	url, origin string
	release     chan struct{} // lets /halves go on
}

// halves sends half a page, and the rest when that has reached the visitor, or
// when it plainly does not.
func (f *faults) halves(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, strings.Repeat("a", 500))
	_ = http.NewResponseController(w).Flush()
	word := "n"
	select {
	case <-f.release:
		word = "y"
	case <-time.After(2 * time.Second):
	}
	_, _ = io.WriteString(w, strings.Repeat(word, 500))
}

var visitor = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       3 * time.Minute,
}

// got is an answer as it reached a visitor.
type got struct {
	status int
	header http.Header
	body   []byte // at most the first megabyte
	n      int64  // bytes of the body
	err    error  // the body's end
}

func (f *faults) ask(t *testing.T, client *http.Client, method, url string, fields ...string) *got {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "198.51.100.7")
	req.Header.Set("Accept", "text/html")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return &got{err: err}
	}
	defer res.Body.Close()
	g := &got{status: res.StatusCode, header: res.Header}
	var head bytes.Buffer
	g.n, g.err = io.Copy(&head, io.LimitReader(res.Body, 1<<20))
	if g.body = head.Bytes(); g.err == nil {
		var rest int64
		rest, g.err = io.Copy(io.Discard, res.Body)
		g.n += rest
	}
	return g
}

// words is what a visitor got who wanted n bytes with a status.
func (g *got) words(status int, n int64) string {
	switch ours := strings.Contains(string(g.body), "not answering") && g.header.Get("Cache-Control") == "no-store"; {
	case g.status == 0:
		return fmt.Sprintf("no answer: %v", g.err)
	case ours && g.err == nil:
		return fmt.Sprintf("%d, Stile's page", g.status)
	case g.status == status && g.err != nil && g.n < 1000:
		return fmt.Sprintf("%d, half, then a cut connection", g.status)
	case g.status == status && g.err == nil && g.n == n:
		return fmt.Sprintf("%d, whole", g.status)
	}
	return fmt.Sprintf("%d, %d bytes, %v", g.status, g.n, g.err)
}

// kept adds what was kept to words, if it was.
func (g *got) kept(words, field, value, text string) string {
	if g.header.Get(field) != value {
		return fmt.Sprintf("%s, %s: %q", words, field, g.header.Get(field))
	}
	return words + ", " + text
}

var faultCases = []struct {
	name string
	run  func(*testing.T, *faults) string
}{
	{"a page", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.url+"/page").words(200, 1000)
	}},
	{"HEAD", func(t *testing.T, f *faults) string {
		g := f.ask(t, visitor, "HEAD", f.url+"/page")
		return g.kept(strings.TrimSuffix(g.words(200, 0), ", whole"), "Content-Length", "1000", "length kept")
	}},
	{"302", func(t *testing.T, f *faults) string {
		g := f.ask(t, visitor, "GET", f.url+"/moved")
		return g.kept(strings.TrimSuffix(g.words(302, g.n), ", whole"), "Location", "/page", "Location kept")
	}},
	{"304", func(t *testing.T, f *faults) string {
		g := f.ask(t, visitor, "GET", f.url+"/unchanged", "If-None-Match", `"v1"`)
		return g.kept(strings.TrimSuffix(g.words(304, 0), ", whole"), "ETag", `"v1"`, "no body")
	}},
	{"a range", func(t *testing.T, f *faults) string {
		g := f.ask(t, visitor, "GET", f.url+"/file", "Range", "bytes=15-29")
		if string(g.body) != "567890123456789" {
			return fmt.Sprintf("%d %q", g.status, g.body)
		}
		return g.kept(strings.TrimSuffix(g.words(206, 15), ", whole"), "Content-Range", "bytes 15-29/10000", "these bytes")
	}},
	{"two ranges", func(t *testing.T, f *faults) string {
		return twoRanges(f.ask(t, visitor, "GET", f.url+"/file", "Range", "bytes=0-9,25-29"))
	}},
	{"a range beyond the end", func(t *testing.T, f *faults) string {
		g := f.ask(t, visitor, "GET", f.url+"/file", "Range", "bytes=10000-")
		return g.kept(strings.TrimSuffix(g.words(416, g.n), ", whole"), "Content-Range", "bytes */10000", "size told")
	}},
	{"a range of an older version", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.url+"/file", "Range", "bytes=10-29", "If-Range", "Wed, 21 Oct 2015 07:28:00 GMT").words(200, 10000)
	}},
	{"100 MB, length told", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.url+"/large").words(200, LargeBody)
	}},
	{"100 MB, length not told", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.url+"/large?chunked").words(200, LargeBody)
	}},
	{"the site is slow", slowly},
	{"the site is down", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.start(t, "http://"+FreeAddr(t), patience)+"/page").words(200, 1000)
	}},
	{"the site says nothing", silence},
	{"breaks off, length told", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.url+"/abort/length").words(200, 1000)
	}},
	{"breaks off, length not told", func(t *testing.T, f *faults) string {
		return f.ask(t, visitor, "GET", f.url+"/abort/chunked").words(200, 1000)
	}},
	{"a WebSocket", webSocket},
}

func twoRanges(g *got) string {
	kind, params, err := mime.ParseMediaType(g.header.Get("Content-Type"))
	if g.status != 206 || err != nil || kind != "multipart/byteranges" {
		return fmt.Sprintf("%d, %s", g.status, g.header.Get("Content-Type"))
	}
	var parts []string
	for r := multipart.NewReader(bytes.NewReader(g.body), params["boundary"]); ; {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err.Error()
		}
		text, _ := io.ReadAll(p)
		parts = append(parts, p.Header.Get("Content-Range")+" "+string(text))
	}
	if s := strings.Join(parts, "; "); s != "bytes 0-9/10000 0123456789; bytes 25-29/10000 56789" {
		return s
	}
	return "206, both parts"
}

// slowly tells whether the first half is there before the second is made.
func slowly(t *testing.T, f *faults) string {
	res, err := visitor.Get(f.url + "/halves")
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	if _, err := in.Peek(1); err != nil {
		return err.Error()
	}
	select {
	case f.release <- struct{}{}:
	default:
	}
	body, err := io.ReadAll(in)
	select {
	case <-f.release: // nobody was waiting any more
	default:
	}
	switch rest := strings.TrimLeft(string(body), "a"); {
	case err != nil || len(rest) != 500 || res.StatusCode != 200:
		return fmt.Sprintf("%d, %d bytes, %v", res.StatusCode, len(body), err)
	case rest[0] == 'y':
		return "200, as it comes"
	}
	return "200, at its end"
}

// silence asks a site that never answers, on a platform that gives it two
// seconds.
func silence(t *testing.T, f *faults) string {
	impatient := *visitor
	impatient.Timeout = brief + 3*time.Second
	g := f.ask(t, &impatient, "GET", f.start(t, f.origin, brief)+"/hang")
	var timeout net.Error
	if g.status == 0 && errors.As(g.err, &timeout) && timeout.Timeout() {
		return "waits as long as the visitor"
	}
	return g.words(200, 1000)
}

func webSocket(t *testing.T, f *faults) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprint(conn, "GET /socket HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.7\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err.Error()
	}
	if res.StatusCode == http.StatusUpgradeRequired {
		return "426, the site's: none here"
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		return res.Status
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "hello\n" {
		return fmt.Sprintf("101, then %q, %v", line, err)
	}
	return "101, both ways"
}
