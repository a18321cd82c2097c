package memory

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// heap returns the live heap after a full collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkMemoryPerKey measures the live heap of tables of active keys, with an
// hour and a day cell each, then after three hours of hits (narrow records hold
// the hours' cells), and what Stats says of it. ns/op is one fill and no figure.
func BenchmarkMemoryPerKey(b *testing.B) {
	for _, keys := range []int{1 << 16, 600_000, 1 << 20} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s, h := New(Config{MaxKeys: keys}), newHits(noon)
				fill(b, s, h, 0, keys, 1)
				fresh := heap() - before
				for hour := 1; hour <= 3; hour++ {
					h.now = noon.Add(time.Duration(hour) * time.Hour)
					fill(b, s, h, 0, keys, 1)
				}
				aged := heap() - before
				stats := s.Stats()
				if _, day := h.look(b, s, address(uint64(keys-1))); day != 4 || stats.Records != keys {
					b.Fatalf("day count %d, want 4; %+v", day, stats)
				}
				per := func(bytes int64) float64 { return float64(bytes) / float64(keys) }
				b.ReportMetric(per(fresh), "heap-B/key")
				b.ReportMetric(per(aged), "heap-B/key-after-3h")
				b.ReportMetric(per(int64(stats.Bytes)), "stats-B/key")
				runtime.KeepAlive(s)
			}
		})
	}
}

// BenchmarkSpray is 10 million new addresses against a table of a million
// records with 100,000 busy keys, which it then finds unharmed. ns/op is one
// whole spray.
func BenchmarkSpray(b *testing.B) {
	const busy, each, sprayed, chunk = 100_000, 5, 10_000_000, 1_000_000
	for b.Loop() {
		before := heap()
		s, h := New(Config{MaxKeys: DefaultMaxKeys}), newHits(noon)
		fill(b, s, h, 0, busy, each)
		var first, last int64
		start := time.Now()
		for n := 0; n < sprayed; n += chunk {
			fill(b, s, h, 1<<40+n, chunk, 1)
			if last = heap() - before; n == chunk { // full by now
				first = last
			}
		}
		took := time.Since(start)
		for i := range busy {
			if hour, day := h.look(b, s, address(uint64(i))); hour != each || day != each {
				b.Fatalf("busy key %d: %d and %d after the spray, want %d", i, hour, day, each)
			}
		}
		stats := s.Stats()
		if stats.EvictedBusy != 0 || stats.EvictedLive != busy+sprayed-DefaultMaxKeys {
			b.Fatalf("%+v", stats)
		}
		b.ReportMetric(float64(took.Nanoseconds())/sprayed, "ns/new-key")
		b.ReportMetric(float64(first)/(1<<20), "MiB-after-2M")
		b.ReportMetric(float64(last)/(1<<20), "MiB-after-10M")
	}
}

// BenchmarkNewKey is the first hit of a key in a table that is not full.
func BenchmarkNewKey(b *testing.B) {
	s, h := New(Config{MaxKeys: 1 << 27}), newHits(noon)
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		if hour, _ := h.hit(b, s, address(i)); hour != 1 {
			b.Fatalf("a new key counted %d", hour)
		}
	}
}

// BenchmarkFingerprint is the identity of an address row and of a row with a long id.
func BenchmarkFingerprint(b *testing.B) {
	k := sipKey{1, 2}
	for _, id := range []int{0, 32, 8 << 10} {
		b.Run(fmt.Sprint("id=", id), func(b *testing.B) {
			r := newHits(noon).row(address(1))
			r.Key.ID = string(make([]byte, id))
			var sum fingerprint
			for b.Loop() {
				r.Epoch++
				sum = k.fingerprint(r)
			}
			if sum == (fingerprint{}) {
				b.Fatal("a zero fingerprint")
			}
		})
	}
}
