package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// A clock that goes back ten minutes, over the edge of an hour and of a day,
// finds every count where it was.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		at   time.Time
	}{
		{"within an hour", noon.Add(30 * time.Minute)},
		{"over an hour's edge", noon.Add(9 * time.Minute)},
		{"over a day's edge", noon.Add(12*time.Hour + 9*time.Minute)},
		{"over the end of a row's life", noon.Add(13*time.Hour + 9*time.Minute)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := New(Config{})
			const keys = 3000
			before := newHits(c.at.Add(-10 * time.Minute))
			// Hits in the three hours before, so that records are full of cells.
			for back := 3; back >= 1; back-- {
				fill(t, s, newHits(before.now.Add(-time.Duration(back)*time.Hour)), 0, keys, 1)
			}
			fill(t, s, before, 0, keys, 5)
			_, day := before.look(t, s, address(0))
			after := newHits(c.at)
			fill(t, s, after, 0, keys, 2)
			fill(t, s, after, 1<<40, 4*keys, 1) // time enough for every sweep
			sameHour := after.now.Truncate(time.Hour).Equal(before.now.Truncate(time.Hour))
			sameDay := after.now.Truncate(24 * time.Hour).Equal(before.now.Truncate(24 * time.Hour))
			want, wantDay := int64(5), day
			if sameHour {
				want += 2
			}
			if sameDay {
				wantDay += 2
			}
			for i := range uint64(keys) {
				if hour, day := before.look(t, s, address(i)); hour != want || day != wantDay {
					t.Fatalf("key %d: %d and %d after the clock went back, want %d and %d", i, hour, day, want, wantDay)
				}
			}
			verify(t, s)
		})
	}
}

// One batch dated a day, a year or an age ahead or back costs nobody a count.
func TestStrayClock(t *testing.T) {
	t.Parallel()
	s, h := New(Config{MaxKeys: 2000}), newHits(noon)
	fill(t, s, h, 0, 1000, 3)
	for i, stray := range []time.Time{
		noon.AddDate(0, 0, 1), noon.AddDate(1, 0, 0), time.Unix(1<<40, 0), time.Unix(1<<62, 0),
		noon.AddDate(0, 0, -1), noon.AddDate(-50, 0, 0), {}, time.Unix(-1<<62, 0),
	} {
		other := newHits(stray)
		other.row(address(uint64(1<<40 + i)))
		other.apply(t, s)
		for k := range uint64(1000) {
			if hour, _ := h.look(t, s, address(k)); hour != 3 {
				t.Fatalf("after a batch of %v, key %d: %d, want 3", stray, k, hour)
			}
		}
		verify(t, s)
	}
}

