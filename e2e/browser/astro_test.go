package browser_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const astroDir = "testdata/astro"

// astroSite builds the Astro site and serves its files as static hosts do: pages
// are asked for each time, bundles with a hash in their names never again.
func astroSite(t *testing.T) (url string, rec *recorder) {
	t.Helper()
	nodeBin, _ := node(t)
	install(t, astroDir)
	astro, err := filepath.Abs(filepath.Join(astroDir, "node_modules/astro/astro.js"))
	if err != nil {
		t.Fatal(err)
	}
	build(t, astroDir, "dist/index.html", nodeBin, astro, "build")
	files := http.FileServer(http.Dir(filepath.Join(astroDir, "dist")))
	return watched(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_astro/") {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			w.Header().Set("Cache-Control", "public, max-age=0, must-revalidate")
		}
		files.ServeHTTP(w, r)
	}))
}

// TestAstro: a static build of Astro. What it fetches ahead is not counted, and
// neither is what its ClientRouter fetches; a page that is loaded is.
func TestAstro(t *testing.T) {
	t.Parallel()
	url, rec := astroSite(t)
	stile := serve(t, wide, url)
	steps := play(t, "astro.mjs", stile, rec, nil)
	for name, want := range map[string]struct{ hits, ahead, fetched int }{ // -1: any number
		"listing":                   {1, 0, 0},
		"ten links come into view":  {0, 10, 0},
		"ten links under the mouse": {0, 10, 0},
		"ten plain links and back":  {10, 0, 0},
		"a page with ClientRouter":  {1, 0, 0},
		"ten soft clicks":           {0, 0, 10},
		// The click takes what was fetched, or asks again. The page that it leads to
		// has another link under the mouse.
		"a soft click on a link fetched ahead": {0, -1, -1},
		"a link that says reload":              {1, -1, 0},
	} {
		s, ok := steps[name]
		if !ok {
			t.Errorf("%s was not played", name)
			continue
		}
		fetched := 0
		for _, v := range pagesOf(s) {
			if v.dest == "empty" && v.purpose == "" {
				fetched++
			}
		}
		if s.hits() != want.hits+s.Again || s.refused() != 0 || want.hits > 0 && !slices.Equal(s.dests(), []string{"document"}) {
			t.Errorf("%s: %d counted, want %d and %d gone back to; dest %q, %d refused", name, s.hits(), want.hits, s.Again, s.dests(), s.refused())
		}
		if want.ahead >= 0 && s.speculated() != want.ahead || want.fetched >= 0 && fetched != want.fetched {
			t.Errorf("%s: %d fetched ahead, want %d; %d fetched, want %d", name, s.speculated(), want.ahead, fetched, want.fetched)
		}
		t.Logf("%-38s %2d counted, %2d fetched ahead, %2d fetched", name, s.hits(), s.speculated(), fetched)
	}
	if steps["a soft click on a link fetched ahead"].speculated() < 1 {
		t.Error("nothing was fetched ahead of the soft click")
	}
	// The browser may take the page that it fetched ahead, and is then not seen.
	if s := steps["a click on a link fetched ahead"]; s.Title != "Article 10" || s.hits() > 1 {
		t.Errorf("a click on a link fetched ahead: %d counted, title %q", s.hits(), s.Title)
	} else {
		t.Logf("a click on a link fetched ahead: %d counted", s.hits())
	}
}

// TestAstroLimited: ClientRouter does not show what is no page of its own. It has
// the browser load it, which is refused with the page that says why.
func TestAstroLimited(t *testing.T) {
	t.Parallel()
	url, rec := astroSite(t)
	steps := play(t, "softrefused.mjs", serve(t, oneAndTwo, url), rec, []refusal{
		{Name: "ClientRouter", Start: "/app/0/", Click: "#soft-3"},
	})
	shown(t, steps["ClientRouter"], "/app/3/", 1)
}
