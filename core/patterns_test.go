package core

import (
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		yes, no string // space separated
	}{
		{"/**", "/ /a /a/b", ""},
		{"/**/", "/ /a /a/b", ""},
		{"/**/**", "/ /a /a/b", ""},
		{"/api/**", "/api /api/ /api/x /api/x/y //api//x /x/../api/y /api;v=1/x /api/.;/x", "/apis /x/api / /api/..;/page /api/.;/../page"},
		{"/robots.txt", "/robots.txt", "/x/robots.txt /robots.txt.html"},
		{"*.css", "/a.css /x/y.CSS /a.css;v=1", "/css /a.css/page /.css /page;.css /a.cssx"},
		{"/**/feed", "/feed /a/feed /a/b/feed/", "/feeds /feed/x"},
		{"/sitemap*", "/sitemap.xml /sitemap /sitemap-1.xml", "/a/sitemap.xml"},
		{"/**/sitemap*.xml", "/sitemap.xml /a/b/sitemap-9.xml", "/sitemap.html"},
		{"/a/*/c", "/a/b/c /a/x/c/", "/a/c /a/b/b/c"},
		{"/a/**/c", "/a/c /a/b/c /a/b/b/c", "/a /c /a/c/d"},
		{"/a*b*c/**/d*", "/abc/d /aXbXc/x/y/dz", "/abd/d /abc"},
		{"__data.json", "/x/__data.json /__data.json", "/x/data.json"},
		{"*__data.json", "/x/about.html__data.json", "/x/data.json"},
	} {
		p, err := CompilePatterns(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range strings.Fields(tt.yes) {
			if !p.Match(s) {
				t.Errorf("%s does not match %s", tt.pattern, s)
			}
		}
		for _, s := range strings.Fields(tt.no) {
			if p.Match(s) {
				t.Errorf("%s matches %s", tt.pattern, s)
			}
		}
	}
	for _, bad := range []string{"", "a/b", "/a**/b", "x**y", "/a;b", "/a//b", "/a/../b", "//**"} {
		if _, err := CompilePatterns(bad); err == nil {
			t.Errorf("%q compiles", bad)
		}
	}
	var none *Patterns
	if none.Match("/") {
		t.Error("nil matches")
	}
}

func TestDefaultExcludeCompiles(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{DefaultExcludeList, pageDataList} {
		if _, err := CompilePatterns(list...); err != nil {
			t.Error(err)
		}
	}
	for path, page := range map[string]bool{
		"/": true, "/contact": true, "/2024/05/post/": true, "/index.html": true, "/a.php": true, "/wiki/C++": true, "/sitemaps-explained": false,
		"/wp-json/wp/v2/posts": false, "/api/x": false, "/main.css": false, "/_next/static/chunks/1.js": false, "/_next/image": false,
		"/.well-known/acme-challenge/x": false, "/robots.txt": false, "/feed/": false, "/category/x/feed/": false, "/doc.pdf": false,
	} {
		if got := (&Count{}).countsPath(&Request{Path: path}); got != page {
			t.Errorf("%s counts as a page: %v, want %v", path, got, page)
		}
	}
}

// FuzzPatterns: matching ends, and a path means the same with what servers
// commonly fold away.
func FuzzPatterns(f *testing.F) {
	f.Add("/a/**/b*", "/a/x/../b")
	f.Add("*.css", "/x/.css;a.css")
	f.Add("/**/", "0")
	f.Add("0", "0/.;")
	f.Add("/b", "/b;c/;x/..;y/")
	f.Add("/**/**/**/*a*a*a*b", "/"+strings.Repeat("a/", 200))
	f.Fuzz(func(t *testing.T, pattern, path string) {
		p, err := CompilePatterns(pattern)
		if err != nil {
			return
		}
		got := p.Match(path)
		clean := cleanPath(path)
		if again := cleanPath(clean); again != clean || clean[0] != '/' || strings.ContainsAny(clean, ";") {
			t.Fatalf("%q is cleaned to %q, and that to %q", path, clean, again)
		}
		if p.Match(clean) != got {
			t.Fatalf("%q: %q matches %v, cleaned %q %v", pattern, path, got, clean, !got)
		}
		var c Count
		c.classify(&Request{Method: "GET", Path: path, RawQuery: pattern, Header: headerMap{"Sec-Fetch-Dest": pattern, "Sec-Purpose": path, "Accept": pattern}})
	})
}
