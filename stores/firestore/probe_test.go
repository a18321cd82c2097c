package firestore

import "testing"

func testProbeEmulator(t *testing.T, addr string) {
	if err := open(t, addr).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
}
