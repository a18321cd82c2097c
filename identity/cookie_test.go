package identity

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

func TestCookieComesBack(t *testing.T) {
	t.Parallel()
	c := newCookies(t, CookieConfig{})
	value := c.Issue(morning.Add(-time.Hour), client)
	id := c.Identify(request("a=1; __Host-stile="+value+"; b=2"), client)
	if id.Kind != rows.Cookie || !id.Anchor.Equal(morning.Add(-time.Hour)) || id.Proof != "cookie" || len(id.ID) != 22 || id.Tier != 0 {
		t.Errorf("got %+v", id)
	}
	if other := c.Identify(request("__Host-stile="+c.Issue(morning.Add(-time.Hour), client)), client); other.ID == id.ID {
		t.Error("two cookies have one id")
	}
	// Several lines are one field; spaces and tabs around are as browsers and
	// proxies leave them.
	for _, lines := range [][]string{
		{"a=1", "__Host-stile=" + value}, {"__Host-stile=" + value, "a=1; b=2"}, {" ;;; \t__Host-stile = " + value + "\t;"},
		{"x__Host-stile=nonsense; __Host-stilex=nonsense; __host-stile=nonsense; __Host-stile=" + value},
		{"big=" + strings.Repeat("x", 8<<10) + "; __Host-stile=" + value},
	} {
		if got := c.Identify(request(lines...), client); got != id {
			t.Errorf("%.60q: got %+v", lines, got)
		}
	}
}

// TestHostileCookies: whatever is not exactly what was signed is nobody.
func TestHostileCookies(t *testing.T) {
	t.Parallel()
	c := newCookies(t, CookieConfig{MaxAge: 48 * time.Hour})
	good := c.Issue(morning, client)
	raw, err := encoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	foreign := func(change func(*CookieConfig)) string {
		cfg := CookieConfig{}
		change(&cfg)
		return newCookies(t, cfg).Issue(morning, client)
	}
	cases := map[string]string{
		"absent":                "",
		"empty":                 "__Host-stile=",
		"no equals sign":        "__Host-stile",
		"expired":               "__Host-stile=" + c.Issue(morning.Add(-48*time.Hour), client),
		"from the future":       "__Host-stile=" + c.Issue(morning.Add(6*time.Minute), client),
		"before 1970":           "__Host-stile=" + c.Issue(time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC), client),
		"doubled":               "__Host-stile=" + good + "; __Host-stile=" + good,
		"doubled, one bad":      "__Host-stile=" + good + "; __Host-stile=x",
		"quoted":                `__Host-stile="` + good + `"`,
		"padded":                "__Host-stile=" + good + "=",
		"8 KB":                  "__Host-stile=" + strings.Repeat("A", 8<<10),
		"good and then 8 KB":    "__Host-stile=" + good + strings.Repeat("A", 8<<10),
		"NUL":                   "__Host-stile=" + good[:63] + "\x00",
		"line break inside":     "__Host-stile=" + good[:30] + "\n" + good[31:],
		"standard base64":       "__Host-stile=" + base64.StdEncoding.EncodeToString(append(raw[:47:47], 0xff)),
		"beyond what is read":   "x=" + strings.Repeat("y", 32<<10) + "; __Host-stile=" + good,
		"another name":          "__Host-other=" + good,
		"another secret":        "__Host-stile=" + foreign(func(c *CookieConfig) { c.Secrets = []string{newSecret} }),
		"another site's":        "__Host-stile=" + foreign(func(c *CookieConfig) { c.Site = "other" }),
		"another cookie's":      "__Host-stile=" + foreign(func(c *CookieConfig) { c.Name = "__Host-o" }),
		"a user's JSON":         `__Host-stile={"id":"admin"}`,
		"invalid UTF-8":         "__Host-stile=\xff\xfe" + good[2:],
		"another cookie's line": "__Host-stile=" + good + ", __Host-stile=" + good,
	}
	for i := range good {
		cases["truncated to "+good[:i]] = "__Host-stile=" + good[:i]
	}
	for name, field := range cases {
		if id := c.Identify(request(field), client); id != (core.Identity{}) {
			t.Errorf("%s: got %+v, want nobody", name, id)
		}
	}
	// Every single bit is signed.
	for i := range len(raw) * 8 {
		raw[i/8] ^= 1 << (i % 8)
		if id := c.Identify(request("__Host-stile="+encoding.EncodeToString(raw)), client); id.Kind != 0 {
			t.Errorf("bit %d changed: still %+v", i, id)
		}
		raw[i/8] ^= 1 << (i % 8)
	}
	if id := c.Identify(&core.Request{Time: morning}, netip.Addr{}); id.Kind != 0 {
		t.Error("a request without header and address is somebody")
	}
}

