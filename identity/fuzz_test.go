package identity

import (
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
	good := c.Issue(morning, client)
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
