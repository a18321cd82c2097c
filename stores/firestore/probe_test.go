package firestore

import (
	"errors"
	"testing"
)

func testProbeEmulator(t *testing.T, addr string) {
	s := open(t, addr)
	if err := s.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	// The emulator knows no policies.
	if err := s.CheckTTL(t.Context()); !errors.Is(err, ErrUnchecked) {
		t.Errorf("CheckTTL: %v, want ErrUnchecked", err)
	}
}