// TestHostileCookiesAreAddressKeyed is the same through the limiter.
func TestHostileCookiesAreAddressKeyed(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	for _, cookie := range []string{"__Host-stile=forged", "__Host-stile=" + strings.Repeat("A", 8<<10), "__Host-stile=\x00"} {
		v := &visitor{addr: "198.51.100.7", agent: "a", cookie: cookie}
		if d := v.visit(s, morning); d.Outcome != core.Admit || d.Key.Kind != rows.Address || d.Err != nil {
			t.Errorf("%.30q: %+v", cookie, d)
		}
	}
	v := &visitor{addr: "198.51.100.7", agent: "a", keep: true}
	if d := v.visit(s, morning); d.Key.Kind != rows.Address || v.cookie == "" {
		t.Errorf("the first hit is charged to %v, and its cookie is %q", d.Key, v.cookie)
	}
	had := v.cookie
	if d := v.visit(s, morning.Add(time.Minute)); d.Key.Kind != rows.Cookie || v.cookie != had {
		t.Errorf("the second hit is charged to %v; the cookie changed: %v", d.Key, v.cookie != had)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	before := newCookies(t, CookieConfig{})
	between := newCookies(t, CookieConfig{Secrets: []string{newSecret, oneSecret}})
	after := newCookies(t, CookieConfig{Secrets: []string{newSecret}})
	value := before.Issue(morning, client)
	id := between.Identify(request("__Host-stile="+value), client)
	if id.Kind != rows.Cookie || !id.Anchor.Equal(morning) {
		t.Fatalf("the old secret's cookie: %+v", id)
	}
	if got := after.Identify(request("__Host-stile="+value), client); got.Kind != 0 {
		t.Error("a cookie outlived its secret")
	}
	// The visitor's next page brings the same id and age under the new secret.
	r := request("__Host-stile=" + value)
	r.Time = morning.Add(3 * time.Hour)
	d := core.Decision{Class: core.Counted, Outcome: core.Admit, Identity: id, Client: core.Client{Addr: client}}
	set := between.Offer(r, &d)
	pair, attributes, _ := strings.Cut(set, "; ")
	if attributes != "Path=/; Max-Age=2581200; Secure; HttpOnly; SameSite=Lax" {
		t.Errorf("attributes %q: want what is left of 30 days", attributes)
	}
	if got := after.Identify(request(pair), client); got != id {
		t.Errorf("under the new secret: %+v, want %+v", got, id)
	}
	if set := after.Offer(request(pair), &d); set != "" {
		t.Errorf("a current cookie was replaced by %q", set)
	}
}

func TestSetCookie(t *testing.T) {
	t.Parallel()
	c := newCookies(t, CookieConfig{})
	if got, want := c.SetCookie("v", DefaultCookieMaxAge), "__Host-stile=v; Path=/; Max-Age=2592000; Secure; HttpOnly; SameSite=Lax"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := c.SetCookie("v", -time.Second); !strings.Contains(got, "Max-Age=0;") {
		t.Errorf("negative age: %q", got)
	}
}

// TestOfferOnlyWhenDue goes through the decisions that must bring no cookie.
func TestOfferOnlyWhenDue(t *testing.T) {
	t.Parallel()
	known := core.Client{Addr: client}
	for name, tt := range map[string]struct {
		d    core.Decision
		want bool
	}{
		"admitted by address":          {core.Decision{Class: core.Counted, Outcome: core.Admit, Client: known}, true},
		"refused by address":           {core.Decision{Class: core.Counted, Outcome: core.Refuse, Client: known}, true},
		"an asset":                     {core.Decision{Class: core.Ignored, Outcome: core.Pass, Client: known}, false},
		"a prefetch":                   {core.Decision{Class: core.Speculative, Outcome: core.Pass, Client: known}, false},
		"a claim over its limit":       {core.Decision{Class: core.Claim, Outcome: core.Refuse, Client: known}, false},
		"an exempt crawler":            {core.Decision{Class: core.Counted, Outcome: core.Pass, Reason: core.ReasonCrawler, Client: known}, false},
		"a redirect's next hop":        {core.Decision{Class: core.Counted, Outcome: core.Pass, Reason: core.ReasonRedirect, Client: known}, false},
		"while the store fails":        {core.Decision{Class: core.Counted, Outcome: core.Admit, Err: core.ErrSpent, Client: known}, false},
		"store down, closed":           {core.Decision{Class: core.Counted, Outcome: core.Unavailable, Client: known}, false},
		"a signed-in user":             {core.Decision{Class: core.Counted, Outcome: core.Admit, Identity: core.Identity{Kind: rows.User}, Client: known}, false},
		"an API key":                   {core.Decision{Class: core.Counted, Outcome: core.Admit, Identity: core.Identity{Kind: rows.APIKey}, Client: known}, false},
		"nobody's address":             {core.Decision{Class: core.Counted, Outcome: core.Admit}, false},
		"a cookie gone in the mean":    {core.Decision{Class: core.Counted, Outcome: core.Admit, Identity: core.Identity{Kind: rows.Cookie, Proof: "cookie"}, Client: known}, false},
		"a refused holder of a cookie": {core.Decision{Class: core.Counted, Outcome: core.Refuse, Identity: core.Identity{Kind: rows.Cookie, Proof: "cookie"}, Client: known}, false},
	} {
		if got := newCookies(t, CookieConfig{}).Offer(request(), &tt.d); (got != "") != tt.want {
			t.Errorf("%s: Offer returned %q", name, got)
		}
	}
	d := core.Decision{Class: core.Counted, Outcome: core.Refuse, Client: known}
	if got := newCookies(t, CookieConfig{AdmittedOnly: true}).Offer(request(), &d); got != "" {
		t.Errorf("admitted only: a refusal brought %q", got)
	}
}

// TestVisitorsDay: the day of a cookie begins at its issue.
func TestVisitorsDay(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, func(p *core.Policy) { p.Buckets[2].Limit = 3 })
	v := &visitor{addr: "198.51.100.7", agent: "a", keep: true}
	evening := morning.Add(20 * time.Hour)
	v.visit(s, evening)
	for i := range 3 {
		if d := v.visit(s, evening.Add(time.Duration(i+1)*time.Hour)); d.Outcome != core.Admit {
			t.Fatalf("hit %d: %s", i, d.Reason)
		}
	}
	d := v.visit(s, evening.Add(6*time.Hour)) // past midnight, still the visitor's day
	if d.Outcome != core.Refuse || d.RetryAfter != 18*time.Hour {
		t.Errorf("past midnight: %s, retry after %v, want refused for 18h", d.Outcome, d.RetryAfter)
	}
	if d := v.visit(s, evening.Add(day)); d.Outcome != core.Admit {
		t.Errorf("a day after the issue: %s", d.Reason)
	}
}

func TestCookieConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config CookieConfig
		want   string
	}{
		{CookieConfig{}, "0 cookie secrets"},
		{CookieConfig{Secrets: []string{"short-and-s3cret"}}, "cookie secret 1 is shorter than 22"},
		{CookieConfig{Secrets: []string{oneSecret, oneSecret, oneSecret, oneSecret, oneSecret}}, "5 cookie secrets"},
		{CookieConfig{Secrets: []string{oneSecret}, Name: "a b"}, "no name of a cookie"},
		{CookieConfig{Secrets: []string{oneSecret}, Name: "a;b"}, "no name of a cookie"},
		{CookieConfig{Secrets: []string{oneSecret}, MaxAge: time.Minute}, "age of 1m0s"},
		{CookieConfig{Secrets: []string{oneSecret}, MaxAge: 401 * day}, "age of"},
		{CookieConfig{Secrets: []string{oneSecret}, IPv6Prefix: 65}, "IPv6 prefix 65"},
		{CookieConfig{Secrets: []string{oneSecret}, IPv6Prefix: 31}, "IPv6 prefix 31"},
	} {
		_, err := NewCookies(tt.config)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want %q", tt.want, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
}
