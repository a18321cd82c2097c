package proxies_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/hitlog"
)

// docs is where the configurations are that people copy: the tests run those
// very files, with ports of their own.
const docs = "../../docs/proxies"

// The addresses as the documented files have them.
const (
	frontAddr = "127.0.0.1:8080"
	stileAddr = "127.0.0.1:8081"
	siteAddr  = "127.0.0.1:3000"
)

// hourly is the limit of docs/proxies/stile.yaml.
const hourly = 60

func documented(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A setup is one proxy in front of Stile and a site.
type setup struct {
	stile  *stand.Stile
	origin *stand.Origin
	front  string // URL without path

	inline    bool // Stile is between the proxy and the site, not asked beside
	failsOpen bool // the site stays up when nothing listens on Stile's port
	hangsOpen bool // and when something does but never answers
	fields    bool // admitted pages carry RateLimit
	sockets   bool // WebSockets work, also for a limited client
}

// lies are fields of a client that would be another one, or have another
// request judged than the one it makes.
func lies(i int) []string {
	return []string{
		fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i%250+1), fmt.Sprintf("X-Real-IP: 203.0.113.%d", i%250+1),
		fmt.Sprintf("Forwarded: for=203.0.113.%d", i%250+1),
		"X-Original-URI: /style.css", "X-Original-Method: POST", "X-Forwarded-Uri: /style.css", "X-Forwarded-Method: POST",
		"X-Retry-After: 1", "X-Stile-Ref: ZZZZZZZZZZZZ", "X-Stile-Outcome: unavailable",
	}
}

var number = regexp.MustCompile(`^[1-9][0-9]*$`)

