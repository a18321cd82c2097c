package gate

import (
	"net/http"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
)

// Cookies gives visitors the cookie by which they are counted apart from others
// behind their address; identity.Cookies does. It is safe for concurrent use.
type Cookies interface {
	// Offer is called once for each decision. It returns the Set-Cookie field
	// value that should go with the answer, or "".
	Offer(r *core.Request, d *core.Decision) string
}

// setCookie adds the call's cookie to an answer, unless a shared cache may keep
// that: it would hand one visitor's cookie to all.
func (c *call) setCookie(status int, h http.Header) {
	if c.cookie != "" && !answer.Shareable(status, h) {
		h.Add("Set-Cookie", c.cookie)
	}
}
