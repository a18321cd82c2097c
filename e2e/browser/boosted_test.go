package browser_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
)

const pagesDir = "testdata/pages"

// libraries are the files of the npm packages, as a page without a bundler loads
// them.
var libraries = map[string]string{
	"/lib/turbo.js": "@hotwired/turbo/dist/turbo.es2017-umd.js",
	"/lib/htmx.js":  "htmx.org/dist/htmx.min.js",
	"/lib/htmx4.js": "htmx4/dist/htmx.min.js",
}

// mend is what docs/counting.md tells sites with htmx 2 to add: a boosted click
// that is refused becomes a page load, which shows why.
const mend = `<script>document.addEventListener("htmx:responseError",e=>{if(e.detail.xhr.status===429&&e.detail.boosted)location.assign(e.detail.pathInfo.finalRequestPath)})</script>`

// heads are the heads of the pages below /NAME/, and bodies' attributes.
var heads = map[string]struct{ head, body string }{
	"turbo":       {`<script src="/lib/turbo.js" defer></script>`, ""},
	"htmx":        {`<script src="/lib/htmx.js" defer></script>`, `hx-boost="true"`},
	"htmx-mended": {`<script src="/lib/htmx.js" defer></script>` + mend, `hx-boost="true"`},
	"htmx4":       {`<script src="/lib/htmx4.js" defer></script>`, `hx-boost:inherited="true"`},
}

