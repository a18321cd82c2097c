package answer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/stilehq/stile/core"
)

func writer(t testing.TB, cfg Config) *Writer {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// refused is a client over its hour, with most of its day left.
func refused() *core.Decision {
	return &core.Decision{
		Outcome: core.Refuse, Class: core.Counted, Binding: 0, RetryAfter: 61*time.Second + 1,
		States: []core.State{
			{Bucket: "hour", Count: 60, Limit: 60, Window: time.Hour, Reset: 61*time.Second + 1, RetryAfter: 61*time.Second + 1},
			{Bucket: "day", Count: 75, Limit: 200, Remaining: 125, Window: 24 * time.Hour, Reset: 9 * time.Hour},
		},
	}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ask(accept ...string) Request {
	return Request{Accept: accept, Ref: "ABCDEFGH2345", Now: noon}
}

func TestLimitedHTML(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{Site: "Ex & ample", Contact: "mailto:ops@example.org"})
	a := w.Limited(refused(), ask("text/html,*/*;q=0.8"))
	if a.Status != 429 {
		t.Fatalf("status %d", a.Status)
	}
	for name, want := range map[string]string{
		"Retry-After": "62", "Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8",
		"X-Content-Type-Options": "nosniff", "Vary": "Accept",
		"RateLimit-Policy":  `"hour";q=60;w=3600,"day";q=200;w=86400`,
		"RateLimit":         `"hour";r=0;t=62,"day";r=125;t=32400`,
		"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "62",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	body := string(a.Body)
	for _, want := range []string{
		"60 pages per hour", "in 62 seconds", "12:01 UTC", "ABCDEFGH2345", `<a href="mailto:ops@example.org">ops@example.org</a>`,
		"Ex &amp; ample", DefaultCrawlers, `lang="en"`, "<main>", "<h1>", `data-s="62"`, "color-scheme:light dark", "width=device-width",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("body lacks %q", want)
		}
	}
	if strings.Contains(body, "noindex") {
		t.Error("the page must not carry noindex: a crawler would drop the real page")
	}
}

// TestPageIsWellFormedAndClosed parses every page and checks that nothing is
// loaded from elsewhere and that the policy allows exactly what is inside.
func TestPageIsWellFormedAndClosed(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{Site: "s", Contact: "https://example.org/contact"})
	for name, a := range map[string]Answer{
		"429": w.Limited(refused(), ask()), "503": w.Unavailable(ask()), "502": w.OriginDown(502, ask()),
	} {
		csp := a.Header.Get("Content-Security-Policy")
		z := html.NewTokenizer(strings.NewReader(string(a.Body)))
		var open []string
		seen := map[string]int{}
		for {
			kind := z.Next()
			if kind == html.ErrorToken {
				break
			}
			tok := z.Token()
			switch kind {
			case html.StartTagToken:
				seen[tok.Data]++
				if tok.Data != "meta" && tok.Data != "link" {
					open = append(open, tok.Data)
				}
				for _, at := range tok.Attr {
					if at.Key == "src" || at.Key == "style" || strings.HasPrefix(at.Key, "on") || at.Key == "href" && tok.Data == "link" && at.Val != "data:," {
						t.Errorf("%s: <%s %s=%q> loads or runs something", name, tok.Data, at.Key, at.Val)
					}
				}
			case html.EndTagToken:
				if len(open) == 0 || open[len(open)-1] != tok.Data {
					t.Fatalf("%s: </%s> closes %v", name, tok.Data, open)
				}
				open = open[:len(open)-1]
			case html.TextToken:
				if n := len(open); n > 0 && (open[n-1] == "script" || open[n-1] == "style") {
					sum := sha256.Sum256([]byte(tok.Data))
					if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(csp, hash) {
						t.Errorf("%s: policy %q lacks %s of <%s>", name, csp, hash, open[n-1])
					}
				}
			}
		}
		if len(open) != 0 {
			t.Errorf("%s: not closed: %v", name, open)
		}
		if seen["main"] != 1 || seen["h1"] != 1 || seen["title"] != 1 {
			t.Errorf("%s: landmarks %v", name, seen)
		}
		if strings.Contains(csp, "unsafe") || !strings.HasPrefix(csp, "default-src 'none'") {
			t.Errorf("%s: policy %q", name, csp)
		}
	}
}

func TestBodiesStaySmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxText)
	w := writer(t, Config{Site: "s", Contact: "mailto:" + strings.Repeat("c", 93), Crawlers: long})
	d := refused()
	for i := range d.States {
		d.States[i].Limit, d.States[i].RetryAfter = 1<<62, 999*time.Hour+time.Second
	}
	for _, accept := range []string{"text/html", "application/json", "application/problem+json"} {
		for status, a := range map[int]Answer{429: w.Limited(d, ask(accept)), 503: w.Unavailable(ask(accept)), 502: w.OriginDown(502, ask(accept))} {
			if a.Status != status || len(a.Body) > MaxBody {
				t.Errorf("%d %s: status %d, %d bytes, at most %d", status, accept, a.Status, len(a.Body), MaxBody)
			}
		}
	}
}

