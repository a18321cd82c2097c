package main

import (
	"testing"
	"time"
)

// TestInMemory plays one short round and checks that all contenders decide, and
// that the table is in order.
func TestInMemory(t *testing.T) {
	list, err := inMemory(256)
	if err != nil {
		t.Fatal(err)
	}
	table, err := play(list, nil, 4, 256, 3, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 6 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	for i, r := range table.Rows {
		if r.ErrorRate != 0 || r.PerSecond <= 0 || r.P50 > r.P99 || r.Faster <= 0 {
			t.Errorf("%+v", r)
		}
		if r.Name == "stile" && (r.Faster != 1 || r.Slower != 1) {
			t.Errorf("stile against itself: %+v", r)
		}
		if i > 0 && r.PerSecond > table.Rows[i-1].PerSecond {
			t.Error("the table is not in order")
		}
	}
}

func TestMedian(t *testing.T) {
	for want, list := range map[float64][]float64{2: {3, 1, 2}, 5: {5}, 1.235: {1.23456}} {
		if got := medianOf(list); got != want {
			t.Errorf("median of %v is %v, want %v", list, got, want)
		}
	}
}