// boostedSite has pages that a script turns into soft navigations.
func boostedSite(t *testing.T) (url string, rec *recorder) {
	t.Helper()
	node(t)
	install(t, pagesDir)
	return watched(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, ok := libraries[r.URL.Path]; ok {
			http.ServeFile(w, r, path.Join(pagesDir, "node_modules", file))
			return
		}
		kind, n, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		h, ok := heads[kind]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		if n == "part" {
			fmt.Fprint(w, `<b id="part">a part</b>`)
			return
		}
		fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>View %s</title><link rel="icon" href="data:,">%s</head><body %s><h1>View %s</h1>`, n, h.head, h.body, n)
		for i := range 12 {
			fmt.Fprintf(w, `<p><a id="soft-%d" href="/%s/%d" data-turbo-prefetch="false">view %d</a> <a id="ahead-%d" href="/%s/%d">view %d, fetched ahead</a>`, i, kind, i, i, i, kind, i, i)
		}
		fmt.Fprintf(w, `<p><button hx-get="/%s/part" hx-target="#out">part</button><p id="out"></p><p><a id="hard" href="/%s/0" data-turbo="false" hx-boost="false">as a page</a>`, kind, kind)
	}))
}

// TestBoosted: what Turbo and htmx fetch is a claim, however it is said; a page
// that is loaded is counted.
func TestBoosted(t *testing.T) {
	t.Parallel()
	url, rec := boostedSite(t)
	steps := play(t, "boosted.mjs", serve(t, wide, url), rec, nil)
	for _, want := range []struct {
		step         string
		hits, soft   int
		field, value string // of each fetch
		atLeast      bool   // a page that is swapped in may have another link under the mouse
	}{
		{step: "turbo: a page", hits: 1},
		{step: "turbo: ten soft clicks", soft: 10, field: "Accept", value: "text/html, application/xhtml+xml"},
		{step: "turbo: three links under the mouse", soft: 3, field: "X-Sec-Purpose", value: "prefetch", atLeast: true},
		{step: "turbo: a click on a link fetched ahead", soft: 1, field: "X-Sec-Purpose", value: "prefetch", atLeast: true},
		{step: "turbo: a link that opts out", hits: 1, field: "X-Sec-Purpose", value: "prefetch", atLeast: true},
		{step: "htmx: a page", hits: 1},
		{step: "htmx: ten soft clicks", soft: 10, field: "Hx-Boosted", value: "true"},
		{step: "htmx: a part of a page", soft: 1, field: "Hx-Request", value: "true"},
		{step: "htmx: a link that opts out", hits: 1},
		{step: "htmx4: a page", hits: 1},
		{step: "htmx4: ten soft clicks", soft: 10, field: "Hx-Request", value: "true"},
		{step: "htmx4: a part of a page", soft: 1, field: "Hx-Request", value: "true"},
		{step: "htmx4: a link that opts out", hits: 1},
	} {
		s, ok := steps[want.step]
		if !ok {
			t.Errorf("%s was not played", want.step)
			continue
		}
		soft := 0
		for _, v := range pagesOf(s) {
			if v.dest == "empty" {
				soft++
				if got := v.header.Get(want.field); got != want.value {
					t.Errorf("%s: %s is %q, want %q in %v", want.step, want.field, got, want.value, v.header)
				}
			}
		}
		if s.hits() != want.hits || s.refused() != 0 || want.hits > 0 && !slices.Equal(s.dests(), []string{"document"}) {
			t.Errorf("%s: %d counted, want %d; dest %q, %d refused", want.step, s.hits(), want.hits, s.dests(), s.refused())
		}
		if soft < want.soft || soft > want.soft && !want.atLeast {
			t.Errorf("%s: %d fetched, want %d: %+v", want.step, soft, want.soft, s.Visits)
		}
	}
}

// oneAndTwo has room for one page and two claims of each client. A load balancer
// in front says who that is.
const oneAndTwo = `
version: 1
site: browsers
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [127.0.0.1/32]}
exempt: {crawlers: {search: ordinary, preview: ordinary}} # so that no list is fetched
count: {claims: enforce, claims_factor: 2}
buckets: [{name: day, key: address, algorithm: fixed-window, limit: 1, window: 24h}]
`

// A refusal is one way to a refused soft navigation, for softrefused.mjs.
type refusal struct {
	Name  string `json:"name"`
	Start string `json:"start"`
	Click string `json:"click"`
}

// shown checks that a refused soft navigation ended in the page that says why, by
// so many page loads, and that nothing went on from there.
func shown(t *testing.T, s step, path string, documents int) {
	t.Helper()
	if s.Documents != documents || s.hits() != 0 || s.refused() != documents+1 || s.Requests != documents+1 {
		t.Errorf("refused soft click: %d documents, want %d; %d counted, %d refused, %d requests", s.Documents, documents, s.hits(), s.refused(), s.Requests)
	}
	if !strings.HasPrefix(s.Title, "Too many pages") || s.Path != path || !strings.HasPrefix(s.Text, "in ") {
		t.Errorf("refused soft click: title %q at %s, the countdown says %q", s.Title, s.Path, s.Text)
	}
}

// TestBoostedLimited: Turbo and htmx 4 put the refusal in the place of the page.
// htmx 2 shows nothing unless the site says what to do with a 429.
func TestBoostedLimited(t *testing.T) {
	t.Parallel()
	url, rec := boostedSite(t)
	steps := play(t, "softrefused.mjs", serve(t, oneAndTwo, url), rec, []refusal{
		{Name: "Turbo", Start: "/turbo/0", Click: "#soft-3"},
		{Name: "Turbo, fetched ahead", Start: "/turbo/0", Click: "#ahead-3"},
		{Name: "htmx 2", Start: "/htmx/0", Click: "#soft-3"},
		{Name: "htmx 2, mended", Start: "/htmx-mended/0", Click: "#soft-3"},
		{Name: "htmx 4", Start: "/htmx4/0", Click: "#soft-3"},
	})
	for _, name := range []string{"Turbo", "Turbo, fetched ahead", "htmx 2", "htmx 2, mended", "htmx 4"} {
		s := steps[name]
		t.Logf("%-22s %d documents, %d requests, %d refused, heading %q at %s", name, s.Documents, s.Requests, s.refused(), s.First, s.Path)
	}
	shown(t, steps["Turbo"], "/turbo/3", 0)
	// The click takes the refused prefetch for an answer, or asks once more.
	if s := steps["Turbo, fetched ahead"]; !strings.HasPrefix(s.Title, "Too many pages") || s.Documents != 0 || s.Requests > 2 {
		t.Errorf("Turbo, fetched ahead: title %q after %d requests, %d documents", s.Title, s.Requests, s.Documents)
	}
	shown(t, steps["htmx 2, mended"], "/htmx-mended/3", 1)
	shown(t, steps["htmx 4"], "/htmx4/3", 0)
	if s := steps["htmx 2"]; s.First != "View 2" || s.Documents != 0 || s.Requests != 1 || s.refused() != 1 {
		t.Errorf("htmx 2 showed heading %q after %d requests (%d documents), %d refused", s.First, s.Requests, s.Documents, s.refused())
	}
}