func TestJSONForms(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{Contact: `he said "hi" <b>`})
	var plain struct {
		Error struct {
			Code, Message, Ref, Contact, Crawlers string
			RetryAfter                            int `json:"retry_after"`
		}
	}
	a := w.Limited(refused(), ask("application/json"))
	if err := json.Unmarshal(a.Body, &plain); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	if e := plain.Error; e.Code != "RATE_LIMITED" || e.RetryAfter != 62 || e.Ref != "ABCDEFGH2345" || e.Contact != `he said "hi" <b>` || e.Message == "" || e.Crawlers == "" {
		t.Errorf("%+v", e)
	}
	if ct := a.Header.Get("Content-Type"); ct != "application/json" || a.Header.Get("Content-Security-Policy") != "" {
		t.Errorf("header %v", a.Header)
	}
	var problem struct {
		Type, Title, Detail string
		Status              int
		Violated            []string `json:"violated-policies"`
	}
	a = w.Limited(refused(), ask("application/problem+json, text/html;q=0.2"))
	if err := json.Unmarshal(a.Body, &problem); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	if problem.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" || problem.Status != 429 || len(problem.Violated) != 1 || problem.Violated[0] != "hour" {
		t.Errorf("%+v", problem)
	}
	a = w.Unavailable(ask("application/problem+json"))
	if err := json.Unmarshal(a.Body, &problem); err != nil || problem.Status != 503 || !strings.HasSuffix(problem.Type, "#temporary-reduced-capacity") {
		t.Errorf("%v %+v", err, problem)
	}
	a = w.OriginDown(504, ask("application/problem+json"))
	if err := json.Unmarshal(a.Body, &problem); err != nil || problem.Status != 504 || a.Header.Get("Retry-After") != "" {
		t.Errorf("%v %+v", err, problem)
	}
}

// TestOutageIsNoLimit: a store's failure must be told from a limit by anyone.
func TestOutageIsNoLimit(t *testing.T) {
	t.Parallel()
	a := writer(t, Config{}).Unavailable(ask())
	if a.Status != 503 || a.Header.Get("Retry-After") != "30" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", a.Status, a.Header)
	}
	if a.Header.Get("RateLimit") != "" || strings.Contains(string(a.Body), "Too many") {
		t.Errorf("looks like a limit: %v %s", a.Header, a.Body)
	}
}

func TestHostileRefIsNotShown(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{})
	for _, ref := range []string{"", "<script>alert(1)</script>", "abcdefgh2345", "ABCDEFGH23451", "ABCDEFGH234\n", "ABCDEFGH234\u00e9"} {
		a := w.Limited(refused(), Request{Ref: ref, Now: noon})
		if !strings.Contains(string(a.Body), "<code>-</code>") {
			t.Errorf("ref %q is in the page", ref)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		ref := NewRef()
		if !ValidRef(ref) || seen[ref] {
			t.Fatalf("NewRef gave %q (again: %v)", ref, seen[ref])
		}
		seen[ref] = true
	}
}

func TestReplacedTemplates(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{
		Contact: `a"<b>`, HTML: `<style>p{}</style><p title="{{contact}}">{{ rule }} {{policies}} {{status}} {{retry_after}} {{ref}}</p><script>1</script>`,
		JSON: `{"s":{{status}},"c":"{{contact}}","p":{{policies}}}`,
	})
	a := w.Limited(refused(), ask())
	if got, want := string(a.Body), `<style>p{}</style><p title="a&#34;&lt;b&gt;">60 pages per hour hour 429 62 ABCDEFGH2345</p><script>1</script>`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := strings.Count(a.Header.Get("Content-Security-Policy"), "sha256-"); n != 2 {
		t.Errorf("policy has %d hashes, want 2", n)
	}
	a = w.Limited(refused(), ask("application/json"))
	if got, want := string(a.Body), `{"s":429,"c":"a\"\u003cb\u003e","p":["hour"]}`; got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if a := w.Unavailable(ask()); a.Status != 503 || !strings.Contains(string(a.Body), "not available") {
		t.Error("the 503 has a page of its own, whatever the 429's template")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxText+1)
	for want, cfg := range map[string]Config{
		"contact has 201 bytes":          {Contact: long},
		"site has 201 bytes":             {Site: long},
		"crawlers has 201 bytes":         {Crawlers: long},
		"unknown placeholder {{nope}}":   {HTML: "{{nope}}"},
		"{{ without }}":                  {JSON: `{"a":"{{ref"}`},
		"does not make JSON":             {JSON: `{"a":{{ref}}}`},
		"placeholder inside <script>":    {HTML: "<script>{{ref}}</script>"},
		"<style> without </style>":       {HTML: "<style>"},
		"write <style> in lower case":    {HTML: "<STYLE>p{}</STYLE>"},
		"write <script> in lower case":   {HTML: "<script async>1</script>"},
		"unknown headers mode 9":         {Headers: 9},
		"contact has 201 bytes, at most": {Contact: long, Site: long},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
}

