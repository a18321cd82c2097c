package browser_test

import (
	"slices"
	"strings"
	"testing"
)

// wide never refuses: what is counted is the question.
const wide = `
version: 1
site: browsers
contact: mailto:ops@example.org
exempt: {crawlers: {search: ordinary, preview: ordinary}} # so that no list is fetched
buckets: [{name: day, key: address, algorithm: fixed-window, limit: 100000, window: 24h}]
`

// TestStaticSite: what a browser does by itself, step by step, and what of it is
// a page that somebody opened.
func TestStaticSite(t *testing.T) {
	t.Parallel()
	node(t)
	own := newSite(t)
	stile := serve(t, wide, own.url)
	steps := play(t, "static.mjs", stile, &own.recorder, nil)

	doc := []string{"document"}
	for name, want := range map[string]struct {
		hits  int
		dests []string
	}{
		"typed address":       {1, doc},
		"ten links":           {10, doc}, // and ten times back, which sends nothing
		"reload":              {1, doc},
		"link, back, forward": {0, nil}, // visited before: out of the browser's caches, checked below
		"new tab":             {1, doc},
		"form":                {1, doc},
		"redirect chain":      {1, doc},
		"frames":              {1, doc},
		"page script":         {1, doc},
		"rel=prefetch":        {1, doc},
		"speculation rules":   {1, doc},
		"download":            {2, doc}, // the page, and the attachment: a document to the browser
		"worker installed":    {1, doc},
		"through the worker":  {1, []string{"empty"}},
	} {
		s, ok := steps[name]
		if !ok {
			t.Errorf("%s was not played", name)
			continue
		}
		if name == "link, back, forward" {
			// The click asks the site (no-cache); back and forward do not.
			want.hits, want.dests = 1, doc
		}
		want.hits += s.Again
		if s.hits() != want.hits || !slices.Equal(s.dests(), want.dests) || s.refused() != 0 {
			t.Errorf("%s: %d counted with dest %q and %d refused, want %d with %q; log %+v", name, s.hits(), s.dests(), s.refused(), want.hits, want.dests, s.Log)
		}
	}

	// What was not counted did happen.
	if s := steps["speculation rules"]; s.speculated() < 2 {
		t.Errorf("no prefetch and prerender reached the site: %+v", s.Visits)
	}
	if s := steps["rel=prefetch"]; s.speculated() != 1 {
		t.Errorf("no prefetch reached the site: %+v", s.Visits)
	}
	if s := steps["redirect chain"]; len(pagesOf(s)) != 4 {
		t.Errorf("the chain has three hops and an end: %+v", s.Visits)
	}
	if s := steps["frames"]; !slices.Contains(destsOf(s), "iframe") || !slices.Contains(destsOf(s), "object") {
		t.Errorf("no frame reached the site: %+v", s.Visits)
	}
	if s := steps["page script"]; len(pagesOf(s)) != 4 { // the page, two fetches, the WebSocket
		t.Errorf("the page's script sent %+v", s.Visits)
	}
	if s := steps["download"]; len(pagesOf(s)) != 3 {
		t.Errorf("two downloads: %+v", s.Visits)
	}
	if s := steps["form"]; s.Title != "search" {
		t.Errorf("the form led to %q", s.Title)
	}
	if s := steps["click on a prefetched link"]; s.hits() > 1 {
		t.Errorf("a click counted %d times", s.hits())
	} else {
		t.Logf("a click on a prefetched link: %d counted (the page was fetched ahead)", s.hits())
	}
	if s := steps["through the worker"]; s.Title != "page/25" {
		t.Errorf("the worker led to %q", s.Title)
	}
}

// pagesOf lists the visits that are no assets.
func pagesOf(s step) []visit {
	var out []visit
	for _, v := range s.Visits {
		if v.method == "GET" && !strings.Contains(v.path, ".") {
			out = append(out, v)
		}
	}
	return out
}

func destsOf(s step) []string {
	var out []string
	for _, v := range s.Visits {
		out = append(out, v.dest)
	}
	return out
}
