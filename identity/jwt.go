package identity

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

const (
	// MaxTokenBytes bounds a token. Identity tokens have one to two thousand.
	MaxTokenBytes = 8 << 10
	// maxUserID bounds the claim that names a user, in bytes.
	maxUserID = 256
	// knownTokens bounds each of the two generations of verified tokens that are
	// remembered, so that a signature is checked once and not for each page.
	knownTokens = 4096
)

// publicAlgorithms are those of public keys. With "none" or a shared secret
// anybody who can read the published keys could sign.
var publicAlgorithms = map[string]bool{
	"RS256": true, "RS384": true, "RS512": true, "PS256": true, "PS384": true, "PS512": true,
	"ES256": true, "ES384": true, "ES512": true, "EdDSA": true,
}

// JWTConfig configures [Tokens]. Keys, Issuer, Audience, Algorithms and one of
// Header and Cookie are required.
type JWTConfig struct {
	Keys       *KeySet
	Issuer     string   // the iss that tokens must have
	Audience   string   // must be among a token's aud
	Algorithms []string // the only ones taken, of public keys
	Header     string   // canonical; "Bearer " before the token is dropped
	Cookie     string
	Claim      string        // names the user; empty = "sub"
	Leeway     time.Duration // how wrong clocks may be; 0 to 5 min
	// Namespace is put before the user's id and a colon, to keep the users of two
	// services apart; empty = nothing is.
	Namespace string
	Proof     string // what logs call it; empty = "jwt"
}

// Tokens recognises users by the signed tokens of a sign-in service. It is safe
// for concurrent use.
type Tokens struct {
	cfg   JWTConfig
	known knownUsers
	bad   knownUsers // tokens that stay bad: an expired one comes with every page
}

// NewTokens returns an identifier of users. The error joins everything that is
// wrong with the configuration.
func NewTokens(c JWTConfig) (*Tokens, error) {
	if c.Claim == "" {
		c.Claim = "sub"
	}
	if c.Proof == "" {
		c.Proof = "jwt"
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("identity: "+format, args...)) }
	if c.Keys == nil {
		bad("tokens need a set of keys")
	}
	if c.Issuer == "" || c.Audience == "" {
		bad("tokens need an issuer and an audience: one for another service would do")
	}
	if len(c.Algorithms) == 0 {
		bad("no algorithm is allowed")
	}
	for _, a := range c.Algorithms {
		if !publicAlgorithms[a] {
			bad("%q is not an algorithm of public keys", a)
		}
	}
	if (c.Header == "") == (c.Cookie == "") {
		bad("tokens come in a header or in a cookie, one of them")
	}
	if c.Cookie != "" && !isToken(c.Cookie) {
		bad("%q is no name of a cookie", c.Cookie)
	}
	if c.Leeway < 0 || c.Leeway > 5*time.Minute {
		bad("a leeway of %v: want 0 to 5m", c.Leeway)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.Header = textproto.CanonicalMIMEHeaderKey(c.Header)
	return &Tokens{cfg: c}, nil
}

var _ core.Identifier = (*Tokens)(nil)

// Identify implements core.Identifier: the user whose valid token the request
// carries, else nobody.
func (t *Tokens) Identify(r *core.Request, _ netip.Addr) core.Identity {
	text, ok := t.carried(r)
	if !ok || len(text) > MaxTokenBytes || strings.Count(text, ".") != 2 {
		return core.Identity{}
	}
	held := t.cfg.Keys.held.Load()
	var buf [MaxTokenBytes]byte
	sum := sha256.Sum256(buf[:copy(buf[:], text)])
	u, ok := t.known.get(sum, held)
	if !ok {
		if _, bad := t.bad.get(sum, held); bad {
			return core.Identity{}
		}
		var err error
		if u, err = t.verify(text, r.Time); err != nil {
			if errors.Is(err, jwt.ErrTokenSignatureInvalid) || errors.Is(err, jwt.ErrTokenExpired) {
				t.bad.put(sum, held, user{})
			}
			return core.Identity{}
		}
		t.known.put(sum, held, u)
	}
	if now := r.Time; !now.Before(u.until.Add(t.cfg.Leeway)) || now.Add(t.cfg.Leeway).Before(u.from) {
		return core.Identity{}
	}
	return core.Identity{Kind: rows.User, ID: u.id, Proof: t.cfg.Proof}
}

