package gcp

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// TestClientByHops: the count of entries never matters, only the place from the
// right; and whoever adds entries adds them on the left.
func TestClientByHops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		lines            []string
		direct, balancer string // "" = not found
	}{
		{"run.app", []string{"198.51.100.7"}, "198.51.100.7", ""},
		{"run.app, client adds one", []string{"203.0.113.1, 198.51.100.7"}, "198.51.100.7", "203.0.113.1"},
		{"balancer", []string{"198.51.100.7,34.1.2.3"}, "34.1.2.3", "198.51.100.7"},
		{"balancer, client adds two", []string{"203.0.113.1, junk, 198.51.100.7,34.1.2.3"}, "34.1.2.3", "198.51.100.7"},
		{"in lines", []string{"203.0.113.1", "198.51.100.7", "34.1.2.3"}, "34.1.2.3", "198.51.100.7"},
		{"empty entries", []string{"198.51.100.7, ,34.1.2.3,", ""}, "34.1.2.3", "198.51.100.7"},
		{"IPv6", []string{"2001:db8::7,34.1.2.3"}, "34.1.2.3", "2001:db8::7"},
		{"mapped", []string{"::ffff:198.51.100.7"}, "198.51.100.7", ""},
		{"junk", []string{"<script>"}, "", ""},
		{"junk second", []string{"<script>,34.1.2.3"}, "34.1.2.3", ""},
		{"none", nil, "", ""},
	} {
		r := &http.Request{Header: http.Header{}}
		if c.lines != nil {
			r.Header["X-Forwarded-For"] = c.lines
		}
		for ingress, want := range map[Ingress]string{Direct: c.direct, LoadBalancer: c.balancer} {
			got := ingress.client(r)
			if want == "" && got.IsValid() || want != "" && got != netip.MustParseAddr(want) {
				t.Errorf("%s, %s: %v, want %q", c.name, ingress, got, want)
			}
		}
	}
}

func TestArrived(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "169.254.8.129:1234"
	if got := arrived(r); got != r {
		t.Error("without the platform's fields the request is as it came")
	}
	r.Header.Set("X-Forwarded-For", "203.0.113.1, 198.51.100.7")
	r.Header.Set("X-Forwarded-Proto", "https")
	got := arrived(r)
	if got.RemoteAddr != "198.51.100.7:0" || got.TLS == nil {
		t.Errorf("peer %s, TLS %v: want the one that Google was connected to, over TLS", got.RemoteAddr, got.TLS)
	}
	if r.RemoteAddr != "169.254.8.129:1234" || r.TLS != nil {
		t.Error("the caller's request was changed")
	}
}

func TestParseIngress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Ingress{"": Direct, "direct": Direct, "load-balancer": LoadBalancer} {
		if got, err := ParseIngress(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := ParseIngress("auto"); err == nil {
		t.Error("auto: the number of entries is the client's choice, so there is no such thing")
	}
}
