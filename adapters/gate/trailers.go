package gate

import (
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"github.com/stilehq/stile/core"
)

// passTrailers hands the client's trailers on to the origin, which are known
// after the body only. Some servers merge them into the header, so those that
// tell who a client is are left out: RFC 9110 §6.5.1 has no use for them there.
func (g *gate) passTrailers(pr *httputil.ProxyRequest, source *core.ClientSource) {
	in, out := pr.In, pr.Out
	out.Trailer = nil
	if len(in.Trailer) == 0 || out.Body == nil {
		return // only what was announced is passed on
	}
	t := &trailers{ReadCloser: out.Body, from: in.Trailer, to: http.Header{}, secret: []string{source.PeerSecretHeader, g.PeerSecretHeader, source.Header}}
	for name := range in.Trailer {
		if t.passes(name) {
			t.to[name] = nil // announced to the origin
		}
	}
	if len(t.to) == 0 {
		return
	}
	out.Trailer, out.Body = t.to, t
}

// trailers is a request's body that copies the trailers when it has been read.
type trailers struct {
	io.ReadCloser
	from, to http.Header
	secret   []string // more names that no client may set; "" = none
}

// Read is called by the transport alone, which looks at the trailers after the
// end.
func (t *trailers) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for name := range t.to {
			t.to[name] = t.from[name]
		}
	}
	return n, err
}

func (t *trailers) passes(name string) bool {
	name = strings.ReplaceAll(name, "_", "-") // as CGI reads it
	switch {
	case len(name) >= len("X-Forwarded-") && strings.EqualFold(name[:len("X-Forwarded-")], "X-Forwarded-"):
		return false
	case slices.ContainsFunc([]string{"Forwarded", "X-Real-Ip"}, func(s string) bool { return strings.EqualFold(s, name) }):
		return false
	}
	return !slices.ContainsFunc(t.secret, func(s string) bool { return s != "" && strings.EqualFold(strings.ReplaceAll(s, "_", "-"), name) })
}
