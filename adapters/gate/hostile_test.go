package gate

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stilehq/stile/core"
)

// FuzzOriginalTarget: whatever a proxy hands on as the original target, it is a
// path that begins with a slash and keeps its query, or it is refused.
func FuzzOriginalTarget(f *testing.F) {
	for _, s := range []string{"/a?b=c", "/a%2Fb//c", "/%zz", "http://h/p?q", "*", "", "//x", "/?x=1;y=2", "h:80", "/a?b?c", "http://[::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		var c call
		if !c.setURI(uri) {
			return
		}
		if strings.HasPrefix(uri, "/") {
			path, query, _ := strings.Cut(uri, "?")
			if c.req.RawQuery != query || c.req.Path == "" || !strings.HasPrefix(path, "/") {
				t.Fatalf("%q became %q ? %q", uri, c.req.Path, c.req.RawQuery)
			}
			if decoded, err := url.PathUnescape(path); err == nil && decoded != c.req.Path {
				t.Fatalf("%q: path %q", uri, c.req.Path)
			}
		}
	})
}

// FuzzRedirectTarget: a credit is left only for where a browser would go, in the
// very form in which its next request will come.
func FuzzRedirectTarget(f *testing.F) {
	for _, s := range []string{"/a", "http://EXAMPLE.org:80/x?y", "//other/z", "../up", "?q", "#f", "", "javascript:alert(1)", "mailto:x", "http://", "/a%2Fb", "\x00", "https://h:443", "//@", "//:80", "//:443/x"} {
		f.Add(s, "/dir/page")
	}
	f.Fuzz(func(t *testing.T, location, path string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		from := &core.Request{Host: "example.org", Path: path}
		got := redirectTarget(from, &http.Request{Header: http.Header{}}, location)
		if got == "" {
			return
		}
		if !strings.Contains(got, "/") {
			t.Fatalf("%q from %q: %q has no path", location, path, got)
		}
		if fragment := "#fragment-of-its-own"; redirectTarget(from, &http.Request{Header: http.Header{}}, strings.TrimRight(location, "#")+fragment) != got && !strings.Contains(location, "#") {
			t.Fatalf("%q: a fragment is never sent, and changed the target", location)
		}
		if u, err := url.Parse(location); err == nil && u.Host == "" && u.Scheme == "" && !strings.HasPrefix(got, "example.org/") {
			t.Fatalf("%q leads off the site: %q", location, got)
		}
	})
}

func TestRedirectTarget(t *testing.T) {
	t.Parallel()
	from := &core.Request{Host: "Example.org:8080", Path: "/dir/page"}
	for location, want := range map[string]string{
		"":                                "",
		"/a":                              "Example.org:8080/a",
		"b?x=1;y=2":                       "Example.org:8080/dir/b?x=1;y=2",
		"?q":                              "Example.org:8080/dir/page?q",
		"/a%20b/%C3%A9#f":                 "Example.org:8080/a b/é",
		"http://EXAMPLE.org":              "example.org/",
		"http://example.org:80/x":         "example.org/x",
		"https://example.org:443/x":       "example.org/x",
		"http://example.org:443/x":        "example.org:443/x",
		"//other.example/../y":            "other.example/y",
		"javascript:alert(1)":             "",
		"mailto:x@example.org":            "",
		"http://exa mple.org/":            "",
		"/" + strings.Repeat("../", 5):    "Example.org:8080/",
		"https://user:pw@example.org/x?y": "example.org/x?y",
	} {
		if got := redirectTarget(from, &http.Request{Header: http.Header{}}, location); got != want {
			t.Errorf("%q: %q, want %q", location, got, want)
		}
	}
	https := &http.Request{Header: http.Header{"X-Forwarded-Proto": {"https"}}}
	if got := redirectTarget(from, https, "//example.org:443/x"); got != "example.org/x" {
		t.Errorf("behind TLS: %q", got)
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "4bf92f3577b34da6a3ce929d0e0e4736",
		"": "", "00-": "", strings.Repeat("-", 55): "",
		"00-4bf92f3577b34da6a3ce929d0e0e473\n-00f067aa0ba902b7-01": "",
	} {
		if got := traceparent(&http.Request{Header: http.Header{"Traceparent": {value}}}); got != want {
			t.Errorf("%q: %q", value, got)
		}
	}
}
