package policy

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func (v *validator) identify() {
	if c := v.f.Identify.Cookie; c != nil {
		v.cookie(c)
	}
	if j := v.f.Identify.JWT; j != nil {
		v.jwt(j)
	}
	if a := v.f.Identify.APIKeys; a != nil {
		a.Header = v.fieldName("identify.api_keys.header", a.Header)
		if (a.File != "") == (len(a.Keys) > 0) {
			v.fail("identify.api_keys", "needs a file or keys, one of them", "write keys: [{hash: ..., name: ...}]")
		}
		v.apiKeys("identify.api_keys.keys", a.Keys)
	}
}

func (v *validator) cookie(c *Cookie) {
	const path = "identify.cookie.name"
	switch {
	case len(c.Name) > 64 || !tokenForm.MatchString(c.Name):
		v.fail(path, fmt.Sprintf("%q is no name of a cookie", c.Name), "write one like __Host-stile")
	case !strings.HasPrefix(c.Name, "__Host-"):
		v.warn(path, "does not begin with __Host-: a page of a sibling domain can set it", "write __Host-"+c.Name)
	}
	v.strength("identify.cookie.secrets", c.Secrets, 1, 2)
}

// tokenForm is a token of RFC 9110, as names of cookies are.
var tokenForm = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// jwtAlgorithms are those of public keys. Shared secrets and "none" have no
// place in a set of published keys.
var jwtAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (v *validator) jwt(j *JWT) {
	const path = "identify.jwt"
	if j.Cookie != "" && !v.given(path+".header") {
		j.Header = ""
	}
	if (j.JWKS != "") == (j.JWKSFile != "") {
		v.fail(path+".jwks", "needs jwks or jwks_file, one of them", "write jwks: https://login.example.org/.well-known/jwks.json")
	}
	if j.JWKS != "" {
		if u, err := url.Parse(j.JWKS); err != nil || u.Host == "" || !secureURL(u) {
			v.fail(path+".jwks", "is no https: URL: whoever changes the keys on the way signs in as anybody", "write https://")
		}
	}
	if j.Issuer == "" {
		v.fail(path+".issuer", "is missing", "write the iss claim of your tokens")
	}
	if j.Audience == "" {
		v.fail(path+".audience", "is missing: a token for another service would do", "write the aud claim of your tokens")
	}
	if len(j.Algorithms) == 0 {
		v.fail(path+".algorithms", "admits no token", "write [RS256, ES256]")
	}
	for i, a := range j.Algorithms {
		if !oneOf(a, jwtAlgorithms...) {
			v.fail(fmt.Sprintf("%s.algorithms[%d]", path, i), fmt.Sprintf("%q is not an algorithm of public keys", a), "write some of "+strings.Join(jwtAlgorithms, ", "))
		}
	}
	switch {
	case (j.Header != "") == (j.Cookie != ""):
		v.fail(path+".header", "needs header or cookie, one of them", "write header: Authorization")
	case j.Header != "":
		j.Header = v.fieldName(path+".header", j.Header)
	case len(j.Cookie) > 64 || !tokenForm.MatchString(j.Cookie):
		v.fail(path+".cookie", fmt.Sprintf("%q is no name of a cookie", j.Cookie), "write the name that your sign-in sets")
	}
	if j.Claim == "" {
		v.fail(path+".claim", "is empty", "write sub")
	}
	if j.Leeway < 0 || j.Leeway > 5*time.Minute {
		v.fail(path+".leeway", formatDuration(j.Leeway)+" keeps expired tokens alive", "write 5m or less")
	}
}

// secureURL admits https, and http on this machine, which tests need.
func secureURL(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && oneOf(u.Hostname(), "localhost", "127.0.0.1", "::1")
}

var hashForm = regexp.MustCompile(`^[0-9a-f]*$`)

func (v *validator) apiKeys(path string, list []APIKey) {
	names, hashes := map[string]int{}, map[string]int{}
	for i, k := range list {
		sub := fmt.Sprintf("%s[%d]", path, i)
		if len(k.Hash) != 64 || !hashForm.MatchString(k.Hash) {
			v.fail(sub+".hash", "is no SHA-256 in hex", "make it with: printf %s KEY | sha256sum")
		} else if first, dup := hashes[k.Hash]; dup {
			v.fail(sub+".hash", fmt.Sprintf("is the key of entry %d too", first), "remove one")
		} else {
			hashes[k.Hash] = i
		}
		if k.Name == "" {
			v.fail(sub+".name", "is missing", "name the key's owner: counters and logs use it")
		} else if first, dup := names[k.Name]; dup {
			v.warn(sub+".name", fmt.Sprintf("%q is the name of entry %d too: both share one counter", k.Name, first), "choose another, unless a key is being replaced")
		} else {
			names[k.Name] = i
		}
		if k.Tier < 1 || k.Tier > maxMultiply {
			v.fail(sub+".tier", fmt.Sprintf("%d is no multiple of the limits", k.Tier), fmt.Sprintf("write 1 to %d", maxMultiply))
		}
	}
}

// maxMultiply bounds tiers and multiples.
const maxMultiply = 10_000

// ParseAPIKeys reads the file that identify.api_keys.file names: a YAML list of
// {hash, name, tier}, as strict as the policy. The error joins every [*Error].
func ParseAPIKeys(data []byte) ([]APIKey, error) {
	r := newReader(nil, map[string]place{})
	var list []APIKey
	if len(data) > MaxSize {
		return nil, &Error{Problem: fmt.Sprintf("the file of API keys is larger than %d bytes", MaxSize)}
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		return nil, &Error{Path: "keys", Problem: "not YAML: " + err.Error()}
	}
	if len(doc.Content) != 1 {
		return nil, &Error{Path: "keys", Problem: "the file is empty"}
	}
	r.value(doc.Content[0], "keys", reflect.ValueOf(&list).Elem())
	v := &validator{reader: r}
	v.apiKeys("keys", list)
	if err := joined(r.errs); err != nil {
		return nil, err
	}
	return list, nil
}

// joined is errors.Join of typed errors; nil when there are none.
func joined(list []*Error) error {
	var errs []error
	for _, e := range list {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}
