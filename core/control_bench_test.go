package core

import (
	"testing"
	"time"
)

// BenchmarkControl is what the operator's word costs a decision where nothing
// has to be read: an admitted page, and a repeat of a refused one.
func BenchmarkControl(b *testing.B) {
	for name, every := range map[string]time.Duration{"off": 0, "on": time.Hour} {
		b.Run("admitted/"+name, func(b *testing.B) {
			r := newRig(b, Policy{Buckets: []Bucket{dayBucket(maxLimit)}}, Options{Control: every})
			q := page("203.0.113.9", noon)
			for b.Loop() {
				r.Decide(b.Context(), q)
			}
		})
		b.Run("repeated/"+name, func(b *testing.B) {
			r := newRig(b, Policy{Buckets: []Bucket{dayBucket(1)}}, Options{Control: every})
			q := page("203.0.113.9", noon)
			for range 3 {
				r.Decide(b.Context(), q)
			}
			for b.Loop() {
				r.Decide(b.Context(), q)
			}
		})
	}
}
