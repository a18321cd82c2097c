package bench

import (
	"math"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	// Slots partition the numbers: each value lies at or below its slot's top,
	// above the one before, and within 1/64 of it.
	for _, n := range []uint64{0, 1, 63, 64, 65, 127, 128, 129, 1000, 1 << 20, 1<<20 + 12345, 1 << 40, math.MaxInt64} {
		slot := slotOf(n)
		top := topOf(slot)
		if n > top || slot > 0 && n <= topOf(slot-1) || float64(top-n) > float64(n)/64 {
			t.Errorf("%d is in slot %d up to %d", n, slot, top)
		}
	}
	var h, o histogram
	if h.at(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	for i := range 1000 {
		x := &h
		if i%2 == 1 {
			x = &o
		}
		x.add(time.Duration(i+1) * time.Microsecond)
	}
	h.add(-1) // a clock that went back
	h.merge(&o)
	if h.total != 1001 {
		t.Errorf("total %d", h.total)
	}
	for share, want := range map[float64]float64{0.5: 500, 0.9: 900, 0.99: 990, 1: 1000} {
		if got := float64(h.at(share).Nanoseconds()) / 1e3; math.Abs(got-want) > want/32 {
			t.Errorf("p%v: %v us, want %v", share*100, got, want)
		}
	}
}
