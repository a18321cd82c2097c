// Package fetch gets small public documents from configured hosts under the
// limits that hostile or broken servers make necessary: a size cap after
// decoding, no redirect to another host, no private addresses, no HTML.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// ErrRefused marks an answer that came and was not acceptable.
var ErrRefused = errors.New("fetch: refused")

// A Client gets documents. The zero value is ready to use and safe for
// concurrent use once Transport is no longer changed.
type Client struct {
	// Transport makes the requests. nil means [PublicTransport]: direct, no
	// proxy, public addresses only.
	Transport http.RoundTripper
	// Redirects is how many redirects within one host are followed; 0 = none.
	Redirects int
}

// A Document is one answer.
type Document struct {
	Body         []byte
	ETag         string
	LastModified string
	MediaType    string // without parameters, lower case
	MaxAge       time.Duration
	NotModified  bool // 304: the held copy is current; Body is empty
}

// A Want is one request.
type Want struct {
	URL          string // https only, unless the transport is the caller's own
	Accept       string
	ETag         string // sent as If-None-Match when set
	LastModified string // sent as If-Modified-Since when set and ETag is not
	MaxBytes     int64  // of the decoded body; longer is refused
}

var public = PublicTransport()

// PublicTransport dials public addresses only, checked after name resolution so
// that a name cannot lead inside, and trusts no proxy of the environment.
func PublicTransport() *http.Transport {
	d := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil || !Public(ap.Addr()) {
			return fmt.Errorf("%w: not a public address", ErrRefused)
		}
		return nil
	}}
	return &http.Transport{
		DialContext: d.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 15 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
	}
}

// shared is address space that net/netip does not call private: carrier NAT,
// benchmarking, protocol assignments, IPv4 embedded in IPv6.
var shared = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("::/96"),
}

// Public reports whether a is a unicast address of the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range shared {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Get fetches w. Errors wrap [ErrRefused] when an answer came and was not
// acceptable; none quotes the body.
func (c *Client) Get(ctx context.Context, w Want) (Document, error) {
	transport := c.Transport
	if transport == nil {
		transport = public
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if first := via[0].URL; len(via) > c.Redirects || next.URL.Scheme != first.Scheme || !strings.EqualFold(next.URL.Host, first.Host) {
			return fmt.Errorf("%w: redirected", ErrRefused)
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	if err != nil {
		return Document{}, fmt.Errorf("%w: bad URL", ErrRefused)
	}
	if req.URL.Scheme != "https" && c.Transport == nil {
		return Document{}, fmt.Errorf("%w: not https", ErrRefused)
	}
	req.Header.Set("User-Agent", "stile-crawler-ranges/1")
	if w.Accept != "" {
		req.Header.Set("Accept", w.Accept)
	}
	if w.ETag != "" {
		req.Header.Set("If-None-Match", w.ETag)
	} else if w.LastModified != "" {
		req.Header.Set("If-Modified-Since", w.LastModified)
	}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error // drop the URL, which the caller has: logs stay short
		if errors.As(err, &u) {
			err = u.Err
		}
		return Document{}, err
	}
	defer resp.Body.Close()
	d := Document{ETag: validator(resp.Header.Get("ETag")), LastModified: validator(resp.Header.Get("Last-Modified")), MaxAge: maxAge(resp.Header)}
	d.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNotModified && (w.ETag != "" || w.LastModified != ""):
		d.NotModified = true
		return d, nil
	case resp.StatusCode != http.StatusOK:
		return Document{}, fmt.Errorf("%w: status %d", ErrRefused, resp.StatusCode)
	case d.MediaType == "text/html":
		return Document{}, fmt.Errorf("%w: HTML", ErrRefused)
	case resp.ContentLength > w.MaxBytes:
		return Document{}, fmt.Errorf("%w: %d bytes announced", ErrRefused, resp.ContentLength)
	}
	d.Body, err = io.ReadAll(io.LimitReader(resp.Body, w.MaxBytes+1))
	if err != nil {
		return Document{}, err
	}
	if int64(len(d.Body)) > w.MaxBytes {
		return Document{}, fmt.Errorf("%w: more than %d bytes", ErrRefused, w.MaxBytes)
	}
	return d, nil
}

// validator keeps a validator only when it is short and printable: it is kept
// in files and sent back.
func validator(s string) string {
	if len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return ""
	}
	return s
}

// maxAge reads Cache-Control's freshness; 0 when absent, no-store or no-cache.
func maxAge(h http.Header) time.Duration {
	var age time.Duration
	for _, v := range h.Values("Cache-Control") {
		for part := range strings.SplitSeq(v, ",") {
			name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
			switch name {
			case "no-store", "no-cache":
				return 0
			case "max-age":
				if d, err := time.ParseDuration(strings.Trim(value, `"`) + "s"); err == nil && d > 0 {
					age = d
				}
			}
		}
	}
	return age
}
