package gate_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
)

func metricsText(t testing.TB, m *gate.Metrics) string {
	t.Helper()
	rec := httptest.NewRecorder()
	gate.Admin(m).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	return rec.Body.String()
}

// TestMetrics: every line is of the text format, the numbers are right, and
// nothing in them comes from a request.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(2), pages)
	r.metrics.Gauge("stile_table_age_seconds", "Age.", func() float64 { return 1.5 })
	for range 3 {
		r.get("203.0.113.9", "/visitor-data", "User-Agent: visitor-data", "Sec-Fetch-Dest: document")
	}
	r.get("203.0.113.9", "/a.css")
	text := metricsText(t, r.metrics)
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? [0-9.e+-]+)$`)
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("not a line of the format: %q", l)
		}
	}
	for _, want := range []string{
		`stile_decisions_total{class="counted",outcome="admit",reason="within-limit"} 2`,
		`stile_decisions_total{class="counted",outcome="refuse",reason="over-limit"} 1`,
		`stile_decisions_total{class="ignored",outcome="pass",reason="path"} 1`,
		`stile_store_seconds_bucket{le="+Inf"} 3`, `stile_store_seconds_count 3`, `stile_table_age_seconds 1.5`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("lacks %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "visitor-data") || strings.Contains(text, "203.0.113") {
		t.Error("visitor data in the metrics")
	}
	rec := httptest.NewRecorder()
	gate.Admin(r.metrics).ServeHTTP(rec, httptest.NewRequest("GET", "/healthz", nil))
	if rec.Code != 200 || rec.Body.String() != "ok\n" {
		t.Errorf("%d %q", rec.Code, rec.Body)
	}
}