// A record and a cell that nobody asks for any more are gone, at the latest, a
// step after the grace: what is kept does not depend on sweeps.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	row := func(until, cellUntil int64, add int64) core.Row {
		return core.Row{Key: address(1), Epoch: 1, Until: until, Cells: []core.Cell{{Slot: 3, Until: cellUntil, Add: add}}}
	}
	apply := func(at int64, r core.Row) int64 {
		t.Helper()
		read := r
		read.Cells = []core.Cell{{Slot: r.Cells[0].Slot, Until: r.Cells[0].Until}}
		// The read comes first, since a time is believed when it comes twice.
		for _, row := range []core.Row{read, r} {
			b := core.Batch{Now: time.Unix(at, 0), Rows: []core.Row{row}}
			if err := s.Apply(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
		return r.Cells[0].Value
	}
	const start = 1_800_000_000
	if got := apply(start, row(start+10_000, start+1000, 1)); got != 1 {
		t.Fatal(got)
	}
	if got := apply(start+1000+grace-1, row(start+10_000, start+1000, 1)); got != 2 {
		t.Fatalf("within the grace: %d, want 2", got)
	}
	if got := apply(start+1000+grace+step, row(start+10_000, start+9000, 1)); got != 1 {
		t.Fatalf("the cell's time is over: %d, want 1", got)
	}
	if got := apply(start+10_000+grace, row(start+90_000, start+90_000, 1)); got != 1 {
		t.Fatalf("the record's time is over: %d, want 1", got)
	}
	if got := s.Stats(); got.Records != 1 || got.Recycled != 1 {
		t.Fatalf("%+v", got)
	}
}

// Random rows of every width over many days, with a clock that goes forward and
// back: every cell that somebody may still ask for has the value of a plain map.
func TestPropertyOverTime(t *testing.T) {
	t.Parallel()
	type id struct {
		key   int
		epoch int64
		slot  uint16
	}
	type kept struct{ value, until int64 }
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	s, model := New(Config{MaxKeys: 1 << 16}), map[id]kept{}
	front := noon
	turns := 30_000
	if testing.Short() {
		turns /= 4
	}
	forms := map[string]int{}
	for turn := range turns {
		front = front.Add(time.Duration(rnd.Int64N(int64(40 * time.Second))))
		now := front
		if rnd.IntN(10) == 0 {
			now = front.Add(-time.Duration(rnd.Int64N(int64(10 * time.Minute))))
		}
		n := rnd.IntN(40)
		window, width := int64(3600), 2 // hour and day
		switch n % 4 {
		case 1:
			window, width = 60, 10 // many short windows: spills and comes back
		case 2:
			window, width = 600, 61
		}
		day := now.Unix() / 86400
		r := core.Row{Key: core.Key{Kind: rows.Cookie, ID: fmt.Sprint(n)}, Epoch: day, Until: (day+1)*86400 + 7200}
		last := now.Unix() % 86400 / window
		for back := range int64(1 + rnd.IntN(width)) {
			if back > last || (last-back)%255 < (last-back)%256-254 {
				break
			}
			c := core.Cell{Slot: uint16((last - back) % 255), Until: (day*86400 + (last+int64(width))*window)}
			switch rnd.IntN(5) {
			case 0, 1:
				c.Add = 1
			case 2:
				c.Add = -1
			case 3:
				c.Add = rnd.Int64N(1 << (3 + rnd.IntN(24)))
			}
			r.Cells = append(r.Cells, c)
		}
		r.Cells = append(r.Cells, core.Cell{Slot: 255, Until: (day + 1) * 86400, Add: 1})
		b := core.Batch{Now: now, Rows: []core.Row{r}}
		if err := s.Apply(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Cells {
			k := id{n, day, c.Slot}
			old := model[k]
			// A place that was last used for a window long past is new again.
			if old.until+grace <= now.Add(-10*time.Minute).Unix() {
				delete(model, k)
				if c.Value != max(0, c.Add) && c.Value != max(0, old.value+c.Add) {
					t.Fatalf("seed %d, turn %d: %v: got %d, want %d or %d", seed, turn, k, c.Value, max(0, c.Add), max(0, old.value+c.Add))
				}
				model[k] = kept{c.Value, c.Until}
				continue
			}
			want := max(0, old.value+c.Add)
			if old.until+grace > now.Unix() && c.Value != want {
				t.Fatalf("seed %d, turn %d: %v at %v: got %d, want %d", seed, turn, k, now, c.Value, want)
			}
			if c.Add != 0 {
				model[k] = kept{c.Value, max(c.Until, old.until)}
			}
		}
		if rec, ok := peek(s, &r); ok {
			switch {
			case rec.flags&flagSpilled != 0:
				forms["spilled"]++
			case rec.flags&flagWide != 0:
				forms["wide"]++
			default:
				forms["narrow"]++
			}
		}
		if turn%5000 == 0 {
			verify(t, s)
		}
	}
	verify(t, s)
	if forms["spilled"] < turns/20 || forms["narrow"] < turns/20 {
		t.Errorf("the test met too few forms: %v", forms)
	}
	if got := s.Stats(); got.Recycled == 0 || got.EvictedLive != 0 {
		t.Errorf("%+v", got)
	}
}
