package gate_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
)

var discardLog = log.New(io.Discard, "", 0)

// TestEventsArriveOneByOne: the origin sends the next event only after the
// client has read the one before, so nothing may be held back on the way.
func TestEventsArriveOneByOne(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"text/event-stream", "text/html", "application/x-ndjson"} {
		next := make(chan struct{})
		r := newRig(t, hourly(10), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			for i := range 5 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
		}))
		_, br := r.raw("GET /events HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nSec-Fetch-Dest: empty\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(res.Body)
		for i := range 5 {
			line, err := lines.ReadString('\n')
			if err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("%s %d: %q %v", contentType, i, line, err)
			}
			_, _ = lines.ReadString('\n')
			next <- struct{}{}
		}
	}
}

// TestBodiesStreamBothWays: an answer that begins before the request is over,
// piece by piece in lockstep.
func TestBodiesStreamBothWays(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(10), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		buf := make([]byte, 64)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				_, _ = w.Write([]byte(strings.ToUpper(string(buf[:n]))))
				w.(http.Flusher).Flush()
			}
			if err != nil {
				return
			}
		}
	}))
	c, br := r.raw("POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n")
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	for i, ch := range "abcde" {
		if i > 0 {
			fmt.Fprintf(c, "1\r\n%c\r\n", ch)
		}
		if _, err := io.ReadFull(res.Body, one); err != nil || one[0] != byte(ch)-'a'+'A' {
			t.Fatalf("%c: %q %v", ch, one, err)
		}
	}
	_, _ = io.WriteString(c, "0\r\n\r\n")
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("%q %v", rest, err)
	}
}

// TestWebSocketUpgrade: an echo over the upgraded connection; never counted.
func TestWebSocketUpgrade(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			t.Errorf("the origin got Upgrade %q", r.Header.Get("Upgrade"))
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n")
		_ = rw.Flush()
		line, err := rw.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(rw, "echo %s", line)
		_ = rw.Flush()
	}))
	for range 3 {
		c, br := r.raw("GET /socket HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n")
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != 101 || res.Header.Get("Sec-Websocket-Accept") != "x" || res.Header.Get("RateLimit") != "" {
			t.Fatalf("%v %+v", err, res)
		}
		fmt.Fprint(c, "hello\n")
		if line, err := br.ReadString('\n'); err != nil || line != "echo hello\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	if es := r.entries(); len(es) != 0 {
		t.Errorf("counted: %+v", es)
	}
}

// TestClientGoneCancelsTheOrigin and is still charged.
func TestClientGoneCancelsTheOrigin(t *testing.T) {
	t.Parallel()
	started, cancelled := make(chan struct{}), make(chan struct{})
	r := newRig(t, hourly(1), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		select {
		case <-r.Context().Done():
			close(cancelled)
		case <-time.After(10 * time.Second):
		}
	}))
	c, _ := r.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n")
	<-started
	c.Close()
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Fatal("the origin's request goes on")
	}
	if got := r.get("203.0.113.9", "/"); got.status != 429 {
		t.Errorf("leaving early was free: %d", got.status)
	}
}

// TestGracefulEnd: requests in flight finish, new connections are refused, and
// what outlasts the grace is cancelled.
func TestGracefulEnd(t *testing.T) {
	t.Parallel()
	entered, release := make(chan string, 2), make(chan struct{})
	cancelled := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		if r.URL.Path == "/stream" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(cancelled)
			return
		}
		<-release
		fmt.Fprint(w, "finished")
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gate.NewServer(h, gate.ServerConfig{Grace: 500 * time.Millisecond}).Run(ctx, ln) }()
	get := func(path string, to chan<- string) {
		res, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + ln.Addr().String() + path)
		if err != nil {
			to <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		to <- string(body)
	}
	short, stream := make(chan string, 1), make(chan string, 1)
	go get("/short", short)
	go get("/stream", stream)
	<-entered
	<-entered
	stop()
	close(release)
	if got := <-short; got != "finished" {
		t.Errorf("the request in flight got %q", got)
	}
	<-cancelled
	<-stream
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second); err == nil {
		t.Error("the port is still open")
	}
}

// TestPipelinedRequests are decided one by one and answered in order.
func TestPipelinedRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(2), pages)
	request := "GET /%d HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
	_, br := r.raw(fmt.Sprintf(request+request+request, 0, 1, 2))
	for i, want := range []int{200, 200, 429} {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != want || want == 200 && string(body) != fmt.Sprintf("<p>page /%d", i) {
			t.Errorf("%d: %d %q %v", i, res.StatusCode, body, err)
		}
	}
}

// TestNoOtherTunnels: an upgrade to HTTP/2 would be a way round every count.
func TestNoOtherTunnels(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(2), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			page(w, r)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
	}))
	for i, upgrade := range []string{"h2c", "TLS/1.0, HTTP/1.1", "h2c, websocket"} {
		want := 200
		if i == 2 {
			want = 429 // and each was counted
		}
		_, br := r.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " + upgrade + "\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
		if res, err := http.ReadResponse(br, nil); err != nil || res.StatusCode != want {
			t.Errorf("%s: %v %+v", upgrade, err, res)
		}
	}
	// A page that says it is a WebSocket is a claim: twenty times the limit, and
	// then no more.
	for i := range 41 {
		want := 200
		if i == 40 {
			want = 429
		}
		_, br := r.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.10\r\nUpgrade: websocket\r\n\r\n")
		if res, err := http.ReadResponse(br, nil); err != nil || res.StatusCode != want {
			t.Errorf("claimed WebSocket %d: %v %+v", i, err, res)
		}
	}
}
