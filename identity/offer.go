package identity

import (
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// Offer takes note of a decision, and returns the Set-Cookie field value that
// should go with its answer, or "" when none is due. Call it once for each
// decision, right after it, and in every mode: it is also what moves first hits.
//
// A cookie is due when a counted hit was charged to the address, and the client
// returned no valid cookie; or when its cookie was signed with an older secret,
// which keeps id and age. None is due while the store fails, for requests that do
// not count, and for clients that are known by something better or by no address.
//
// The caller must drop the cookie when a shared cache may store the answer
// (public, s-maxage, and the like): a cache would hand one visitor's cookie to
// all, or stop caching the page. Nothing has to be undone then.
//
// The rule for shared addresses: when a cookie comes back for the first time,
// within a day and to the address that it was issued to, its first hit is moved
// from the address to the cookies. As counters of an address cannot be lowered
// from here, the move is made good to the next newcomer: a first hit from that
// address by the same kind of browser is charged to the address's newcomers, a
// row that has the limits of one cookie, instead of to the address.
func (c *Cookies) Offer(r *core.Request, d *core.Decision) string {
	if d.Class != core.Counted || d.Err != nil {
		return ""
	}
	switch {
	case d.Identity.Proof == proofNewcomer:
		return c.newcomer(r, d)
	case d.Identity.Kind == rows.Cookie:
		return c.returned(r, d)
	case d.Identity.Kind != 0:
		return ""
	}
	if d.Outcome == core.Admit || d.Outcome == core.Refuse && !c.admittedOnly {
		return c.fresh(r, d)
	}
	return ""
}

func (c *Cookies) fresh(r *core.Request, d *core.Decision) string {
	if !d.Client.Addr.IsValid() {
		return "" // nobody's address: nothing bounds how many there are
	}
	return c.SetCookie(c.Issue(r.Time, d.Client.Addr), c.maxAge)
}

// newcomer books a first hit that went to the newcomers' row.
func (c *Cookies) newcomer(r *core.Request, d *core.Decision) string {
	at := c.prefix(d.Client.Addr)
	switch d.Outcome {
	case core.Admit:
		c.newcomers.spend(at, userAgent(r))
		return c.fresh(r, d)
	case core.Refuse:
		// The address may have room where its newcomers have none.
		c.newcomers.close(at, userAgent(r), r.Time.Add(d.RetryAfter))
		if !c.admittedOnly {
			return c.fresh(r, d)
		}
	}
	return ""
}

// returned books the hit of a client that returned its cookie.
func (c *Cookies) returned(r *core.Request, d *core.Decision) string {
	if d.Outcome != core.Admit {
		return ""
	}
	t, key, ok := c.read(r)
	if !ok {
		return ""
	}
	age := r.Time.Sub(t.issued())
	if at := c.prefix(d.Client.Addr); age < newcomerLife && d.Client.Addr.IsValid() && c.seen.first(t.id(), r.Time) && t.place() == c.keys[key].placeOf(at) {
		c.newcomers.earn(at, userAgent(r), r.Time)
	}
	if key == 0 {
		return ""
	}
	place := c.keys[0].placeOf(c.prefix(d.Client.Addr))
	copy(t[25:28], place[:])
	c.keys[0].sign(&t)
	return c.SetCookie(t.encode(), c.maxAge-max(0, age.Truncate(time.Second)))
}
