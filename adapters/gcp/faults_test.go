package gcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/functiontest"
)

// TestFaultTable holds the function against docs/origin-faults.md, under a server
// that does what the Functions Framework does: it catches panics, and gives each
// request the platform's time.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	functiontest.CheckFaults(t, "Cloud Run function", func(t *testing.T, origin string, limit time.Duration) string {
		_, _, f := serve(t, map[string]string{"STILE_ORIGIN": origin, "STILE_POLICY": policyOf("{from: remote}", 1000)})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { _ = recover() }()
			ctx, cancel := context.WithTimeout(r.Context(), limit)
			defer cancel()
			f.ServeHTTP(w, r.WithContext(ctx))
		}))
		t.Cleanup(s.Close)
		return s.URL
	})
}