func TestWriteHEAD(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{})
	for _, method := range []string{"GET", "HEAD"} {
		rec := httptest.NewRecorder()
		a := w.Limited(refused(), ask())
		a.Write(rec, method)
		if rec.Code != 429 || rec.Header().Get("Content-Length") == "0" || rec.Header().Get("Retry-After") != "62" {
			t.Errorf("%s: %d %v", method, rec.Code, rec.Header())
		}
		if (rec.Body.Len() == 0) != (method == http.MethodHead) {
			t.Errorf("%s: body of %d bytes", method, rec.Body.Len())
		}
	}
}

func TestRetryAfterRoundsUp(t *testing.T) {
	t.Parallel()
	digits := regexp.MustCompile(`^[1-9][0-9]*$`)
	for d, want := range map[time.Duration]string{
		-time.Hour: "1", 0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 1500 * time.Millisecond: "2", time.Hour: "3600", 1<<63 - 1: "9223372037",
	} {
		dec := refused()
		dec.RetryAfter = d
		a := writer(t, Config{}).Limited(dec, ask())
		if got := a.Header.Get("Retry-After"); got != want || !digits.MatchString(got) {
			t.Errorf("%v: Retry-After %q, want %q", d, got, want)
		}
	}
}

func TestWaitWords(t *testing.T) {
	t.Parallel()
	for s, want := range map[int64]string{
		1: "1 second", 59: "59 seconds", 60: "1 minute", 61: "61 seconds", 119: "119 seconds", 120: "2 minutes", 121: "3 minutes",
		3599: "1 hour", 3600: "1 hour", 3601: "1 hour 1 minute", 7200: "2 hours", 43200: "12 hours", 86399: "24 hours", 86400: "1 day", 90000: "25 hours", 172800: "2 days",
	} {
		if got := string(appendWait(nil, s)); got != want {
			t.Errorf("%d: %q, want %q", s, got, want)
		}
	}
	for limit, want := range map[int64]string{1: "1 page per minute", 60: "60 pages per minute"} {
		if got := ruleText(&core.State{Limit: limit, Window: time.Minute}); got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	if got := string(appendUntil(nil, noon, 12*3600)); got != "Dec 1, 00:00 UTC" {
		t.Errorf("until midnight: %q", got)
	}
}

func TestForwardAuthAnswers(t *testing.T) {
	t.Parallel()
	w := writer(t, Config{})
	admitted := &core.Decision{Outcome: core.Admit, Binding: 0, States: []core.State{{Bucket: "hour", Limit: 60, Remaining: 59, Window: time.Hour}}}
	if a := w.Allowed(admitted); a.Status != 200 || len(a.Body) != 0 || a.Header.Get("RateLimit") != `"hour";r=59;t=0` {
		t.Errorf("allowed: %d %v", a.Status, a.Header)
	}
	a := w.Marked(refused(), "ABCDEFGH2345")
	if a.Status != 403 || len(a.Body) != 0 || a.Header.Get("Retry-After") != "62" || a.Header.Get(MarkOutcome) != OutcomeLimited || a.Header.Get(MarkRef) != "ABCDEFGH2345" || a.Header.Get("RateLimit") == "" {
		t.Errorf("marked: %d %v", a.Status, a.Header)
	}
	a = w.Marked(&core.Decision{Outcome: core.Unavailable, Binding: -1}, "ABCDEFGH2345")
	if a.Status != 403 || a.Header.Get(MarkOutcome) != OutcomeUnavailable || a.Header.Get("RateLimit") != "" {
		t.Errorf("marked outage: %d %v", a.Status, a.Header)
	}
}

func BenchmarkLimited(b *testing.B) {
	w := writer(b, Config{Site: "s", Contact: "mailto:ops@example.org"})
	d, q := refused(), ask("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	b.ReportAllocs()
	for b.Loop() {
		w.Limited(d, q)
	}
}

func BenchmarkAnnotate(b *testing.B) {
	w := writer(b, Config{})
	d := refused()
	h := http.Header{"Content-Type": {"text/html"}, "Cache-Control": {"private, max-age=0"}}
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range []string{fieldPolicy, fieldLimit, fieldXLimit, fieldXRemains, fieldXReset} {
			delete(h, name)
		}
		w.Annotate(200, h, d)
	}
}
