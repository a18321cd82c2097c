package gate_test

import (
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/internal/functiontest"
)

// TestFaultTable holds `stile serve` against docs/origin-faults.md. No platform
// ends its requests, so the limit is nobody's.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	functiontest.CheckFaults(t, "stile serve", func(t *testing.T, origin string, _ time.Duration) string {
		return newRig(t, hourly(1000), nil, func(c *gate.Config) { c.Origin = mustURL(t, origin) }).url
	})
}
