package wire_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/wire"
)

var _ gate.Diagnoser = (*wire.Ready)(nil)

func asking(secrets ...string) *core.Request {
	return &core.Request{
		Method: "GET", Host: "example.org", Path: "/", Peer: netip.MustParseAddr("10.0.0.1"), Time: noon,
		Header: http.Header{gate.DoctorHeader: secrets, "X-Forwarded-For": {"198.51.100.1"}},
	}
}

// TestDiagnosis tells who sends the secret, and nobody else.
func TestDiagnosis(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("k", 40)
	s := &faulty{Store: memory.New(memory.Config{})}
	text := limit(3) + "doctor: {secrets: env:SECRET}\nclient: {from: xff, trusted_hops: 1, peers: [10.0.0.0/8]}\n"
	r, lines := ready(t, wire.Config{
		Policy: parse(t, text), Stores: registry(t, far(s, nil)), StoreURL: "far://host",
		Now: func() time.Time { return noon },
	})
	for _, secrets := range [][]string{nil, {""}, {secret[1:]}, {secret + "k"}, {secret, secret}} {
		if d, ok := r.Diagnose(t.Context(), asking(secrets...)); ok || d != nil {
			t.Errorf("%q was told %+v", secrets, d)
		}
	}
	if trips := r.Store().Meter.Read().Trips; trips != 0 {
		t.Errorf("strangers cost %d trips", trips)
	}
	ask := func() wire.Diagnosis {
		t.Helper()
		found, ok := r.Diagnose(t.Context(), asking(secret))
		if !ok {
			t.Fatal("the secret is not taken")
		}
		return found.(wire.Diagnosis)
	}
	d := ask()
	if d.Client.Addr != "198.51.100.1" || d.Client.Problem != "ok" || d.Client.Key != "address 198.51.100.1" || d.Client.From != "xff" ||
		!d.Store.Reachable || d.Store.Breaker != "closed" || d.Store.Name != "faulty" || d.Mode != "enforce" ||
		!d.Crawlers.Proving || d.Crawlers.Lists == 0 || d.Crawlers.OldestS <= 0 || d.Open != "" {
		t.Errorf("%+v", d)
	}
	if trips := r.Store().Meter.Read(); trips.Trips != 1 || trips.Reads != 1 || lines.Len() > 0 {
		t.Errorf("a diagnosis cost %d trips; log: %s", trips.Trips, lines)
	}
	if err := r.Parts().Limiter.LiftAll(t.Context(), noon, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	down := fmt.Errorf("connection refused: %w", core.ErrNotApplied)
	if d := ask(); d.Open != "2026-10-05T13:00:00Z" {
		t.Errorf("the operator's word: %q", d.Open)
	}
	s.err.Store(&down)
	if d := ask(); d.Store.Reachable || !strings.Contains(d.Store.Error, "connection refused") {
		t.Errorf("a store that is down: %+v", d.Store)
	}
	s.err.Store(nil)
	none, _ := ready(t, wire.Config{Policy: parse(t, limit(3))})
	if _, ok := none.Diagnose(t.Context(), asking("")); ok {
		t.Error("a policy without secrets answers")
	}
}
