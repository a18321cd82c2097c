package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// floor measures the least that a call to the server takes, and asks a Redis for
// its version; so many calls. Nil without an error: the store has no such call.
func (p *place) floor(ctx context.Context, t target, g *rig, r *Result, calls int) (*Floor, error) {
	switch p.name {
	case "redis":
		if p.addr == "" {
			return nil, fmt.Errorf("no plain connection (%s)", p.why)
		}
		c, err := dialRESP(ctx, p.addr, t.url)
		if err != nil {
			return nil, err
		}
		defer c.conn.Close()
		if r.Store.Server == "" {
			r.Store.Server = c.version()
		}
		return timed(calls, "PING on a bare connection", func() error { _, err := c.do("PING"); return err })
	case "upstash":
		return p.pingREST(t, calls)
	case "firestore":
		probe, ok := g.driver.(interface{ Probe(context.Context) error })
		if !ok {
			return nil, nil
		}
		return timed(calls, "a Commit that the server refuses", func() error { return probe.Probe(ctx) })
	case "dynamodb":
		b := &core.Batch{Now: g.base, Rows: []core.Row{{
			Key:  rows.Key{Kind: rows.Address, Net: netip.MustParsePrefix("198.51.100.1/32")},
			Plan: 1, Epoch: 1, Start: g.base.Unix(), Until: g.base.Unix() + 86400, Cells: make([]core.Cell, 1),
		}}}
		return timed(calls, "a read of an absent record", func() error { return g.driver.Apply(ctx, b) })
	}
	return nil, nil
}

func timed(calls int, what string, call func() error) (*Floor, error) {
	var h histogram
	for range calls / 10 {
		if err := call(); err != nil {
			return nil, err
		}
	}
	for range calls {
		began := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		h.add(time.Since(began))
	}
	return &Floor{What: what, Latency: h.latency()}, nil
}

func (p *place) pingREST(t target, calls int) (*Floor, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSpace(t.getenv(upstashURL))
	if u.Host != "" {
		endpoint = (&url.URL{Scheme: "https", Host: u.Host}).String()
	}
	token, _ := u.User.Password()
	for _, name := range []string{"UPSTASH_REDIS_REST_TOKEN", "STILE_STORE_TOKEN"} {
		if token == "" {
			token = strings.TrimSpace(t.getenv(name))
		}
	}
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	return timed(calls, "PING over the REST interface", func() error {
		q, err := http.NewRequest(http.MethodPost, endpoint, strings.NewReader(`["PING"]`))
		if err != nil {
			return fmt.Errorf("the address cannot be used")
		}
		q.Header.Set("Authorization", "Bearer "+token)
		a, err := client.Do(q)
		if err != nil {
			return err
		}
		defer a.Body.Close()
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			return err
		}
		if a.StatusCode != http.StatusOK {
			return fmt.Errorf("PING: status %d", a.StatusCode)
		}
		return nil
	})
}

// A resp is the least client that can say PING: what is below every library.
type resp struct {
	conn net.Conn
	r    *bufio.Reader
}

func dialRESP(ctx context.Context, addr, rawURL string) (*resp, error) {
	conn, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	c := &resp{conn, bufio.NewReader(conn)}
	if u, err := url.Parse(rawURL); err == nil && u.User != nil {
		words := []string{"AUTH"}
		if name := u.User.Username(); name != "" {
			words = append(words, name)
		}
		password, _ := u.User.Password()
		if _, err := c.do(append(words, password)...); err != nil {
			conn.Close()
			return nil, fmt.Errorf("AUTH was refused")
		}
	}
	return c, nil
}

// do sends one command and returns a simple or bulk reply.
func (c *resp) do(words ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case strings.HasPrefix(line, "-"):
		return "", fmt.Errorf("refused: %.40q", line)
	case strings.HasPrefix(line, "$"):
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 || n > 1<<20 {
			return "", fmt.Errorf("a reply of %.20q bytes", line)
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.r, text)
		return string(text[:n]), err
	}
	return line[1:], nil
}

// version asks what the server is; "unknown" if it may not be asked.
func (c *resp) version() string {
	info, err := c.do("INFO", "server")
	if err != nil {
		return "unknown"
	}
	name, version := "Redis", "of unknown version"
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case key == "redis_version" && name == "Redis", key == "valkey_version":
			version = value
		case key == "server_name" && value == "valkey":
			name = "Valkey"
		}
	}
	return name + " " + version
}
