package answer

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
)

// Headers says which responses carry the RateLimit and X-RateLimit fields.
type Headers uint8

const (
	// PrivateOnly: every counted response, except one that a shared cache may
	// store, since the next visitor would read this one's numbers. The default.
	PrivateOnly Headers = iota
	// Always: every counted response, for sites without any shared cache.
	Always
	// LimitedOnly: the 429 alone.
	LimitedOnly
)

// String returns the policy file's word.
func (h Headers) String() string {
	switch h {
	case PrivateOnly:
		return "private-only"
	case Always:
		return "always"
	case LimitedOnly:
		return "limited-only"
	}
	return "invalid"
}

// ParseHeaders reads the policy file's word; "" is PrivateOnly.
func ParseHeaders(s string) (Headers, error) {
	switch s {
	case "", "private-only":
		return PrivateOnly, nil
	case "always":
		return Always, nil
	case "limited-only":
		return LimitedOnly, nil
	}
	return 0, fmt.Errorf("answer: headers %q: want private-only, always or limited-only", s)
}

// The fields, in the form in which http.Header keeps names.
const (
	fieldPolicy    = "Ratelimit-Policy"
	fieldLimit     = "Ratelimit"
	fieldXLimit    = "X-Ratelimit-Limit"
	fieldXRemains  = "X-Ratelimit-Remaining"
	fieldXReset    = "X-Ratelimit-Reset"
	maxSFInteger   = 999_999_999_999_999 // RFC 9651 §3.3.1
	fieldTextBytes = 256
)

// Annotate adds the fields to a response that is let through: status and h are
// the origin's. It does so only for a counted decision and as the headers mode
// allows. What the origin itself says about limits stays: its RateLimit lists
// get a line more, its X-RateLimit fields are not overwritten.
func (w *Writer) Annotate(status int, h http.Header, d *core.Decision) {
	if len(d.States) == 0 || w.headers == LimitedOnly {
		return
	}
	if w.headers == PrivateOnly && sharedMayStore(status, h) {
		return
	}
	w.setFields(h, d)
}

// Fields adds the fields to an answer that no cache sees: what a forward-auth
// endpoint or an authorizer hands to its proxy. Only LimitedOnly leaves them out.
func (w *Writer) Fields(h http.Header, d *core.Decision) {
	if w.headers != LimitedOnly || d.Refused() {
		w.setFields(h, d)
	}
}

// setFields writes draft-ietf-httpapi-ratelimit-headers-11 (one item for each
// bucket) and the older X-RateLimit-* (the binding bucket; Reset in delta
// seconds, since there the vendors disagree). This is the only place that knows
// their form: the draft still moves. All values are cut from one string.
func (w *Writer) setFields(h http.Header, d *core.Decision) {
	if len(d.States) == 0 {
		return
	}
	var space [fieldTextBytes]byte
	b := space[:0]
	for i := range d.States {
		s := &d.States[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSFString(b, s.Bucket)
		b = appendParam(b, ";q=", s.Limit)
		b = appendParam(b, ";w=", max(1, int64(s.Window/time.Second)))
	}
	policyEnd := len(b)
	for i := range d.States {
		s := &d.States[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSFString(b, s.Bucket)
		b = appendParam(b, ";r=", s.Remaining)
		b = appendParam(b, ";t=", ceilSeconds(s.Reset))
	}
	limitEnd := len(b)
	x := d.Binding >= 0 && d.Binding < len(d.States)
	var xLimitEnd, xRemainsEnd int
	if x {
		s := &d.States[d.Binding]
		b = appendParam(b, "", s.Limit)
		xLimitEnd = len(b)
		b = appendParam(b, "", s.Remaining)
		xRemainsEnd = len(b)
		b = appendParam(b, "", ceilSeconds(s.Reset))
	}
	text := string(b)
	values := make([]string, 5)
	add := func(i int, name, value string) {
		values[i] = value
		if old := h[name]; len(old) > 0 {
			if strings.HasPrefix(name, "X-") {
				return
			}
			h[name] = append(old[:len(old):len(old)], value)
			return
		}
		h[name] = values[i : i+1 : i+1]
	}
	add(0, fieldPolicy, text[:policyEnd])
	add(1, fieldLimit, text[policyEnd:limitEnd])
	if x {
		add(2, fieldXLimit, text[limitEnd:xLimitEnd])
		add(3, fieldXRemains, text[xLimitEnd:xRemainsEnd])
		add(4, fieldXReset, text[xRemainsEnd:])
	}
}

func appendParam(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, min(max(n, 0), maxSFInteger), 10)
}

// appendSFString writes a structured-field string (RFC 9651 §3.3.3): printable
// ASCII, quote and backslash escaped. Other bytes become '?': the field is to be
// ignored as a whole when malformed.
func appendSFString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			b = append(b, '?')
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
