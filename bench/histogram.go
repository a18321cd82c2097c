package bench

import (
	"math/bits"
	"time"
)

// A histogram counts durations in bounded memory: 64 steps for each power of
// two, so that a percentile is off by at most 1/64. It is for one goroutine.
type histogram struct {
	counts [64 * 64]int64
	total  int64
}

func slotOf(n uint64) int {
	if n < 64 {
		return int(n)
	}
	shift := bits.Len64(n) - 7
	return (shift+1)*64 + int(n>>shift) - 64
}

// topOf is the largest value of a slot.
func topOf(slot int) uint64 {
	if slot < 64 {
		return uint64(slot)
	}
	shift := slot/64 - 1
	return uint64(slot%64+64)<<shift + 1<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	h.counts[slotOf(uint64(max(0, d)))]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// at returns the smallest value that a share of all durations does not exceed;
// 0 when nothing was counted.
func (h *histogram) at(share float64) time.Duration {
	want := int64(share * float64(h.total))
	seen := int64(0)
	for slot, n := range h.counts {
		if seen += n; n > 0 && seen > want {
			return time.Duration(topOf(slot))
		}
	}
	for slot := len(h.counts) - 1; slot >= 0; slot-- {
		if h.counts[slot] > 0 {
			return time.Duration(topOf(slot))
		}
	}
	return 0
}

func (h *histogram) latency() Latency {
	us := func(share float64) float64 { return round3(float64(h.at(share).Nanoseconds()) / 1e3) }
	return Latency{P50: us(0.50), P90: us(0.90), P99: us(0.99)}
}

// round3 leaves three significant digits or whole numbers: more would be noise in
// a committed file.
func round3(x float64) float64 {
	scale := 1.0
	for v := x; v > 0 && v < 100; v *= 10 {
		scale *= 10
	}
	return float64(int64(x*scale+0.5)) / scale
}
