package lambda

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/functiontest"
)

// TestPlatformLimitsAreSettings: a platform that changes its mind needs no new
// program, and a setting of no use changes nothing and is told.
func TestPlatformLimitsAreSettings(t *testing.T) {
	t.Parallel()
	policy := policyOf("{from: remote}", 1000, "")
	for _, c := range []struct {
		bytes, deadline string
		wantBytes       int
		wantDeadline    time.Duration
		told            string
	}{
		{"", "", 0, time.Second, ""},
		{"65536", "9s", 65536, 9 * time.Second, ""},
		{"65535", "1s", 0, time.Second, "STILE_MAX_ANSWER_BYTES"},
		{"6MB", "1s", 0, time.Second, "STILE_MAX_ANSWER_BYTES"},
		{"", "10s", 0, time.Second, "STILE_AUTHORIZER_DEADLINE"},
		{"", "0s", 0, time.Second, "STILE_AUTHORIZER_DEADLINE"},
	} {
		f, log := build(t, map[string]string{"STILE_POLICY": policy, "STILE_MAX_ANSWER_BYTES": c.bytes, "STILE_AUTHORIZER_DEADLINE": c.deadline})
		if f.mostBytes != c.wantBytes || f.within != c.wantDeadline {
			t.Errorf("%q %q: %d and %v", c.bytes, c.deadline, f.mostBytes, f.within)
		}
		if c.told != "" && !strings.Contains(log.String(), c.told) || c.told == "" && strings.Contains(log.String(), "the default is used") {
			t.Errorf("%q %q: log %s", c.bytes, c.deadline, log)
		}
	}
}

// TestSmallerAnswers: beyond the setting an answer is refused, below it passes.
func TestSmallerAnswers(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	f, _ := proxyTo(t, origin.URL, 1000, map[string]string{"STILE_MAX_ANSWER_BYTES": "65536"})
	for path, want := range map[string]int{"/file": 200, "/large": 502} {
		for _, event := range []string{"function-url", "alb"} {
			var r response
			if err := invoke(t, f, ask(t, event, "GET", path), &r); err != nil || r.StatusCode != want {
				t.Errorf("%s %s: %d, %v; want %d", event, path, r.StatusCode, err, want)
			}
		}
	}
}
