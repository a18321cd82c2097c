package answer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/stilehq/stile/core"
)

func counted() *core.Decision {
	d := refused()
	d.Outcome, d.RetryAfter = core.Admit, 0
	d.States[0].Remaining, d.States[0].RetryAfter = 3, 0
	return d
}

// TestSharedCacheCarriesNoVisitorsFields is the table of what a shared cache
// may keep.
func TestSharedCacheCarriesNoVisitorsFields(t *testing.T) {
	t.Parallel()
	const date, later, earlier = "Mon, 30 Nov 2026 12:00:00 GMT", "Mon, 30 Nov 2026 13:00:00 GMT", "Mon, 30 Nov 2026 11:00:00 GMT"
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		fields bool
	}{
		{"nothing said", 200, http.Header{}, true},
		{"private", 200, http.Header{"Cache-Control": {"private, max-age=60"}}, true},
		{"no-store", 200, http.Header{"Cache-Control": {"public, no-store"}}, true},
		{"next dynamic page", 200, http.Header{"Cache-Control": {"private, no-cache, no-store, max-age=0, must-revalidate"}}, true},
		{"public", 200, http.Header{"Cache-Control": {"public"}}, false},
		{"upper case", 200, http.Header{"Cache-Control": {"PUBLIC"}}, false},
		{"second line", 200, http.Header{"Cache-Control": {"must-revalidate", "s-maxage=1"}}, false},
		{"next static page", 200, http.Header{"Cache-Control": {"s-maxage=31536000"}}, false},
		{"max-age", 200, http.Header{"Cache-Control": {"max-age=60"}}, false},
		{"quoted max-age", 200, http.Header{"Cache-Control": {`max-age="60"`}}, false},
		{"max-age that is no number", 200, http.Header{"Cache-Control": {"max-age=soon"}}, false},
		{"private for one field", 200, http.Header{"Cache-Control": {`private="Set-Cookie", max-age=60`}}, false},
		{"comma inside quotes", 200, http.Header{"Cache-Control": {`x="a, private", max-age=60`}}, false},
		{"max-age 0", 200, http.Header{"Cache-Control": {"max-age=0"}}, true},
		{"max-age 0 to revalidate", 200, http.Header{"Cache-Control": {"max-age=0"}, "Etag": {`"a"`}}, false},
		{"no-cache to revalidate", 200, http.Header{"Cache-Control": {"no-cache"}, "Etag": {`"a"`}}, false},
		{"etag alone", 200, http.Header{"Etag": {`"a"`}}, true},
		{"freshness to be guessed", 200, http.Header{"Last-Modified": {earlier}}, false},
		{"freshness to be guessed, 403", 403, http.Header{"Last-Modified": {earlier}}, true},
		{"expires later", 200, http.Header{"Date": {date}, "Expires": {later}}, false},
		{"expires, no date", 200, http.Header{"Expires": {earlier}}, false},
		{"expired", 200, http.Header{"Date": {date}, "Expires": {earlier}}, true},
		{"expires 0", 200, http.Header{"Expires": {"0"}}, true},
		{"max-age 0 beats expires", 200, http.Header{"Date": {date}, "Expires": {later}, "Cache-Control": {"max-age=0"}}, true},
		{"cdn only", 200, http.Header{"Cache-Control": {"max-age=0"}, "Cdn-Cache-Control": {"max-age=60"}}, false},
		{"surrogate", 200, http.Header{"Surrogate-Control": {"max-age=60"}}, false},
		{"304 that says nothing", 304, http.Header{}, false},
		{"304 private", 304, http.Header{"Cache-Control": {"private"}}, true},
	} {
		h := c.header.Clone()
		writer(t, Config{}).Annotate(c.status, h, counted())
		if got := h.Get("RateLimit") != ""; got != c.fields {
			t.Errorf("%s: fields %v, want %v", c.name, got, c.fields)
		}
		h = c.header.Clone()
		writer(t, Config{Headers: Always}).Annotate(c.status, h, counted())
		if h.Get("RateLimit") == "" || h.Get("X-RateLimit-Limit") == "" {
			t.Errorf("%s: mode always, but %v", c.name, h)
		}
		h = c.header.Clone()
		writer(t, Config{Headers: LimitedOnly}).Annotate(c.status, h, counted())
		if len(h) != len(c.header) {
			t.Errorf("%s: mode limited-only, but %v", c.name, h)
		}
	}
}

func TestUncountedResponsesStayBare(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	writer(t, Config{Headers: Always}).Annotate(200, h, &core.Decision{Binding: -1})
	if len(h) != 0 {
		t.Errorf("got %v", h)
	}
	if a := writer(t, Config{}).Limited(&core.Decision{Outcome: core.Refuse, Binding: -1, RetryAfter: time.Minute}, ask()); a.Header.Get("RateLimit") != "" || a.Header.Get("Retry-After") != "60" {
		t.Errorf("refused without states: %v", a.Header)
	}
}

func TestOriginsOwnFieldsStay(t *testing.T) {
	t.Parallel()
	h := http.Header{"Ratelimit": {`"api";r=1`}, "X-Ratelimit-Limit": {"7"}}
	writer(t, Config{}).Annotate(200, h, counted())
	if got := h["Ratelimit"]; len(got) != 2 || got[0] != `"api";r=1` || !strings.HasPrefix(got[1], `"hour";r=3`) {
		t.Errorf("RateLimit %q", got)
	}
	if got := h["X-Ratelimit-Limit"]; len(got) != 1 || got[0] != "7" {
		t.Errorf("X-RateLimit-Limit %q", got)
	}
}

func TestParseHeadersMode(t *testing.T) {
	t.Parallel()
	for _, h := range []Headers{PrivateOnly, Always, LimitedOnly} {
		if got, err := ParseHeaders(h.String()); got != h || err != nil {
			t.Errorf("%v: %v %v", h, got, err)
		}
	}
	if _, err := ParseHeaders("sometimes"); err == nil {
		t.Error("unknown mode accepted")
	}
}

// FuzzFieldsAreStructured: whatever the numbers and names, the fields parse as
// the lists of strings that the draft demands.
func FuzzFieldsAreStructured(f *testing.F) {
	f.Add("hour", int64(60), int64(3), int64(3600), int64(61))
	f.Add("a\"b\\\x00é", int64(-1), int64(1)<<62, int64(0), int64(-5))
	f.Fuzz(func(t *testing.T, name string, limit, remaining, window, reset int64) {
		s := core.State{Bucket: name, Limit: limit, Remaining: remaining, Window: time.Duration(window), Reset: time.Duration(reset)}
		d := &core.Decision{Outcome: core.Admit, States: []core.State{s, s}, Binding: 1}
		h := http.Header{}
		writer(t, Config{}).Fields(h, d)
		for name, params := range map[string][]string{"RateLimit-Policy": {"q", "w"}, "RateLimit": {"r", "t"}} {
			list, err := httpsfv.UnmarshalList(h.Values(name))
			if err != nil || len(list) != 2 {
				t.Fatalf("%s %q: %v", name, h.Values(name), err)
			}
			item, ok := list[1].(httpsfv.Item)
			if !ok {
				t.Fatalf("%s: no item", name)
			}
			if _, ok := item.Value.(string); !ok {
				t.Fatalf("%s: %T", name, item.Value)
			}
			for _, p := range params {
				v, ok := item.Params.Get(p)
				if n, isInt := v.(int64); !ok || !isInt || n < 0 || p == "w" && n == 0 {
					t.Fatalf("%s: %s=%v", name, p, v)
				}
			}
		}
	})
}
