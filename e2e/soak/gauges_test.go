package soak_test

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A sample is what the process holds at a moment.
type sample struct {
	at          time.Duration
	goroutines  int
	descriptors int
	heap        uint64 // bytes alive after a collection
	resident    uint64 // bytes; 0 = the system does not tell
}

func take(began time.Time) sample {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{
		at: time.Since(began), goroutines: runtime.NumGoroutine(), descriptors: descriptors(),
		heap: m.HeapAlloc, resident: resident(),
	}
}

// descriptors counts open files, sockets among them; 0 where /proc is missing.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// flat compares the second and the last quarter of a run: the first is warm-up.
// What leaks for each request, or for each outage, grows by far more than the
// slack that scheduling needs.
func flat(t *testing.T, samples []sample) {
	t.Helper()
	n := len(samples) / 4
	if n == 0 {
		t.Fatalf("%d samples are too few", len(samples))
	}
	early, late := samples[n:2*n], samples[len(samples)-n:]
	for _, g := range []struct {
		name  string
		of    func(sample) float64
		slack float64 // in units of the gauge, beside a tenth of the early value
		unit  float64
	}{
		{"goroutines", func(s sample) float64 { return float64(s.goroutines) }, 30, 1},
		{"descriptors", func(s sample) float64 { return float64(s.descriptors) }, 30, 1},
		{"live heap, MiB", func(s sample) float64 { return float64(s.heap) }, 4 << 20, 1 << 20},
		{"resident, MiB", func(s sample) float64 { return float64(s.resident) }, 16 << 20, 1 << 20},
	} {
		before, after := median(early, g.of), median(late, g.of)
		t.Logf("%-16s early %7.1f   late %7.1f   most %7.1f", g.name, before/g.unit, after/g.unit, most(samples, g.of)/g.unit)
		if after > before*1.1+g.slack {
			t.Errorf("%s grew from %.1f to %.1f", g.name, before/g.unit, after/g.unit)
		}
	}
}

func median(list []sample, of func(sample) float64) float64 {
	values := make([]float64, len(list))
	for i := range list {
		values[i] = of(list[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func most(list []sample, of func(sample) float64) float64 {
	out := 0.0
	for _, s := range list {
		out = max(out, of(s))
	}
	return out
}

// TestFlat: the judge finds a leak of one goroutine a second, and no leak where
// there is none.
func TestFlat(t *testing.T) {
	t.Parallel()
	var steady, leaking []sample
	for i := range 120 {
		steady = append(steady, sample{goroutines: 100 + i%7, descriptors: 50 + i%5, heap: uint64(20<<20 + i%9<<18), resident: 80 << 20})
		leaking = append(leaking, sample{goroutines: 100 + i, descriptors: 50, heap: 20 << 20, resident: 80 << 20})
	}
	flat(t, steady)
	early, late := leaking[30:60], leaking[90:]
	of := func(s sample) float64 { return float64(s.goroutines) }
	if median(late, of) <= median(early, of)*1.1+30 {
		t.Error("a leak of a goroutine for each sample is not found")
	}
}
