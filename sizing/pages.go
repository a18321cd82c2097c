package sizing

import (
	"context"
	"net/url"
	"strings"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/sizing/accesslog"
)

// A sort says what a request was.
type sort uint8

const (
	other       sort = iota // API, feed, robots.txt, another method, a redirect
	page                    // what core counts
	asset                   // something a page is made of
	soft                    // a framework's fetch of page data: a click without a document
	speculative             // prefetch or prerender
)

// A classifier asks core what a request is, as far as the log tells. Answers for
// lines without request headers depend on method and target only and are
// remembered by path.
type classifier struct {
	limiter *core.Limiter
	req     core.Request
	header  recordHeader
	known   map[string]sort
}

const maxKnownPaths = 1 << 16

func newClassifier(c core.Count) (*classifier, error) {
	// A limiter without buckets decides nothing and touches no store; what is
	// asked of it is the class alone.
	l, err := core.New(core.Policy{Site: "sizing", Count: c, Claims: core.ClaimsOff}, core.Options{Store: noStore{}})
	if err != nil {
		return nil, err
	}
	return &classifier{limiter: l, known: make(map[string]sort)}, nil
}

// noStore is a store that is never reached.
type noStore struct{}

var _ core.Store = noStore{}

func (noStore) Apply(_ context.Context, b *core.Batch) error { return core.ErrNotApplied }
func (noStore) Close() error                                 { return nil }

// sort classifies one record.
func (c *classifier) sort(r *accesslog.Record) sort {
	if r.Format == accesslog.FormatStile {
		return hitSort(r)
	}
	s := c.byTarget(r)
	if s != page {
		return s
	}
	switch {
	case r.Status >= 300 && r.Status < 400 && r.Status != 304:
		return other // the page that it leads to counts, once
	case r.ContentType != "" && r.Status < 300 && !isHTML(r.ContentType):
		if strings.HasPrefix(r.ContentType, "text/x-component") {
			return soft
		}
		return asset
	case strings.Contains(r.Query, "_rsc="), strings.Contains(r.Query, "__rsc="):
		return soft
	}
	return page
}

// hitSort believes the hit log: the limiter saw the whole request and its answer.
// A counted hit is a page even if it answered with a redirect (the next hop was
// free) or called itself an asset (the answer was a page).
func hitSort(r *accesslog.Record) sort {
	switch core.Reason(r.Reason) {
	case core.ReasonSpeculating:
		return speculative
	case core.ReasonClaims:
		return soft
	}
	return page
}

// byTarget asks core.
func (c *classifier) byTarget(r *accesslog.Record) sort {
	const headers = accesslog.HasSecFetch | accesslog.HasAccept | accesslog.HasSecPurpose
	plain := r.Has&headers == 0 && !r.Upgrade && (r.Method == "GET" || r.Method == "")
	remember := plain && r.Query == "" && len(r.Path) <= 256
	if remember {
		if s, ok := c.known[r.Path]; ok {
			return s
		}
	}
	c.req = core.Request{Method: r.Method, Host: r.Host, Path: decodePath(r.Path), RawQuery: r.Query, Peer: r.Client, Time: r.Time}
	c.header.r = r
	c.req.Header = &c.header
	d := c.limiter.Decide(context.Background(), &c.req)
	var s sort
	switch d.Class {
	case core.Counted:
		s = page
	case core.Speculative:
		s = speculative
	case core.Claim:
		s = soft
		if d := r.SecFetchDest; d != "" && d != "empty" && d != "iframe" && d != "frame" {
			s = asset
		}
	default:
		if d.Reason == core.ReasonPath && r.Method == "GET" && isAsset(r.Path) {
			s = asset
		}
	}
	if remember {
		if len(c.known) >= maxKnownPaths {
			clear(c.known)
		}
		c.known[strings.Clone(r.Path)] = s
	}
	return s
}

func isHTML(ct string) bool {
	return strings.Contains(ct, "html") || strings.HasPrefix(ct, "text/plain")
}

// isAsset tells the parts of a page from other things that are no pages.
func isAsset(path string) bool {
	if strings.HasPrefix(path, "/_next/") {
		return true
	}
	i := strings.LastIndexByte(path, '.')
	if i < 0 || len(path)-i > 7 {
		return strings.Contains(path, "/static/") || strings.Contains(path, "/images/")
	}
	switch strings.ToLower(path[i+1:]) {
	case "css", "js", "mjs", "map", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "bmp",
		"woff", "woff2", "ttf", "otf", "eot", "mp4", "webm", "mp3", "ogg", "m4a", "wasm":
		return true
	}
	return false
}

func decodePath(p string) string {
	if strings.IndexByte(p, '%') < 0 {
		return p
	}
	if d, err := url.PathUnescape(p); err == nil {
		return d
	}
	return p
}

// recordHeader shows a record's headers to core.
type recordHeader struct {
	r   *accesslog.Record
	buf [1]string
}

var _ core.Header = (*recordHeader)(nil)

// Values returns the one value that the log kept of a header, if any.
func (h *recordHeader) Values(name string) []string {
	v := ""
	switch name {
	case "User-Agent":
		v = h.r.UserAgent
	case "Accept":
		v = h.r.Accept
	case "Sec-Fetch-Dest":
		v = h.r.SecFetchDest
	case "Sec-Fetch-User":
		v = h.r.SecFetchUser
	case "Sec-Purpose":
		v = h.r.SecPurpose
	case "Purpose":
		v = h.r.SecPurpose
	case "Upgrade-Insecure-Requests":
		v = h.r.UpgradeInsecure
	case "Referer":
		v = h.r.Referer
	case "Upgrade":
		if h.r.Upgrade {
			v = "websocket"
		}
	}
	if v == "" {
		return nil
	}
	h.buf[0] = v
	return h.buf[:]
}
