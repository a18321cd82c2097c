package fetch

import (
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for a, want := range map[string]bool{
		"8.8.8.8": true, "2a00:1450::1": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.31.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "255.255.255.255": false, "224.0.0.1": false, "240.0.0.1": false, "198.18.0.1": false,
		"::": false, "fe80::1": false, "fd00:ec2::254": false, "ff02::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false,
		"64:ff9b::a00:1": false, "2002:a00:1::": false, "::a00:1": false,
	} {
		if got := Public(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: public %v, want %v", a, got, want)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestMaxAge(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]time.Duration{
		"": 0, "max-age=60": time.Minute, `public, Max-Age="60"`: time.Minute, "max-age=60, no-cache": 0, "no-store": 0,
		"max-age=-1": 0, "max-age=x": 0, "max-age=99999999999999999999": 0, "max-age": 0,
	} {
		if got := maxAge(http.Header{"Cache-Control": {v}}); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}

func TestHTTPSOnly(t *testing.T) {
	t.Parallel()
	var c Client
	for _, u := range []string{"http://example.com/", "file:///etc/passwd", "gopher://example.com", ":", ""} {
		if _, err := c.Get(t.Context(), Want{URL: u, MaxBytes: 1}); err == nil {
			t.Errorf("%q was fetched", u)
		}
	}
}
