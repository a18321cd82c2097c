package identity

import (
	"errors"
	"strings"
	"time"
)

// The set of keys with which Google signs the assertions of Identity-Aware
// Proxy.
const iapKeys = "https://www.gstatic.com/iap/verify/public_key-jwk"

// IAP configures the users of Google's Identity-Aware Proxy, which signs an
// assertion into each request that it lets through. The audience is the
// backend's: /projects/NUMBER/global/backendServices/ID, or for Cloud Run
// /projects/NUMBER/locations/REGION/services/NAME. The keys are those of
// [IAPKeys].
//
// The unsigned X-Goog-Authenticated-User fields beside the assertion are not
// read: anybody who reaches the origin past the proxy could write them.
func IAP(keys *KeySet, audience string) JWTConfig {
	return JWTConfig{
		Keys: keys, Issuer: "https://cloud.google.com/iap", Audience: audience, Algorithms: []string{"ES256"},
		Header: "X-Goog-Iap-Jwt-Assertion", Claim: "sub", Leeway: 30 * time.Second, Namespace: "iap", Proof: "iap",
	}
}

// IAPKeys is the set of keys for [IAP]; c.URL is ignored.
func IAPKeys(c KeySetConfig) (*KeySet, error) {
	c.URL = iapKeys
	return NewKeySet(c)
}

// Access configures the users of Cloudflare Access, which signs an assertion
// into each request. The team is the name before .cloudflareaccess.com, the
// audience the application's AUD tag. The keys are those of [AccessKeys].
// Service tokens, which name no user, are nobody.
func Access(keys *KeySet, team, audience string) JWTConfig {
	return JWTConfig{
		Keys: keys, Issuer: accessHost(team), Audience: audience, Algorithms: []string{"RS256"},
		Header: "Cf-Access-Jwt-Assertion", Claim: "sub", Leeway: 30 * time.Second, Namespace: "access", Proof: "access",
	}
}

// AccessKeys is the set of keys of a team for [Access]; c.URL is ignored.
func AccessKeys(team string, c KeySetConfig) (*KeySet, error) {
	if team == "" || strings.ContainsAny(team, "./:@?#") {
		return nil, errors.New("identity: the team is the name before .cloudflareaccess.com")
	}
	c.URL = accessHost(team) + "/cdn-cgi/access/certs"
	return NewKeySet(c)
}

func accessHost(team string) string { return "https://" + team + ".cloudflareaccess.com" }
