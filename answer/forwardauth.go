package answer

import (
	"net/http"
	"strconv"

	"github.com/stilehq/stile/core"
)

// The marker fields by which a proxy that knows allow and deny only (nginx's
// auth_request: 2xx, 401 and 403) learns the rest, and hands it to the page
// that answers the visitor.
const (
	MarkOutcome = "X-Stile-Outcome" // "limited" or "unavailable"
	MarkRef     = "X-Stile-Ref"     // the reference id
)

// The values of MarkOutcome.
const (
	OutcomeLimited     = "limited"
	OutcomeUnavailable = "unavailable"
)

// Allowed builds a forward-auth endpoint's yes: exactly 200 (Envoy takes no
// other 2xx), no body, and the RateLimit fields for a proxy that passes them on.
func (w *Writer) Allowed(d *core.Decision) Answer {
	h := make(http.Header, 8)
	h["Cache-Control"] = []string{"no-store"}
	w.Fields(h, d)
	return Answer{Status: http.StatusOK, Header: h}
}

// Marked builds the no for a proxy in nginx's manner: a 403 whose fields say
// what it is, for the proxy's own error page or for the endpoint that renders
// ours. The proxy drops a body, so there is none.
func (w *Writer) Marked(d *core.Decision, ref string) Answer {
	h := make(http.Header, 10)
	h["Cache-Control"] = []string{"no-store"}
	h[MarkRef] = []string{cleanRef(ref)}
	if d.Outcome == core.Unavailable {
		h[MarkOutcome] = []string{OutcomeUnavailable}
		h["Retry-After"] = []string{strconv.FormatInt(Seconds(unavailableRetry), 10)}
	} else {
		h[MarkOutcome] = []string{OutcomeLimited}
		h["Retry-After"] = []string{strconv.FormatInt(Seconds(d.RetryAfter), 10)}
		w.setFields(h, d)
	}
	return Answer{Status: http.StatusForbidden, Header: h}
}
