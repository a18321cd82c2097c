package answer

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stilehq/stile/core"
)

// MaxBody is the most bytes that a built-in body has, whatever the configured
// texts. A refused crawler must stay cheaper to answer than a served one.
const MaxBody = 2048

// unavailableRetry is what a visitor is told to wait when the store is down: as
// long as a breaker's half-open probe needs, roughly; nobody knows better.
const unavailableRetry = 30 * time.Second

// A Config says how answers look. The zero value works: it has no contact.
type Config struct {
	// Site names the site in titles; "" leaves it out.
	Site string
	// Contact is where a person who was limited by mistake writes to: a mailto:,
	// tel:, http: or https: URL, which becomes a link, or any other short text.
	Contact string
	// Crawlers says in one or two sentences how a declared crawler is exempted;
	// "" = DefaultCrawlers.
	Crawlers string
	// Headers says which responses carry the RateLimit fields.
	Headers Headers
	// HTML and JSON are texts with {{placeholders}} that replace the built-in
	// bodies of the 429; "" = built in. See [Placeholders].
	HTML, JSON string
}

// DefaultCrawlers is how a declared crawler is exempted unless a Config says it
// in other words.
const DefaultCrawlers = "Search engines pass when their address proves who they are, not by User-Agent. To have yours verified, ask the contact."

// maxText bounds each configured text, so that MaxBody holds.
const maxText = 200

// A Writer builds answers. It is immutable and safe for concurrent use.
type Writer struct {
	headers     Headers
	limited     page
	unavailable page
	down        page
}

// A page is one kind of answer in its three forms, and the policy that lets its
// own inline style and script run.
type page struct {
	html, json, problem *template
	csp                 string
}

// New checks a Config and prepares every body. The error lists all that is
// wrong with it: a text that is too long, an unknown placeholder, a JSON
// template that does not make JSON, an inline script that changes per answer.
func New(cfg Config) (*Writer, error) {
	var errs []error
	for _, f := range []struct{ name, text string }{
		{"site", cfg.Site}, {"contact", cfg.Contact}, {"crawlers", cfg.Crawlers},
	} {
		if len(f.text) > maxText {
			errs = append(errs, fmt.Errorf("answer: %s has %d bytes, at most %d fit the page", f.name, len(f.text), maxText))
		}
	}
	if cfg.Headers > LimitedOnly {
		errs = append(errs, fmt.Errorf("answer: unknown headers mode %d", cfg.Headers))
	}
	if cfg.Crawlers == "" {
		cfg.Crawlers = DefaultCrawlers
	}
	w := &Writer{headers: cfg.Headers}
	for _, p := range []struct {
		to                  *page
		html, json, problem string
	}{
		{&w.limited, orDefault(cfg.HTML, limitedHTML), orDefault(cfg.JSON, limitedJSON), limitedProblem},
		{&w.unavailable, unavailableHTML, unavailableJSON, unavailableProblem},
		{&w.down, downHTML, downJSON, downProblem},
	} {
		var err error
		if *p.to, err = newPage(&cfg, p.html, p.json, p.problem); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return w, nil
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// An Answer is a complete response. Header and Body belong to the caller.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // also for HEAD: whoever writes the answer leaves it out
}

// Write sends the answer; to a HEAD request it sends the head alone. An error
// of the connection is nobody's concern any more and is dropped.
func (a Answer) Write(rw http.ResponseWriter, method string) {
	h := rw.Header()
	for k, v := range a.Header {
		h[k] = v
	}
	h["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	rw.WriteHeader(a.Status)
	if method != http.MethodHead && len(a.Body) > 0 {
		_, _ = rw.Write(a.Body)
	}
}

// A Request is what an answer depends on besides the decision.
type Request struct {
	Accept []string // the lines of the Accept field, as received
	Ref    string   // see NewRef; also in the log. Another's text is replaced by "-"
	Now    time.Time
}

// Limited builds the 429 of a refused decision. It looks at d's States, Binding
// and RetryAfter only; with none of them it asks for one second.
func (w *Writer) Limited(d *core.Decision, q Request) Answer {
	v := values{ref: cleanRef(q.Ref), retry: Seconds(d.RetryAfter), now: q.Now, states: d.States}
	if d.Binding >= 0 && d.Binding < len(d.States) {
		v.binding = &d.States[d.Binding]
	}
	a := w.limited.answer(http.StatusTooManyRequests, q.Accept, &v)
	w.setFields(a.Header, d)
	return a
}

// Unavailable builds the 503 of a policy that fails closed. It never looks like
// a limit: no RateLimit field, another title, another code.
func (w *Writer) Unavailable(q Request) Answer {
	v := values{ref: cleanRef(q.Ref), retry: Seconds(unavailableRetry), now: q.Now}
	return w.unavailable.answer(http.StatusServiceUnavailable, q.Accept, &v)
}

// OriginDown builds the answer for an origin that could not be reached: status
// is 502, or 504 when it did not answer in time. The page says that it is the
// site that fails, and nothing of how.
func (w *Writer) OriginDown(status int, q Request) Answer {
	v := values{ref: cleanRef(q.Ref), now: q.Now}
	return w.down.answer(status, q.Accept, &v)
}

func (p *page) answer(status int, accept []string, v *values) Answer {
	h := make(http.Header, 12)
	// One array serves all one-element values.
	one := make([]string, 0, 8)
	set := func(name, value string) {
		one = append(one, value)
		h[name] = one[len(one)-1 : len(one) : len(one)]
	}
	v.status = status
	var body *template
	switch Negotiate(accept) {
	case JSON:
		body = p.json
		set("Content-Type", "application/json")
	case Problem:
		body = p.problem
		set("Content-Type", "application/problem+json")
	default:
		body = p.html
		set("Content-Type", "text/html; charset=utf-8")
		set("Content-Security-Policy", p.csp)
	}
	if v.retry > 0 {
		set("Retry-After", strconv.FormatInt(v.retry, 10))
	}
	// RFC 6585 forbids to store a 429; rules for errors in front of us may not know.
	set("Cache-Control", "no-store")
	set("Vary", "Accept")
	set("X-Content-Type-Options", "nosniff")
	return Answer{Status: status, Header: h, Body: body.render(v)}
}

// Seconds rounds a wait up to whole seconds, at least 1, as Retry-After wants
// (RFC 9110 §10.2.3 knows no fractions, and 0 would invite the next refusal).
func Seconds(d time.Duration) int64 {
	if d <= time.Second {
		return 1
	}
	return ceilSeconds(d)
}

// ceilSeconds rounds up to whole seconds; a negative wait is none.
func ceilSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	s := int64(d / time.Second)
	if d%time.Second != 0 {
		s++
	}
	return s
}
