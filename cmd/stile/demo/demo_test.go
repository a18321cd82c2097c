package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, path string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestListing opens every page and asset that the listing names.
func TestListing(t *testing.T) {
	t.Parallel()
	h := handler(t)
	_, body := get(t, h, "/")
	articles := regexp.MustCompile(`href="(/articles/\d+)"`).FindAllStringSubmatch(body, -1)
	if len(articles) != 30 {
		t.Errorf("%d links to articles, want 30", len(articles))
	}
	for _, m := range regexp.MustCompile(`(?:href|src|action)="(/[^"]*)"`).FindAllStringSubmatch(body, -1) {
		res, text := get(t, h, m[1])
		if res.StatusCode != 200 && res.StatusCode != 302 || text == "" {
			t.Errorf("%s: %d, %d bytes", m[1], res.StatusCode, len(text))
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	h := handler(t)
	for _, c := range []struct {
		path   string
		status int
		kind   string
	}{
		{"/", 200, "text/html"},
		{"/articles/30", 200, "text/html"},
		{"/articles/31", 404, "text/html"},
		{"/articles/x", 404, "text/html"},
		{"/search?q=stile", 200, "text/html"},
		{"/assets/style.css", 200, "text/css"},
		{"/assets/reader.js", 200, "text/javascript"},
		{"/assets/stile.svg", 200, "image/svg+xml"},
		{"/assets/text.woff2", 200, "font/woff2"},
		{"/images/hills.svg", 200, "image/svg+xml"},
		{"/assets/page.html", 404, "text/plain"}, // embedded, but not to be served
		{"/feed.xml", 200, "application/rss+xml"},
		{"/robots.txt", 200, "text/plain"},
	} {
		res, body := get(t, h, c.path)
		if got := res.Header.Get("Content-Type"); res.StatusCode != c.status || !strings.HasPrefix(got, c.kind) || body == "" {
			t.Errorf("%s: %d %s (%d bytes), want %d %s", c.path, res.StatusCode, got, len(body), c.status, c.kind)
		}
	}
}

func TestSearchEscapes(t *testing.T) {
	t.Parallel()
	_, body := get(t, handler(t), "/search?q=%3Cscript%3Ealert(1)%3C/script%3E")
	if strings.Contains(body, "<script>alert") {
		t.Error("the query was written unescaped")
	}
	if !strings.Contains(body, "&lt;script&gt;alert") {
		t.Error("the query was not shown")
	}
}

func TestRedirectChain(t *testing.T) {
	t.Parallel()
	h := handler(t)
	path, hops := "/redirect/3", 0
	for {
		res, _ := get(t, h, path)
		if res.StatusCode == http.StatusOK {
			break
		}
		if res.StatusCode != http.StatusFound || hops > 5 {
			t.Fatalf("%s: %d after %d hops", path, res.StatusCode, hops)
		}
		path, hops = res.Header.Get("Location"), hops+1
	}
	if path != "/articles/1" || hops != 3 {
		t.Errorf("ended at %s after %d hops, want /articles/1 after 3", path, hops)
	}
	for _, wild := range []string{"/redirect/999999999", "/redirect/-1", "/redirect/x"} {
		if res, _ := get(t, h, wild); res.StatusCode != http.StatusFound || !strings.HasPrefix(res.Header.Get("Location"), "/") {
			t.Errorf("%s: %d to %q", wild, res.StatusCode, res.Header.Get("Location"))
		}
	}
}