// carried returns the token as it was sent. Two are none.
func (t *Tokens) carried(r *core.Request) (string, bool) {
	if r.Header == nil {
		return "", false
	}
	if t.cfg.Cookie != "" {
		return cookieValue(r.Header, t.cfg.Cookie)
	}
	v := r.Header.Values(t.cfg.Header)
	if len(v) != 1 {
		return "", false
	}
	text := trimSpace(v[0])
	if len(text) > 7 && strings.EqualFold(text[:7], "Bearer ") {
		text = trimSpace(text[7:])
	}
	return text, text != ""
}

// A user is what one valid token says.
type user struct {
	id          string
	from, until time.Time
}

// verify checks a token in full, at time now. Its errors are for errors.Is only.
func (t *Tokens) verify(text string, now time.Time) (user, error) {
	parser := jwt.NewParser(
		jwt.WithValidMethods(t.cfg.Algorithms), jwt.WithIssuer(t.cfg.Issuer), jwt.WithAudience(t.cfg.Audience),
		jwt.WithLeeway(t.cfg.Leeway), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithJSONNumber(),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return now }),
	)
	claims := jwt.MapClaims{}
	if _, err := parser.ParseWithClaims(text, claims, t.key); err != nil {
		return user{}, err
	}
	u := user{id: userID(claims[t.cfg.Claim])}
	if u.id == "" {
		return user{}, errNoUser
	}
	u.id = strings.Clone(u.id)
	if t.cfg.Namespace != "" {
		u.id = t.cfg.Namespace + ":" + u.id
	}
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil {
		return user{}, errNoUser
	}
	u.until = exp.Time
	for _, get := range []func() (*jwt.NumericDate, error){claims.GetNotBefore, claims.GetIssuedAt} {
		if at, err := get(); err == nil && at != nil && at.After(u.from) {
			u.from = at.Time
		}
	}
	return u, nil
}

var (
	errNoKey  = errors.New("no key")
	errNoUser = errors.New("no user")
)

// key finds the keys for a token's header.
func (t *Tokens) key(token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errNoKey // extensions that must be understood (RFC 7515 §4.1.11): none is
	}
	id, _ := token.Header["kid"].(string)
	if len(id) > 256 {
		return nil, errNoKey
	}
	var set jwt.VerificationKeySet
	for _, k := range t.cfg.Keys.find(id, token.Method.Alg()) {
		set.Keys = append(set.Keys, k.key)
	}
	if len(set.Keys) == 0 {
		return nil, errNoKey
	}
	return set, nil
}

// userID reads a claim that names a user; "" when it is none: text, or a whole
// number as some services have.
func userID(claim any) string {
	var id string
	switch v := claim.(type) {
	case string:
		id = v
	case json.Number:
		if _, err := v.Int64(); err == nil {
			id = v.String()
		}
	}
	if len(id) > maxUserID || !utf8.ValidString(id) {
		return ""
	}
	return id
}

// knownUsers remembers verified tokens by their SHA-256. An entry holds only as
// long as the keys that verified it are the current set.
type knownUsers struct {
	mu       sync.Mutex
	keys     *heldKeys
	now, old map[[sha256.Size]byte]user
}

func (k *knownUsers) get(sum [sha256.Size]byte, keys *heldKeys) (user, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys != keys {
		return user{}, false
	}
	u, ok := k.now[sum]
	if !ok {
		u, ok = k.old[sum]
	}
	return u, ok
}

func (k *knownUsers) put(sum [sha256.Size]byte, keys *heldKeys, u user) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys != keys {
		k.keys, k.now, k.old = keys, nil, nil
	}
	if k.now == nil || len(k.now) >= knownTokens {
		k.now, k.old = map[[sha256.Size]byte]user{}, k.now
	}
	k.now[sum] = u
}
