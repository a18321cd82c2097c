package lambda

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
)

// shape is the kind of an event.
type shape uint8

const (
	unknown        shape = iota
	restAuthorizer       // REST API, type REQUEST
	httpAuthorizer1
	httpAuthorizer2
	tokenAuthorizer  // REST API, type TOKEN: says nothing of the request
	socketAuthorizer // WebSocket API: no page
	functionURL      // and the HTTP API's proxy integration, which has the same form
	loadBalancer
)

// event is the union of the shapes, as the vendor documents them. All of it but
// ARNs and requestContext was written by the client.
type event struct {
	Version   string `json:"version"`
	Type      string `json:"type"`
	MethodARN string `json:"methodArn"`
	RouteARN  string `json:"routeArn"`

	Path            string              `json:"path"` // 1.0 and ALB
	HTTPMethod      string              `json:"httpMethod"`
	RawPath         string              `json:"rawPath"` // 2.0
	RawQuery        string              `json:"rawQueryString"`
	Cookies         []string            `json:"cookies"` // 2.0; also in headers for some senders
	Headers         map[string]string   `json:"headers"`
	MultiHeaders    map[string][]string `json:"multiValueHeaders"`
	Query           map[string]string   `json:"queryStringParameters"`
	MultiQuery      map[string][]string `json:"multiValueQueryStringParameters"`
	Body            string              `json:"body"`
	IsBase64Encoded bool                `json:"isBase64Encoded"`

	Context struct {
		ELB *struct {
			TargetGroupARN string `json:"targetGroupArn"`
		} `json:"elb"`
		HTTP *struct {
			Method   string `json:"method"`
			SourceIP string `json:"sourceIp"`
		} `json:"http"`
		Identity *struct {
			SourceIP string `json:"sourceIp"`
		} `json:"identity"`
		Stage      string `json:"stage"`
		DomainName string `json:"domainName"`
		EventType  string `json:"eventType"` // WebSocket APIs only
	} `json:"requestContext"`
}

var errNoEvent = errors.New("stile: this event is no request: want one of an API Gateway REQUEST authorizer, a function URL or an ALB")

// parse reads an event and tells its shape.
func parse(payload []byte) (*event, shape, error) {
	e := &event{}
	if err := json.Unmarshal(payload, e); err != nil {
		// The error could quote what a visitor sent.
		return nil, unknown, errNoEvent
	}
	switch c := &e.Context; {
	case e.Type == "TOKEN" && e.MethodARN != "":
		return e, tokenAuthorizer, nil
	case e.Type == "REQUEST" && c.EventType != "":
		return e, socketAuthorizer, nil
	case e.Type == "REQUEST" && e.Version == "2.0":
		return e, httpAuthorizer2, nil
	case e.Type == "REQUEST" && e.Version == "1.0":
		return e, httpAuthorizer1, nil
	case e.Type == "REQUEST" && e.MethodARN != "":
		return e, restAuthorizer, nil
	case c.ELB != nil:
		return e, loadBalancer, nil
	case e.Version == "2.0" && c.HTTP != nil:
		return e, functionURL, nil
	}
	return nil, unknown, errNoEvent
}

// header returns the fields in net/http's form.
func (e *event) header() http.Header {
	h := make(http.Header, max(len(e.Headers), len(e.MultiHeaders)))
	if len(e.MultiHeaders) > 0 {
		// Names that differ in case only would each overwrite the other.
		for _, name := range sorted(e.MultiHeaders) {
			k := textproto.CanonicalMIMEHeaderKey(name)
			h[k] = append(h[k], e.MultiHeaders[name]...)
		}
	} else {
		for _, name := range sorted(e.Headers) {
			k := textproto.CanonicalMIMEHeaderKey(name)
			h[k] = append(h[k], e.Headers[name])
		}
	}
	if len(e.Cookies) > 0 {
		h["Cookie"] = []string{strings.Join(e.Cookies, "; ")}
	}
	// There is no WebSocket behind any of these events, and what claims to be one
	// is not counted.
	h.Del("Upgrade")
	h.Del("Connection")
	return h
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// target returns the request's URL without scheme and host. A path that does
// not decode is taken as it stands: it must not escape the count.
func (e *event) target() *url.URL {
	raw, query := e.Path, e.rawQuery()
	if e.Context.HTTP != nil {
		raw = e.RawPath
		if s := e.Context.Stage; s != "" && s != "$default" {
			// The HTTP API puts a named stage before the path.
			if rest, ok := strings.CutPrefix(raw, "/"+s); ok && (rest == "" || rest[0] == '/') {
				raw = rest
			}
		}
	}
	if !strings.HasPrefix(raw, "/") {
		raw = "/" + raw
	}
	u := &url.URL{Path: raw, RawQuery: query}
	if decoded, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = decoded, raw
	}
	return u
}

// rawQuery puts a query together where the event has it in parts: an ALB's in
// the encoding in which it was sent, a REST API's decoded. The order among
// different names is lost.
func (e *event) rawQuery() string {
	if e.Context.HTTP != nil {
		return e.RawQuery
	}
	multi := e.MultiQuery
	if len(multi) == 0 {
		multi = make(map[string][]string, len(e.Query))
		for k, v := range e.Query {
			multi[k] = []string{v}
		}
	}
	if e.Context.ELB == nil {
		return url.Values(multi).Encode()
	}
	var b strings.Builder
	for _, name := range sorted(multi) {
		for _, value := range multi[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(name)
			b.WriteByte('=')
			b.WriteString(value)
		}
	}
	return b.String()
}

func (e *event) method() string {
	if e.Context.HTTP != nil {
		return e.Context.HTTP.Method
	}
	return e.HTTPMethod
}

func (e *event) host(h http.Header) string {
	if host := h.Get("Host"); host != "" {
		return host
	}
	return e.Context.DomainName
}

// client is the other end of the connection that the platform accepted: what
// it says itself, or, for an ALB, which says it nowhere else, the entry that it
// appended to X-Forwarded-For.
func (e *event) client(h http.Header) netip.Addr {
	var text string
	switch c := &e.Context; {
	case c.HTTP != nil:
		text = c.HTTP.SourceIP
	case c.Identity != nil:
		text = c.Identity.SourceIP
	case c.ELB != nil:
		if lines := h["X-Forwarded-For"]; len(lines) > 0 {
			text = lines[len(lines)-1]
			text = text[strings.LastIndexByte(text, ',')+1:]
		}
	}
	a, _ := core.ParseClient(text)
	return a
}

// request is the event as core sees it.
func (e *event) request(now time.Time) *core.Request {
	h, u := e.header(), e.target()
	client := e.client(h)
	return &core.Request{
		Method: e.method(), Host: e.host(h), Path: u.Path, RawQuery: u.RawQuery, Header: core.Fields(h),
		Peer: client, Platform: client, Time: now,
	}
}

// trace returns the id by which the platform's logs know a request: the root
// of X-Amzn-Trace-Id.
func trace(h core.Header) string {
	lines := h.Values("X-Amzn-Trace-Id")
	if len(lines) == 0 {
		return ""
	}
	for _, part := range strings.Split(lines[0], ";") {
		if id, ok := strings.CutPrefix(strings.TrimSpace(part), "Root="); ok && len(id) <= 64 {
			return id
		}
	}
	return ""
}
