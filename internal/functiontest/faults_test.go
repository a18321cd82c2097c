package functiontest

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestFaultTableUnderTheFramework holds the function against
// docs/origin-faults.md as Google's buildpack builds it and its framework runs it.
func TestFaultTableUnderTheFramework(t *testing.T) {
	CheckFaults(t, "Cloud Run function", func(t *testing.T, origin string, limit time.Duration) string {
		url, _ := runFunction(t, origin, fmt.Sprintf("CLOUD_RUN_TIMEOUT_SECONDS=%d", int(limit.Seconds())), "STILE_POLICY="+policyText("{from: remote}", 1000, ""))
		return url
	})
}

// TestAuthorizedBytesPassBy: where Stile is only asked, by API Gateway here, a
// fault of the site reaches the visitor as the gateway passes it on, and what was
// asked beforehand changes nothing.
func TestAuthorizedBytesPassBy(t *testing.T) {
	origin := httptest.NewServer(Origin())
	defer origin.Close()
	s := httptest.NewServer(gateway(t, origin.URL, "STILE_POLICY="+policyText("{from: remote}", 1000, "")))
	defer s.Close()
	f := &faults{}
	if got := f.ask(t, visitor, "GET", s.URL+"/abort/chunked", "X-Test-Client", "198.51.100.7"); got.status == 502 || got.err == nil && got.n == 1000 {
		t.Errorf("a page that breaks off: %q", got.words(200, 1000))
	}
	if g := f.ask(t, visitor, "GET", s.URL+"/file", "Range", "bytes=15-29", "X-Test-Client", "198.51.100.7"); g.status != 206 || !strings.HasPrefix(string(g.body), "56789") {
		t.Errorf("a range: %d %q", g.status, g.body)
	}
}
