package identity

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

const (
	// DefaultCookieName makes browsers refuse the cookie from a sibling domain
	// or over plain http (RFC 6265bis, cookie name prefixes).
	DefaultCookieName = "__Host-stile"
	// DefaultCookieMaxAge is how long a cookie stays a key.
	DefaultCookieMaxAge = 30 * 24 * time.Hour

	// minSecret is 128 bits in base64, without padding.
	minSecret = 22
	// maxSecrets is the new one, the old one, and room for a second change.
	maxSecrets = 4
	// clockSlip is how far another instance's clock may run ahead.
	clockSlip = 5 * time.Minute
)

// CookieConfig configures [Cookies]. Secrets is required.
type CookieConfig struct {
	Name string // empty = [DefaultCookieName]
	// Secrets are the keys of the signature, the newest first: it signs, all
	// verify. At least 22 characters each, 1 to 4 of them.
	Secrets []string
	// Site keeps the cookies of two sites that share a secret apart.
	Site string
	// MaxAge is a cookie's life, counted from its issue; 0 = 30 days. Whole
	// seconds, 1 h to 400 days (browsers keep none longer).
	MaxAge time.Duration
	// IPv6Prefix is the length of an address key, as in core.ClientSource;
	// 0 = 64.
	IPv6Prefix int
	// AdmittedOnly gives no cookie with a 429. By default one goes with it, so
	// that a person at an address that somebody else has used up gets in by
	// reloading once. What a client that mints cookies gets is the same at worst
	// (the network's limit), and less in between; docs/identities.md has both.
	AdmittedOnly bool
}

// Cookies signs visitor cookies and recognises those that come back. It is safe
// for concurrent use.
//
// A cookie proves nothing about a person. It only lets people behind one address
// be counted apart, within what the address and the network are worth.
type Cookies struct {
	name         string
	keys         []*cookieKey
	maxAge       time.Duration
	ipv6         int
	admittedOnly bool
	newcomers    newcomers
	seen         seen
}

func (c *CookieConfig) check() error {
	var errs []error
	if len(c.Secrets) == 0 || len(c.Secrets) > maxSecrets {
		errs = append(errs, fmt.Errorf("identity: %d cookie secrets: want 1 to %d", len(c.Secrets), maxSecrets))
	}
	for i, s := range c.Secrets {
		if len(s) < minSecret {
			errs = append(errs, fmt.Errorf("identity: cookie secret %d is shorter than %d characters", i+1, minSecret))
		}
	}
	if !isToken(c.Name) {
		errs = append(errs, fmt.Errorf("identity: %q is no name of a cookie", c.Name))
	}
	if c.MaxAge < time.Hour || c.MaxAge > 400*24*time.Hour || c.MaxAge%time.Second != 0 {
		errs = append(errs, fmt.Errorf("identity: a cookie's age of %v: want whole seconds, 1 h to 400 days", c.MaxAge))
	}
	if c.IPv6Prefix < 32 || c.IPv6Prefix > 64 {
		errs = append(errs, fmt.Errorf("identity: IPv6 prefix %d: want 32 to 64", c.IPv6Prefix))
	}
	return errors.Join(errs...)
}

// NewCookies returns the cookies of a site. The error joins everything that is
// wrong with the configuration; no message holds a secret.
func NewCookies(c CookieConfig) (*Cookies, error) {
	if c.Name == "" {
		c.Name = DefaultCookieName
	}
	if c.MaxAge == 0 {
		c.MaxAge = DefaultCookieMaxAge
	}
	if c.IPv6Prefix == 0 {
		c.IPv6Prefix = 64
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	out := &Cookies{name: c.Name, maxAge: c.MaxAge, ipv6: c.IPv6Prefix, admittedOnly: c.AdmittedOnly}
	for _, s := range c.Secrets {
		out.keys = append(out.keys, newCookieKey(s, c.Site, c.Name))
	}
	out.newcomers.init()
	return out, nil
}

var _ core.Identifier = (*Cookies)(nil)

// Identify implements core.Identifier. A cookie that came back is a key of kind
// Cookie, with its issue as Anchor. A client without one is the zero Identity,
// unless newcomers at its address have earned room; see [Cookies.Offer].
func (c *Cookies) Identify(r *core.Request, client netip.Addr) core.Identity {
	if t, _, ok := c.read(r); ok {
		return core.Identity{Kind: rows.Cookie, ID: t.encodeID(), Anchor: t.issued(), Proof: proofCookie}
	}
	if c.newcomers.count.Load() == 0 || !client.IsValid() || !navigates(r) {
		return core.Identity{}
	}
	at := c.prefix(client)
	if !c.newcomers.room(at, userAgent(r), r.Time) {
		return core.Identity{}
	}
	return core.Identity{Kind: rows.Cookie, ID: c.keys[0].newcomerID(at), Proof: proofNewcomer}
}

const (
	proofCookie   = "cookie"
	proofNewcomer = "newcomer"
)

// read returns the request's valid cookie and the number of the key that signed
// it: 0 is the newest.
func (c *Cookies) read(r *core.Request) (t token, key int, ok bool) {
	value, ok := cookieValue(r.Header, c.name)
	if !ok || len(value) != tokenText {
		return token{}, 0, false
	}
	// Decoding from a copy on the stack; Strict and the exact length leave one
	// spelling of each token.
	var text [tokenText]byte
	copy(text[:], value)
	if n, err := encoding.Decode(t[:], text[:]); err != nil || n != len(t) {
		return token{}, 0, false
	}
	for i, k := range c.keys {
		if k.verify(&t) {
			age := r.Time.Sub(t.issued())
			return t, i, age < c.maxAge && age > -clockSlip
		}
	}
	return token{}, 0, false
}

// Issue returns the value of a new cookie for a client at an address. Prefer
// [Cookies.Offer], which knows when a cookie is due.
func (c *Cookies) Issue(now time.Time, client netip.Addr) string {
	return c.keys[0].issue(now, c.prefix(client)).encode()
}

// SetCookie returns the Set-Cookie field value for a cookie of that value which
// lives for maxAge: the attributes that __Host- demands, out of reach of
// scripts, and sent along when a visitor follows a link from elsewhere.
func (c *Cookies) SetCookie(value string, maxAge time.Duration) string {
	return fmt.Sprintf("%s=%s; Path=/; Max-Age=%d; Secure; HttpOnly; SameSite=Lax", c.name, value, max(0, int64(maxAge/time.Second)))
}

// Name returns the cookie's name.
func (c *Cookies) Name() string { return c.name }

// prefix is the address key of a client, as core makes it.
func (c *Cookies) prefix(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = c.ipv6
	}
	p, _ := a.Prefix(bits)
	return p
}

// encoding is URL-safe, so that the value needs no quotes, and strict.
var encoding = base64.RawURLEncoding.Strict()

// isToken reports whether s is a short token of RFC 9110, as names of cookies are.
func isToken(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}
