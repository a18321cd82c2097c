package stand

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A Reply is an answer, read to its end.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Page are the fields of a person's navigation, as Chromium sends them.
var Page = []string{
	"Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none", "Sec-Fetch-User: ?1",
	"Upgrade-Insecure-Requests: 1", "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
}

// A Client asks from one address of this machine: Linux lets any of 127.0.0.0/8
// be the source of a connection on loopback, so that a proxy sees several
// clients without being told so by a header.
type Client struct {
	t    testing.TB
	base string
	http *http.Client
}

// NewClient returns a client of base, a URL without path, that connects from an
// address such as 127.0.0.7.
func NewClient(t testing.TB, base, from string) *Client {
	t.Helper()
	local := &net.TCPAddr{IP: netip.MustParseAddr(from).AsSlice()}
	d := &net.Dialer{LocalAddr: local, Timeout: 5 * time.Second}
	tr := &http.Transport{DialContext: d.DialContext, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &Client{t: t, base: base, http: &http.Client{
		Transport: tr, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get asks for a page as a person does, with more fields ("Name: value") beside.
func (c *Client) Get(path string, fields ...string) Reply {
	c.t.Helper()
	return c.Do("GET", path, "", append(append([]string(nil), Page...), fields...)...)
}

// Do sends one request with exactly these fields.
func (c *Client) Do(method, path, body string, fields ...string) Reply {
	c.t.Helper()
	r, err := c.Try(method, path, body, fields...)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// Try is Do that returns what went wrong on the connection.
func (c *Client) Try(method, path, body string, fields ...string) (Reply, error) {
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.base+path, b)
	if err != nil {
		return Reply{}, err
	}
	req.Header.Set("User-Agent", "stile-e2e")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	return Reply{Status: res.StatusCode, Header: res.Header, Body: string(text)}, err
}