// prove runs the whole story through a proxy.
func prove(t *testing.T, s setup) {
	t.Helper()
	const first, second, third = "127.0.0.7", "127.0.0.8", "127.0.0.9"
	greedy, other := stand.NewClient(t, s.front, first), stand.NewClient(t, s.front, second)

	// Exactly the limit is admitted, whoever the client says it is.
	for i := range hourly {
		got := greedy.Get(fmt.Sprintf("/article/%d?x=1;y=%%2F", i), lies(i)...)
		if got.Status != 200 || !strings.Contains(got.Body, fmt.Sprintf("page /article/%d?x=1;y=%%2F,", i)) {
			t.Fatalf("navigation %d: %+v", i, got)
		}
		if want := fmt.Sprintf(`"hour";r=%d;`, hourly-1-i); s.fields && !strings.HasPrefix(got.Header.Get("RateLimit"), want) {
			t.Fatalf("navigation %d: RateLimit %q, want %s…", i, got.Header.Get("RateLimit"), want)
		}
	}
	got := greedy.Get("/article/one-more", lies(1)...)
	log := s.stile.Log()
	last := log[len(log)-1]
	if got.Status != 429 || !number.MatchString(got.Header.Get("Retry-After")) || got.Header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(got.Header.Get("RateLimit"), `"hour";r=0;`) || !strings.Contains(got.Header.Get("RateLimit-Policy"), `"hour";q=60;w=3600`) ||
		!strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") || len(got.Body) < 200 ||
		!strings.Contains(got.Body, last.Ref) || !strings.Contains(got.Body, "ops@example.org") {
		t.Fatalf("the refusal: %+v\nits log line: %+v", got, last)
	}
	if wait, _ := strconv.Atoi(got.Header.Get("Retry-After")); wait > 3600 || wait == 1 {
		t.Errorf("Retry-After %d: an hour's bucket that was just filled", wait)
	}
	if hits, refused := stand.Count(log, hitlog.Hit), stand.Count(log, hitlog.Limited); hits != hourly || refused != 1 || len(log) != hourly+1 {
		t.Errorf("the log has %d hits and %d refusals in %d lines, want %d, 1 and %d", hits, refused, len(log), hourly, hourly+1)
	}
	for i, e := range log {
		if e.IP != first || e.Host != strings.TrimPrefix(s.front, "http://") || e.Method != "GET" || i < hourly && e.Path != fmt.Sprintf("/article/%d", i) {
			t.Fatalf("log line %d is about another request or client: %+v", i, e)
		}
	}

	// A limited client still gets what is no page, and is told in its language.
	for _, path := range []string{"/style.css", "/pixel.png", "/api/articles"} {
		if got := greedy.Do("GET", path, "", "Sec-Fetch-Dest: empty"); got.Status != 200 {
			t.Errorf("%s of a limited client: %d", path, got.Status)
		}
	}
	if got := greedy.Do("POST", "/comment", "text=hello", "Content-Type: application/x-www-form-urlencoded"); got.Status != 200 || !strings.Contains(got.Body, "10 bytes received") {
		t.Errorf("a form: %+v", got)
	}
	if got := greedy.Do("GET", "/article/1", "", "Sec-Fetch-Dest: document", "Accept: application/json"); got.Status != 429 || !strings.HasPrefix(got.Body, `{"error":{"code":"RATE_LIMITED"`) {
		t.Errorf("JSON: %+v", got)
	}
	if got := greedy.Do("GET", "/article/1", "", "Sec-Fetch-Dest: document", "Sec-Purpose: prefetch"); got.Status != 429 {
		t.Errorf("a prefetch of a limited client: %d, want 429 (with 204 its click would do nothing)", got.Status)
	}

	// Another client is another client, and the site's own answers are its own.
	for path, want := range map[string]int{"/": 200, "/forbidden": 403, "/broken": 500, "/public/page": 200} {
		got := other.Get(path, "X-Forwarded-For: "+first)
		if got.Status != want || !strings.Contains(got.Body, "page "+path) {
			t.Errorf("%s of another client: %+v, want the site's %d", path, got, want)
		}
		if path == "/public/page" && got.Header.Get("RateLimit") != "" {
			t.Errorf("a page that a shared cache may store carries RateLimit: %s", got.Header.Get("RateLimit"))
		}
	}
	for _, seen := range s.origin.Seen() {
		chain := strings.Join(seen.Header["X-Forwarded-For"], ", ")
		if from, _, _ := strings.Cut(chain, ","); from != first && from != second {
			t.Fatalf("the site was told another client: %q for %s", chain, seen.Path)
		}
	}
	if got, err := other.Try("GET", "/", "", "Cookie: big="+strings.Repeat("x", 30<<10)); err == nil && got.Status >= 500 {
		t.Errorf("30 KiB of cookies: %d: a client's fault became the site's", got.Status)
	}
	if got := other.Get("/check?mode=nginx", "X-Original-URI: /", "X-Original-Method: GET"); got.Status != 200 || !strings.Contains(got.Body, "page /check") {
		t.Errorf("a page of the site's that is called /check: %+v", got)
	}

	if got := greedy.Do("GET", "/article/1", "", append([]string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}, stand.Page...)...); got.Status == 200 || strings.Contains(got.Body, "page /") {
		t.Errorf("a page for a limited client that says it wants a WebSocket: %+v", got)
	}
	if s.sockets {
		s.socket(t, first)
	}
	if s.inline {
		s.seesAnswers(t)
	}

	t.Run("stopped", func(t *testing.T) { s.whileStopped(t, third) })
	t.Run("hanging", func(t *testing.T) { s.whileHanging(t, third) })
	s.stile.Restart()
	s.eventually(t, greedy, 429)
}

// socket opens a WebSocket as Chromium does, without Accept and Sec-Fetch-Dest,
// and sends something through.
func (s setup) socket(t *testing.T, from string) {
	t.Helper()
	host := strings.TrimPrefix(s.front, "http://")
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = fmt.Fprintf(c, "GET /socket HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", host)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("a WebSocket of a limited client: %+v, %v", res, err)
		return
	}
	_, _ = c.Write([]byte("over the fence\n"))
	if got, err := r.ReadString('\n'); got != "over the fence\n" {
		t.Errorf("through the WebSocket came %q, %v", got, err)
	}
}

