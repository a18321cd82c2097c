package answer

import "testing"

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		accept []string
		want   Format
	}{
		{nil, HTML},
		{[]string{""}, HTML},
		{[]string{"*/*"}, HTML},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, HTML},
		{[]string{"application/json"}, JSON},
		{[]string{"APPLICATION/JSON"}, JSON},
		{[]string{"application/json, text/plain, */*"}, JSON},
		{[]string{"text/html, application/json"}, HTML},
		{[]string{"text/html;q=0.9, application/json"}, JSON},
		{[]string{"text/html;q=0.9, application/json;q=0.8"}, HTML},
		{[]string{"text/html;q=0.9", "application/json"}, JSON},
		{[]string{"application/json;q=0"}, HTML},
		{[]string{"application/json;q=2"}, HTML},
		{[]string{"application/json;q=x"}, HTML},
		{[]string{"application/json;q=NaN"}, HTML},
		{[]string{"application/json;q=0.1, */*"}, HTML},
		{[]string{"application/json;q=0.5, text/*;q=0.4"}, JSON},
		{[]string{`application/json;v="a,b;q=0", text/html;q=0.1`}, JSON},
		{[]string{"application/problem+json"}, Problem},
		{[]string{"application/problem+json, application/json"}, Problem},
		{[]string{"application/problem+json;q=0.5, application/json"}, JSON},
		{[]string{"application/problem+json, text/html"}, HTML},
		{[]string{"application/*"}, HTML},
		{[]string{",,;,;;q=,"}, HTML},
	} {
		if got := Negotiate(c.accept); got != c.want {
			t.Errorf("%q: %d, want %d", c.accept, got, c.want)
		}
	}
}

// FuzzNegotiate: JSON only for those who name it.
func FuzzNegotiate(f *testing.F) {
	f.Add("application/json;q=0.5, text/html")
	f.Add(`a;b="\`)
	f.Fuzz(func(t *testing.T, accept string) {
		got := Negotiate([]string{accept})
		if got != Negotiate([]string{"x/y", accept}) {
			t.Fatal("another line changed the choice")
		}
		if got > Problem {
			t.Fatalf("format %d", got)
		}
	})
}
