package identity

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

// FuzzCookie holds that only what was signed is a key, whatever stands around
// it, and that reading never fails in any other way.
func FuzzCookie(f *testing.F) {
	c, err := NewCookies(CookieConfig{Secrets: []string{oneSecret, newSecret}, Site: "example"})
	if err != nil {
		f.Fatal(err)
	}
	// Every process that fuzzes must see the same cookie.
	t := c.keys[0].issue(morning, c.prefix(client))
	copy(t[9:25], "a fixed identity")
	c.keys[0].sign(t)
	good := t.encode()
	want := c.Identify(request("__Host-stile="+good), client)
	f.Add("__Host-stile="+good, "")
	f.Add("a=b; __Host-stile="+good+"; c", "__Host-stile="+good)
	f.Add("__Host-stile=\x00", "=;=;;")
	f.Add("__Host-stile=\""+good+"\"", "\xff")
	f.Fuzz(func(t *testing.T, one, two string) {
		id := c.Identify(request(one, two), client)
		if id == (core.Identity{}) {
			return
		}
		if id != want {
			t.Fatalf("somebody else's key %+v", id)
		}
		if strings.Count(one, good)+strings.Count(two, good) == 0 {
			t.Fatal("a key without the signed cookie")
		}
	})
}

// FuzzSignedCookie holds that a cookie comes back as what was issued, and that
// no change of its bytes does.
func FuzzSignedCookie(f *testing.F) {
	c, err := NewCookies(CookieConfig{Secrets: []string{oneSecret}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(int64(0), 0, byte(0))
	f.Add(int64(1<<40-1), 63, byte('A'))
	f.Add(int64(-1), 5, byte('\n'))
	f.Fuzz(func(t *testing.T, seconds int64, at int, b byte) {
		seconds &= 1<<40 - 1
		issued := time.Unix(seconds, 0)
		value := c.Issue(issued, client)
		r := request("__Host-stile=" + value)
		r.Time = issued
		if id := c.Identify(r, client); !id.Anchor.Equal(issued) {
			t.Fatalf("issued %v, came back %+v", issued, id)
		}
		changed := []byte(value)
		i := int(uint(at) % uint(len(changed)))
		if changed[i] == b {
			return
		}
		changed[i] = b
		r = request("__Host-stile=" + string(changed))
		r.Time = issued
		if id := c.Identify(r, client); id.Kind != 0 {
			t.Fatalf("%q is a key", changed)
		}
	})
}

// FuzzToken holds that no text makes a user but the one that was signed.
func FuzzToken(f *testing.F) {
	// A fixed key and an algorithm without chance: every process that fuzzes must
	// see the same token.
	key := ed25519.NewKeyFromSeed([]byte("a seed of exactly thirty-two byt"))
	tokens := newTokens(f, func(c *JWTConfig) { c.Keys = static(f, keySet(published("d1", key))) })
	good := signed("d1", "EdDSA", key, claims())
	f.Add(good)
	f.Add("Bearer " + good)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("eyJhbGciOiJFUzI1NiIsImtpZCI6ImUxIn0.eyJleHAiOjFlMzA4fQ.AA")
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if id := tokens.Identify(bearing("Authorization", text, morning), client); id.Kind != 0 && !strings.Contains(text, good) {
			t.Fatalf("%q is %+v", text, id)
		}
	})
}

// FuzzKeySet holds that a set is refused or has keys that can be used.
func FuzzKeySet(f *testing.F) {
	f.Add(defaultSet())
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AA"}]}`))
	f.Add([]byte(`{"keys":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := parseKeySet(data)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Fatalf("%d keys, error %v", len(keys), err)
		}
		for _, k := range keys {
			if !k.fits(k.alg) && k.alg != "" {
				continue // for something else
			}
			if k.fits("none") || k.fits("HS256") || k.fits("") {
				t.Fatalf("key %q fits what is no signature", k.id)
			}
		}
	})
}
