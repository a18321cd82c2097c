package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// signers are one key of each kind, made once.
var signers = sync.OnceValue(func() map[string]crypto.Signer {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return map[string]crypto.Signer{"rsa": r, "ec": e, "other": other, "ed": d}
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// published returns a key as a sign-in service publishes it.
func published(id string, s crypto.Signer) map[string]any {
	switch k := s.Public().(type) {
	case *rsa.PublicKey:
		return map[string]any{"kty": "RSA", "kid": id, "use": "sig", "alg": "RS256", "n": b64(k.N.Bytes()), "e": "AQAB"}
	case *ecdsa.PublicKey:
		raw, err := k.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(raw) / 2
		return map[string]any{"kty": "EC", "kid": id, "crv": "P-256", "x": b64(raw[1 : half+1]), "y": b64(raw[half+1:])}
	case ed25519.PublicKey:
		return map[string]any{"kty": "OKP", "kid": id, "crv": "Ed25519", "x": b64(k)}
	}
	panic("no such key")
}

func keySet(keys ...map[string]any) []byte {
	out, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return out
}

func defaultSet() []byte {
	s := signers()
	return keySet(published("r1", s["rsa"]), published("e1", s["ec"]), published("d1", s["ed"]))
}

func static(t testing.TB, set []byte) *KeySet {
	t.Helper()
	k, err := StaticKeySet(set)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newTokens(t testing.TB, change func(*JWTConfig)) *Tokens {
	t.Helper()
	c := JWTConfig{Issuer: "https://login.example.org", Audience: "site", Algorithms: []string{"RS256", "ES256", "EdDSA"}, Header: "Authorization", Leeway: 30 * time.Second}
	if change != nil {
		change(&c)
	}
	if c.Keys == nil {
		c.Keys = static(t, defaultSet())
	}
	out, err := NewTokens(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// claims are those of a good token at morning.
func claims(change ...any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": "https://login.example.org", "aud": "site", "sub": "alice", "iat": morning.Unix(), "exp": morning.Add(time.Hour).Unix()}
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == nil {
			delete(c, change[i].(string))
			continue
		}
		c[change[i].(string)] = change[i+1]
	}
	return c
}

func signed(kid, method string, key any, c jwt.MapClaims, header ...any) string {
	token := jwt.NewWithClaims(jwt.GetSigningMethod(method), c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	for i := 0; i < len(header); i += 2 {
		token.Header[header[i].(string)] = header[i+1]
	}
	text, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}

func bearing(field, text string, at time.Time) *core.Request {
	h := http.Header{}
	h.Set(field, text)
	return &core.Request{Method: "GET", Path: "/", Header: h, Time: at}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := signers()
	for name, text := range map[string]string{
		"RS256":            signed("r1", "RS256", s["rsa"], claims()),
		"ES256":            signed("e1", "ES256", s["ec"], claims()),
		"EdDSA":            signed("d1", "EdDSA", s["ed"], claims()),
		"several aud":      signed("e1", "ES256", s["ec"], claims("aud", []string{"other", "site"})),
		"no key id, alone": signed("", "RS256", s["rsa"], claims()),
		"no iat":           signed("e1", "ES256", s["ec"], claims("iat", nil)),
	} {
		tokens := newTokens(t, nil)
		for range 2 { // verified, and then remembered
			for _, field := range []string{text, "Bearer " + text, "bearer  " + text} {
				got := tokens.Identify(bearing("Authorization", field, morning), client)
				if want := (core.Identity{Kind: rows.User, ID: "alice", Proof: "jwt"}); got != want {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
			}
		}
	}
	inCookie := newTokens(t, func(c *JWTConfig) { c.Header, c.Cookie, c.Claim, c.Namespace = "", "session", "uid", "shop" })
	text := signed("e1", "ES256", s["ec"], claims("uid", 42))
	if got := inCookie.Identify(request("a=b; session="+text), client); got.ID != "shop:42" {
		t.Errorf("a token in a cookie, numbered user: %+v", got)
	}
	if got := inCookie.Identify(request("session="+text+"; session="+text), client); got.Kind != 0 {
		t.Errorf("a doubled cookie: %+v", got)
	}
}

// TestBadTokens: each is nobody, without an error.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	s := signers()
	good := signed("e1", "ES256", s["ec"], claims())
	part := strings.Split(good, ".")
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(s["rsa"].Public()))})
	cases := map[string]string{
		"alg none":                    signed("e1", "none", jwt.UnsafeAllowNoneSignatureType, claims()),
		"alg none, no signature part": part[0] + "." + part[1],
		"alg none in the header only": b64([]byte(`{"alg":"none","kid":"e1"}`)) + "." + part[1] + ".",
		"alg None":                    b64([]byte(`{"alg":"None","kid":"e1"}`)) + "." + part[1] + "." + part[2],
		"public key as a secret":      signed("r1", "HS256", public, claims()),
		"not among the pinned":        signed("r1", "RS384", s["rsa"], claims()),
		"another key type":            signed("r1", "ES256", s["ec"], claims()),
		"another key":                 signed("e1", "ES256", s["other"], claims()),
		"unknown key":                 signed("e9", "ES256", s["ec"], claims()),
		"wrong audience":              signed("e1", "ES256", s["ec"], claims("aud", "other")),
		"no audience":                 signed("e1", "ES256", s["ec"], claims("aud", nil)),
		"wrong issuer":                signed("e1", "ES256", s["ec"], claims("iss", "https://login.example.org.evil")),
		"no issuer":                   signed("e1", "ES256", s["ec"], claims("iss", nil)),
		"expired":                     signed("e1", "ES256", s["ec"], claims("exp", morning.Add(-31*time.Second).Unix())),
		"no expiry":                   signed("e1", "ES256", s["ec"], claims("exp", nil)),
		"expiry is text":              signed("e1", "ES256", s["ec"], claims("exp", "tomorrow")),
		"not yet":                     signed("e1", "ES256", s["ec"], claims("nbf", morning.Add(31*time.Second).Unix())),
		"issued later":                signed("e1", "ES256", s["ec"], claims("iat", morning.Add(31*time.Second).Unix())),
		"no subject":                  signed("e1", "ES256", s["ec"], claims("sub", nil)),
		"empty subject":               signed("e1", "ES256", s["ec"], claims("sub", "")),
		"subject is a list":           signed("e1", "ES256", s["ec"], claims("sub", []string{"alice"})),
		"subject is a fraction":       signed("e1", "ES256", s["ec"], claims("sub", 1.5)),
		"subject of 257 bytes":        signed("e1", "ES256", s["ec"], claims("sub", strings.Repeat("a", 257))),
		"critical extension":          signed("e1", "ES256", s["ec"], claims(), "crit", []string{"x"}),
		"huge":                        signed("e1", "ES256", s["ec"], claims("pad", strings.Repeat("a", 8<<10))),
		"huge and nothing else":       strings.Repeat("a.", 1<<20),
		"changed claims":              part[0] + "." + b64([]byte(`{"sub":"bob"}`)) + "." + part[2],
		"no signature":                part[0] + "." + part[1] + ".",
		"padded":                      good + "=",
		"a fourth part":               good + "." + part[2],
		"empty":                       "",
		"Bearer alone":                "Bearer ",
		"Basic":                       "Basic dXNlcjpwYXNz",
		"NUL":                         "\x00",
		"nested to the depth":         b64([]byte(strings.Repeat("[", 3000))) + "." + part[1] + "." + part[2],
	}
	tokens := newTokens(t, nil)
	for name, text := range cases {
		tokens.Identify(bearing("Authorization", text, morning), client) // and once more, when some are remembered
		if got := tokens.Identify(bearing("Authorization", text, morning), client); got != (core.Identity{}) {
			t.Errorf("%s: %+v, want nobody", name, got)
		}
	}
	r := bearing("Authorization", good, morning)
	r.Header.(http.Header).Add("Authorization", good)
	if got := tokens.Identify(r, client); got.Kind != 0 {
		t.Errorf("two fields: %+v", got)
	}
	if got := tokens.Identify(&core.Request{Time: morning}, client); got.Kind != 0 {
		t.Errorf("no header at all: %+v", got)
	}
	// Two keys fit a token that names none.
	two := newTokens(t, func(c *JWTConfig) {
		c.Keys = static(t, keySet(published("e1", s["ec"]), published("e2", s["other"])))
	})
	if got := two.Identify(bearing("Authorization", signed("", "ES256", s["ec"], claims()), morning), client); got.Kind != 0 {
		t.Errorf("a token without key id among several keys: %+v", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestLeeway holds the edges of a token's life, before and after it is
// remembered.
func TestLeeway(t *testing.T) {
	t.Parallel()
	text := signed("e1", "ES256", signers()["ec"], claims("nbf", morning.Unix(), "exp", morning.Add(time.Minute).Unix()))
	for _, warm := range []bool{false, true} {
		for at, want := range map[time.Duration]bool{-31 * time.Second: false, -30 * time.Second: true, 0: true, 89 * time.Second: true, 90 * time.Second: false, 91 * time.Second: false} {
			tokens := newTokens(t, nil)
			if warm {
				tokens.Identify(bearing("Authorization", text, morning), client)
			}
			if got := tokens.Identify(bearing("Authorization", text, morning.Add(at)), client); (got.Kind != 0) != want {
				t.Errorf("at %v, remembered %v: %+v", at, warm, got)
			}
		}
	}
}

// TestRememberedTokensAreBounded also holds that a new set of keys forgets them.
func TestRememberedTokensAreBounded(t *testing.T) {
	t.Parallel()
	var k knownUsers
	held := &heldKeys{}
	for i := range 3 * knownTokens {
		k.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, held, user{id: "a"})
	}
	if len(k.now)+len(k.old) > 2*knownTokens {
		t.Errorf("%d tokens remembered", len(k.now)+len(k.old))
	}
	n := 3*knownTokens - 1
	last := [32]byte{byte(n), byte(n >> 8), byte(n >> 16)}
	if _, ok := k.get(last, held); !ok {
		t.Error("the last token is forgotten")
	}
	if _, ok := k.get(last, &heldKeys{}); ok {
		t.Error("a token outlived the keys that verified it")
	}
}

// TestBadTokensAreRemembered: those that stay bad are not verified again, until
// the keys change; those that may yet become good are.
func TestBadTokensAreRemembered(t *testing.T) {
	t.Parallel()
	s := signers()
	tokens := newTokens(t, nil)
	early := signed("e1", "ES256", s["ec"], claims("nbf", morning.Add(time.Hour).Unix(), "exp", morning.Add(2*time.Hour).Unix()))
	forged := signed("e1", "ES256", s["other"], claims())
	unknown := signed("e9", "ES256", s["other"], claims())
	for _, text := range []string{early, forged, unknown, signed("e1", "ES256", s["ec"], claims("exp", 1))} {
		tokens.Identify(bearing("Authorization", text, morning), client)
	}
	if n := len(tokens.bad.now); n != 2 {
		t.Errorf("%d bad tokens remembered, want the forged and the expired one", n)
	}
	if got := tokens.Identify(bearing("Authorization", early, morning.Add(time.Hour)), client); got.Kind == 0 {
		t.Error("a token that came too early is not taken in its time")
	}
	tokens.cfg.Keys.held.Store(static(t, keySet(published("e1", s["other"]), published("e9", s["other"]))).held.Load())
	for name, text := range map[string]string{"forged": forged, "unknown": unknown} {
		if got := tokens.Identify(bearing("Authorization", text, morning), client); got.Kind == 0 {
			t.Errorf("the %s token is not taken under the keys that signed it", name)
		}
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	s := signers()
	iap := must(NewTokens(IAP(static(t, keySet(published("e1", s["ec"]))), "/projects/1/global/backendServices/2")))
	text := signed("e1", "ES256", s["ec"], claims("iss", "https://cloud.google.com/iap", "aud", "/projects/1/global/backendServices/2", "sub", "accounts.google.com:123"))
	if got := iap.Identify(bearing("X-Goog-IAP-JWT-Assertion", text, morning), client); got.ID != "iap:accounts.google.com:123" || got.Kind != rows.User || got.Proof != "iap" {
		t.Errorf("IAP: %+v", got)
	}
	r := bearing("X-Goog-Authenticated-User-Id", "accounts.google.com:123", morning)
	if got := iap.Identify(r, client); got.Kind != 0 {
		t.Errorf("IAP's unsigned field: %+v", got)
	}
	access := must(NewTokens(Access(static(t, keySet(published("r1", s["rsa"]))), "team", "tag")))
	text = signed("r1", "RS256", s["rsa"], claims("iss", "https://team.cloudflareaccess.com", "aud", []string{"tag"}))
	if got := access.Identify(bearing("Cf-Access-Jwt-Assertion", text, morning), client); got.ID != "access:alice" || got.Proof != "access" {
		t.Errorf("Access: %+v", got)
	}
	text = signed("r1", "RS256", s["rsa"], claims("iss", "https://evil.cloudflareaccess.com", "aud", []string{"tag"}))
	if got := access.Identify(bearing("Cf-Access-Jwt-Assertion", text, morning), client); got.Kind != 0 {
		t.Errorf("another team's: %+v", got)
	}
	for _, team := range []string{"", "a.b", "a/b", "evil.example#"} {
		if _, err := AccessKeys(team, KeySetConfig{}); err == nil {
			t.Errorf("team %q is accepted", team)
		}
	}
	if k := must(AccessKeys("team", KeySetConfig{})); k.cfg.URL != "https://team.cloudflareaccess.com/cdn-cgi/access/certs" {
		t.Errorf("keys from %q", k.cfg.URL)
	}
	if k := must(IAPKeys(KeySetConfig{})); k.cfg.URL != iapKeys {
		t.Errorf("keys from %q", k.cfg.URL)
	}
}

func TestJWTConfig(t *testing.T) {
	t.Parallel()
	_, err := NewTokens(JWTConfig{Algorithms: []string{"HS256", "none"}, Header: "a", Cookie: "b c", Leeway: time.Hour})
	for _, want := range []string{"set of keys", "issuer", `"HS256"`, `"none"`, "one of them", "no name of a cookie", "leeway"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to name %s", err, want)
		}
	}
}

// TestUserThroughTheLimiter: a user's hits are the user's at any address, ahead
// of a cookie; a bad token falls back to the cookie and then to the address.
func TestUserThroughTheLimiter(t *testing.T) {
	t.Parallel()
	cookies := newCookies(t, CookieConfig{})
	keys := must(NewAPIKeys("X-Api-Key", []APIKey{{Hash: hashOf("robot-key"), Name: "partner", Tier: 10}}))
	s := newSite(t, CookieConfig{}, nil)
	l := must(core.New(core.Policy{Claims: core.ClaimsOff, Buckets: []core.Bucket{
		{Name: "a", Key: rows.Address, Algorithm: core.FixedWindow, Limit: 5, Window: time.Hour},
		{Name: "c", Key: rows.Cookie, Algorithm: core.FixedWindow, Limit: 5, Window: time.Hour},
		{Name: "u", Key: rows.User, Algorithm: core.FixedWindow, Limit: 5, Window: time.Hour},
		{Name: "k", Key: rows.APIKey, Algorithm: core.FixedWindow, Limit: 5, Window: time.Hour},
	}}, core.Options{Store: s.store, Identifiers: []core.Identifier{PlatformUsers{}, newTokens(t, nil), keys, cookies}}))
	token := signed("e1", "ES256", signers()["ec"], claims())
	expired := signed("e1", "ES256", signers()["ec"], claims("exp", 1))
	cookie := "__Host-stile=" + cookies.Issue(morning, client)
	request := func(i int, fields ...string) *core.Request {
		h := http.Header{}
		for j := 0; j < len(fields); j += 2 {
			h.Set(fields[j], fields[j+1])
		}
		return &core.Request{Method: "GET", Path: "/", Header: h, Time: morning, Peer: netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", i))}
	}
	for name, tt := range map[string]struct {
		fields []string
		want   string
	}{
		"token, key and cookie": {[]string{"Authorization", token, "X-Api-Key", "robot-key", "Cookie", cookie}, "user alice"},
		"key and cookie":        {[]string{"Authorization", expired, "X-Api-Key", "robot-key", "Cookie", cookie}, "api-key partner"},
		"cookie":                {[]string{"Authorization", expired, "X-Api-Key", "nonsense", "Cookie", cookie}, "cookie"},
		"nothing valid":         {[]string{"Authorization", expired, "X-Api-Key", "nonsense", "Cookie", cookie + "x"}, "address 198.51.100.3"},
	} {
		d := l.Decide(t.Context(), request(3, tt.fields...))
		if d.Outcome != core.Admit || !strings.HasPrefix(d.Key.String(), tt.want) {
			t.Errorf("%s: %s %v, want %s", name, d.Outcome, d.Key, tt.want)
		}
	}
	platform := request(3)
	platform.Header = WithPlatformUser(platform.Header, "principal")
	if d := l.Decide(t.Context(), platform); d.Key.String() != "user principal" {
		t.Errorf("the platform's user: %v", d.Key)
	}
	admitted := 0
	for i := range 20 {
		if l.Decide(t.Context(), request(i, "Authorization", token)).Outcome == core.Admit {
			admitted++
		}
	}
	if admitted != 4 {
		t.Errorf("%d admitted over 20 addresses, want the 4 that alice has left", admitted)
	}
	admitted = 0
	for i := range 70 {
		if l.Decide(t.Context(), request(i, "X-Api-Key", "robot-key")).Outcome == core.Admit {
			admitted++
		}
	}
	if admitted != 49 {
		t.Errorf("%d admitted by key, want 49: ten times the limit less one", admitted)
	}
}
