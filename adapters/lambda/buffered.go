package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehq/stile/answer"
)

// The most bytes of a whole JSON answer: what the platforms document. Should they
// change, STILE_MAX_ANSWER_BYTES is what holds.
const (
	maxURLAnswer      = 6 << 20 // function URL and HTTP API, buffered
	maxBalancerAnswer = 1 << 20 // ALB
)

var (
	errBroken   = errors.New("the origin's body broke off")
	errTooLarge = errors.New("the answer is larger than the platform passes on")
)

// buffered answers with the whole response in one JSON document. Since nothing
// has gone out before, a body that broke off or is too large becomes an honest
// 502.
func (f *Function) buffered(ctx context.Context, e *event, kind shape) io.Reader {
	r := e.incoming(ctx)
	limit := maxURLAnswer
	if kind == loadBalancer {
		limit = maxBalancerAnswer
	}
	if f.mostBytes > 0 {
		limit = f.mostBytes
	}
	if kind == loadBalancer && e.healthCheck(r.Header) {
		rec := newRecorder(r.Method, limit)
		rec.header.Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rec, "ok\n")
		return reply{bytes.NewReader(e.encode(rec, kind))}
	}
	rec := newRecorder(r.Method, limit)
	err := f.serve(rec, r)
	if rec.over {
		err = errTooLarge
	}
	var text []byte
	if err == nil {
		if text = e.encode(rec, kind); len(text) > limit {
			err = errTooLarge
		}
	}
	if err != nil {
		ref := answer.NewRef()
		f.logger.Error("stile: answered with 502", "error", err, "limit", limit, "ref", ref)
		rec = newRecorder(r.Method, limit)
		f.site.Answer.OriginDown(http.StatusBadGateway, f.ask(r, ref)).Write(rec, r.Method)
		text = e.encode(rec, kind)
	}
	return reply{bytes.NewReader(text)}
}

// A recorder keeps a response, up to a limit.
type recorder struct {
	header http.Header
	sent   http.Header // as it was when the status was written
	status int
	body   bytes.Buffer
	limit  int
	over   bool
	method string
}

func newRecorder(method string, limit int) *recorder {
	return &recorder{header: http.Header{}, limit: limit, method: method}
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Informational answers are dropped:
// no event has room for them.
func (w *recorder) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	if n, err := strconv.Atoi(w.sent.Get("Content-Length")); err == nil && n > w.limit && w.method != http.MethodHead && status != http.StatusNotModified {
		w.over = true
	}
}

// Write implements io.Writer. Beyond the limit it fails, so that the origin is
// not read in vain.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.over || w.body.Len()+len(p) > w.limit {
		w.over = true
		return 0, errTooLarge
	}
	return w.body.Write(p)
}

// Flush implements http.Flusher: there is nobody to flush to.
func (*recorder) Flush() {}

type jsonResponse struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"` // ALB
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"` // ALB, if the target group has it on
	Cookies           []string            `json:"cookies,omitempty"`           // payload 2.0
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// encode writes a recorded response in the form that the event's sender reads.
func (e *event) encode(w *recorder, kind shape) []byte {
	w.WriteHeader(http.StatusOK)
	out := jsonResponse{StatusCode: w.status}
	if kind == loadBalancer {
		out.StatusDescription = strings.TrimSpace(strconv.Itoa(w.status) + " " + http.StatusText(w.status))
	}
	h := w.sent
	if w.method != http.MethodHead && w.status != http.StatusNotModified {
		h.Del("Content-Length") // the platform counts itself
	}
	switch {
	case kind == loadBalancer && len(e.MultiHeaders) > 0:
		out.MultiValueHeaders = h
	case kind == loadBalancer:
		out.Headers = joined(h)
		if cookies := h["Set-Cookie"]; len(cookies) > 0 {
			// A line of its own for each cookie cannot be written in this form; commas
			// would break them. The last one stays.
			out.Headers["Set-Cookie"] = cookies[len(cookies)-1]
		}
	default:
		out.Cookies = h["Set-Cookie"]
		h.Del("Set-Cookie")
		out.Headers = joined(h)
	}
	if body := w.body.Bytes(); utf8.Valid(body) && h.Get("Content-Encoding") == "" {
		out.Body = string(body)
	} else {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // it would make a page a third larger
	_ = enc.Encode(out)      // of strings and numbers
	return text.Bytes()
}

func joined(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, lines := range h {
		out[name] = strings.Join(lines, ", ")
	}
	return out
}
