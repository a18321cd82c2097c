package core

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

var update = flag.Bool("update", false, "write docs/algorithms.md anew")

// exactLog is the oracle: it admits when fewer than limit were admitted within
// the window before.
type exactLog struct {
	limit  int
	window time.Duration
	hits   []time.Time
}

func (e *exactLog) admits(at time.Time) bool {
	for len(e.hits) > 0 && at.Sub(e.hits[0]) >= e.window {
		e.hits = e.hits[1:]
	}
	return len(e.hits) < e.limit
}

// most returns the most hits within any window.
func most(hits []time.Time, window time.Duration) int {
	worst, from := 0, 0
	for i := range hits {
		for hits[i].Sub(hits[from]) >= window {
			from++
		}
		worst = max(worst, i-from+1)
	}
	return worst
}

type measured struct {
	burst          int     // most admitted within any hour, of a client that never stops asking
	refused, extra float64 // decisions that an exact log takes the other way, of random traffic
	served         float64 // of a client at 1.2 times the limit, per hour
	cells, slots   int
	kept           time.Duration
}

func measure(alg AlgorithmKind) (m measured) {
	const limit = 60
	b := Bucket{Name: "b", Key: rows.Address, Algorithm: alg, Limit: limit, Window: time.Hour}
	run := func(times []time.Time) (admitted []time.Time, refusedWrongly, admittedWrongly int) {
		store := newMapStore()
		l, err := New(Policy{Buckets: []Bucket{b}, Claims: ClaimsOff}, Options{Store: store})
		if err != nil {
			panic(err)
		}
		oracle := exactLog{limit: limit, window: time.Hour}
		for _, at := range times {
			d := (&rig{Limiter: l}).hit("203.0.113.9", at)
			exact := oracle.admits(at)
			if d.Outcome == Admit {
				admitted = append(admitted, at)
				oracle.hits = append(oracle.hits, at) // the oracle judges this history
				if !exact {
					admittedWrongly++
				}
			} else if exact {
				refusedWrongly++
			}
		}
		return admitted, refusedWrongly, admittedWrongly
	}
	// Silence, then as fast as may be from 70 seconds before the hour.
	var times []time.Time
	for at := noon.Add(-70 * time.Second); at.Before(noon.Add(3 * time.Hour)); at = at.Add(time.Second) {
		times = append(times, at)
	}
	admitted, _, _ := run(times)
	m.burst = most(admitted, time.Hour)
	// Random traffic around the limit, in bursts as people have them.
	rng := rand.New(rand.NewPCG(1, 1))
	times = times[:0]
	for at := noon; at.Before(noon.Add(400 * time.Hour)); {
		at = at.Add(time.Duration(rng.ExpFloat64() * float64(200*time.Second)))
		page := at
		for range 1 + rng.IntN(6) {
			times = append(times, page)
			page = page.Add(time.Duration(1+rng.IntN(20)) * time.Second)
		}
		at = page
	}
	_, refused, extra := run(times)
	m.refused, m.extra = float64(refused)/float64(len(times)), float64(extra)/float64(len(times))
	times = times[:0]
	for at := noon; at.Before(noon.Add(100 * time.Hour)); at = at.Add(50 * time.Second) {
		times = append(times, at)
	}
	admitted, _, _ = run(times)
	m.served = float64(len(admitted)) / 100
	r := Records(&Policy{Buckets: []Bucket{b}})[0]
	m.cells, m.slots, m.kept = r.Cells, r.Slots, r.Epoch
	return m
}

const tableHead = `| algorithm | most in any hour | refused where an exact log admits | admitted where an exact log refuses | served per hour at 72 asked | cells touched / kept |
|---|--:|--:|--:|--:|--:|
`

// TestAlgorithmsTable keeps the table of docs/algorithms.md what the code does.
func TestAlgorithmsTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(tableHead)
	for _, alg := range []AlgorithmKind{FixedWindow, SlidingWindowCounter, SlidingWindowLog, TokenBucket, GCRA} {
		m := measure(alg)
		fmt.Fprintf(&b, "| `%s` | %d | %.2f %% | %.2f %% | %.1f | %d / %d |\n", alg, m.burst, 100*m.refused, 100*m.extra, m.served, m.cells, m.slots)
	}
	const file = "../docs/algorithms.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- table: go test ./core -run AlgorithmsTable -update -->\n", "<!-- end -->"
	head, rest, ok1 := strings.Cut(string(text), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no table to keep", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != b.String() {
		t.Errorf("%s says\n%s\nmeasured\n%s", file, old, b.String())
	}
}