// seesAnswers: what only a Stile between the proxy and the site can do.
func (s setup) seesAnswers(t *testing.T) {
	t.Helper()
	c, before := stand.NewClient(t, s.front, "127.0.0.11"), len(s.stile.Log())
	for path := "/redirect/5"; path != ""; {
		got := c.Get(path)
		path = got.Header.Get("Location")
		if path == "" && (got.Status != 200 || !strings.Contains(got.Body, "page /landing")) {
			t.Errorf("the end of the chain: %+v", got)
		}
	}
	if hits := stand.Count(s.stile.Log()[before:], hitlog.Hit); hits != 1 {
		t.Errorf("a chain of five redirects counted %d times", hits)
	}
	c.Do("GET", "/article/1", "", "Sec-Fetch-Dest: image")
	if hits := stand.Count(s.stile.Log()[before:], hitlog.Hit); hits != 2 {
		t.Errorf("%d hits after a page was asked for as an image, want 2", hits)
	}
}

// eventually waits until a navigation is answered by a status: proxies take
// note of a change within seconds.
func (s setup) eventually(t *testing.T, c *stand.Client, want int) {
	t.Helper()
	status := 0
	for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if status = c.Get("/article/1").Status; status == want {
			return
		}
	}
	t.Fatalf("Stile listens again, and a limited client gets %d, want %d", status, want)
}

// whileStopped: nothing listens on Stile's port.
func (s setup) whileStopped(t *testing.T, from string) {
	s.stile.Stop()
	c := stand.NewClient(t, s.front, from)
	statuses := map[int]int{}
	for i := range 20 {
		statuses[c.Get(fmt.Sprintf("/unwatched/%d", i)).Status]++
		if got := c.Do("POST", "/comment", "text=hello"); got.Status == 200 && !strings.Contains(got.Body, "10 bytes received") {
			t.Errorf("a form lost its body: %+v", got)
		}
	}
	switch {
	case s.failsOpen && statuses[200] != 20:
		t.Errorf("Stile is stopped, and so is the site: %v", statuses)
	case !s.failsOpen && statuses[500] != 20:
		t.Errorf("%v: the documentation says 500", statuses)
	}
	times := 0
	for _, seen := range s.origin.Seen() {
		if strings.HasPrefix(seen.Path, "/unwatched/") {
			times++
		}
	}
	if s.failsOpen && times != 20 {
		t.Errorf("the site was asked %d times for 20 requests", times)
	}
}

// whileHanging: connections are taken and nothing is ever answered.
func (s setup) whileHanging(t *testing.T, from string) {
	if !s.hangsOpen {
		return
	}
	ln, err := net.Listen("tcp", s.stile.Addr)
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			held = append(held, c)
		}
	}()
	defer func() {
		ln.Close()
		<-done
		for _, c := range held {
			c.Close()
		}
	}()
	time.Sleep(2500 * time.Millisecond) // let a proxy that avoids Stile come back to it
	c := stand.NewClient(t, s.front, from)
	var slowest time.Duration
	for i := range 3 {
		began := time.Now()
		if got := c.Get(fmt.Sprintf("/slow/%d", i)); got.Status != 200 {
			t.Errorf("Stile hangs, and so does the site: %+v", got)
		}
		slowest = max(slowest, time.Since(began))
	}
	if slowest > 4*time.Second {
		t.Errorf("a page took %v while Stile hung", slowest)
	}
	t.Logf("slowest page while Stile hung: %v", slowest.Round(time.Millisecond))
}

// TestEveryFileIsRun: a configuration that no test runs does not stay right.
func TestEveryFileIsRun(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(docs)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, f := range tests {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, string(text))
	}
	for _, e := range entries {
		if e.Name() != "README.md" && !slices.ContainsFunc(code, func(s string) bool { return strings.Contains(s, `"`+e.Name()+`"`) }) {
			t.Errorf("no test runs %s", e.Name())
		}
	}
}
