package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stilehq/stile/core"
)

// model is the store contract in its plainest form: the oracle of the property
// test. It knows rows by id only; a case has one plan and epoch.
type model map[string]map[uint16]int64

// apply returns the values that r must get.
func (m model) apply(id string, r *core.Row) []int64 {
	row, ok := m[id]
	if !ok {
		row = map[uint16]int64{}
		if r.Creates() {
			m[id] = row
		}
	}
	vs := make([]int64, len(r.Cells))
	for i, c := range r.Cells {
		v := max(0, max(row[c.Slot], c.Floor)+c.Add)
		if v != 0 || row[c.Slot] != 0 {
			row[c.Slot] = v
		}
		vs[i] = v
	}
	return vs
}

// modelCases: random sequences of every kind of operation.
var modelCases = []testCase{
	{"model/counters", func(e *env) { e.compare(false) }},
	{"model/clocks and counters", func(e *env) {
		if e.features.Clocks {
			e.compare(true)
		}
	}},
}

func (e *env) compare(clocks bool) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	m := model{}
	slots := []uint16{0, 1, 2, 3, 8, 23, 24, 60, 127, 128, 254, 255}
	most := 6
	if c := e.features.MaxCells; c > 0 {
		most = min(most, c)
	}
	for op := range e.repeat(2000) {
		b := &core.Batch{Now: e.now}
		var want [][]int64
		var ids []string
		for _, n := range rnd.Perm(12)[:1+rnd.IntN(3)] { // distinct rows
			cells := make([]core.Cell, 1+rnd.IntN(most))
			for i := range cells {
				// Small rows mostly, so that cells are met again.
				width := len(slots)
				if n < 8 {
					width = 4
				}
				cells[i] = randomCell(rnd, slots[rnd.IntN(width)], clocks && n%2 == 0)
			}
			id := fmt.Sprint("model ", n)
			r := e.row(id, cells...)
			ids = append(ids, id)
			want = append(want, m.apply(id, &r))
			b.Rows = append(b.Rows, r)
		}
		e.apply(b)
		for i := range b.Rows {
			if got := values(&b.Rows[i]); !slices.Equal(got, want[i]) {
				e.tb.Fatalf("seed %d, operation %d, %s, cells %s: got %v, want %v",
					seed, op, ids[i], cellsText(b.Rows[i].Cells), got, want[i])
			}
		}
	}
	for n := range 12 {
		id := fmt.Sprint("model ", n)
		_, present := m[id]
		e.exists(e.row(id), present)
	}
}

func randomCell(rnd *rand.Rand, slot uint16, clocks bool) core.Cell {
	switch k := rnd.IntN(10); {
	case k < 4:
		return count(slot)
	case k < 6:
		return read(slot)
	case k < 8:
		return add(slot, -1-rnd.Int64N(3))
	case clocks && k == 8:
		return clock(slot, rnd.Int64N(1<<51), rnd.Int64N(1<<30))
	default:
		return add(slot, rnd.Int64N(1<<rnd.IntN(28)+1))
	}
}
