package gate_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
)

// TestSlowHeadersAreCutOff: a connection that dribbles its head ends at the
// header timeout.
func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, pages, gate.ServerConfig{ReadHeaderTimeout: 50 * time.Millisecond})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
	answer, err := io.ReadAll(c)
	if err != nil || strings.Contains(string(answer), "200") {
		t.Errorf("%q %v: want the connection closed", answer, err)
	}
}

// TestStuckBodyIsCutOff: a body that stops arriving frees the origin.
func TestStuckBodyIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(10), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), func(c *gate.Config) { c.BodyIdle = 50 * time.Millisecond })
	_, br := r.raw("POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
	res, err := http.ReadResponse(br, nil)
	if err != nil || res.StatusCode != 408 {
		t.Fatalf("%v %+v", err, res)
	}
}

// TestLongAnswersOutliveTheBodyDeadline: the deadline of a read is lifted when
// the read is over, or an answer that takes longer would be cut off.
func TestLongAnswersOutliveTheBodyDeadline(t *testing.T) {
	t.Parallel()
	const idle = 50 * time.Millisecond
	r := newRig(t, hourly(10), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select { // longer than the deadline, unless the client is taken for gone
		case <-r.Context().Done():
		case <-time.After(4 * idle):
			fmt.Fprint(w, "done")
		}
	}), func(c *gate.Config) { c.BodyIdle = idle })
	res, err := http.Post(r.url+"/api/x", "text/plain", strings.NewReader("whole"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "done" {
		t.Errorf("%d %q %v", res.StatusCode, body, err)
	}
}

// TestStuckReaderIsCutOff: a client that stops reading does not hold the
// connection for ever, while one that waits for the next event does no harm.
func TestStuckReaderIsCutOff(t *testing.T) {
	t.Parallel()
	over := make(chan error, 1)
	_, addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for {
			if _, err := w.Write(block); err != nil {
				over <- err
				return
			}
		}
	}), gate.ServerConfig{WriteStall: 100 * time.Millisecond})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	select {
	case err := <-over:
		if !strings.Contains(err.Error(), "timeout") {
			t.Errorf("ended by %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still writing to a client that does not read")
	}
}

// TestRefusedBodyIsNotAwaitedForEver: the 429 comes at once, and the connection
// ends although the announced body never comes.
func TestRefusedBodyIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1), pages, func(c *gate.Config) { c.BodyIdle = 50 * time.Millisecond })
	r.get("203.0.113.9", "/")
	_, br := r.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nContent-Length: 10\r\n\r\nhalf")
	res, err := http.ReadResponse(br, nil)
	if err != nil || res.StatusCode != 429 {
		t.Fatalf("%v %+v", err, res)
	}
	if _, err := io.ReadAll(br); err != nil {
		t.Errorf("the connection stays: %v", err)
	}
}

// TestQuietStreamsOutliveTheWriteDeadline: the deadline is of a write, and not
// of the time between two.
func TestQuietStreamsOutliveTheWriteDeadline(t *testing.T) {
	t.Parallel()
	const stall = 30 * time.Millisecond
	base, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			if i > 0 {
				select { // quiet for longer than a write may take
				case <-r.Context().Done():
					return
				case <-time.After(3 * stall):
				}
			}
			fmt.Fprintf(w, "%d", i)
			w.(http.Flusher).Flush()
		}
	}), gate.ServerConfig{WriteStall: stall})
	res, err := noFollow.Get(base)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "012" {
		t.Errorf("%q %v", body, err)
	}
}
