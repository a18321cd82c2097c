package stand

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Redis is a redis-server of the test's own that keeps nothing on disk.
type Redis struct {
	*Process
	Addr string // host:port
	URL  string // redis://host:port
}

// StartRedis runs the server at bin (Find) on a free port until the test ends;
// more arguments go to it.
func StartRedis(t testing.TB, bin string, args ...string) *Redis {
	t.Helper()
	addr := FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command(bin, append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)...)
	cmd.Stdout = io.Discard
	r := &Redis{Process: Run(t, cmd), Addr: addr, URL: "redis://" + addr}
	r.WaitListen(addr, 10*time.Second)
	return r
}

// Ask sends one command of words without blanks and returns the answer, a bulk
// string, a status or a number; an error reply fails the test. It speaks the
// protocol itself: a judge should share no client with what it judges.
func (r *Redis) Ask(words ...string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", r.Addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = fmt.Fprintf(c, "%s\r\n", strings.Join(words, " "))
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	if err != nil || len(line) < 3 {
		r.t.Fatalf("redis %v: %q %v", words, line, err)
	}
	text := strings.TrimRight(line[1:], "\r\n")
	switch line[0] {
	case '+', ':':
		return text
	case '$':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return ""
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			r.t.Fatalf("redis %v: %v", words, err)
		}
		return string(body)
	}
	r.t.Fatalf("redis %v: %q", words, line)
	return ""
}

// Info returns a number of the server's INFO, such as used_memory.
func (r *Redis) Info(field string) int64 {
	r.t.Helper()
	for line := range strings.Lines(r.Ask("INFO")) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				return n
			}
		}
	}
	r.t.Fatalf("redis: INFO has no number %s", field)
	return 0
}
