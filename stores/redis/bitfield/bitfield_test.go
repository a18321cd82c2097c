package bitfield

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stilehq/stile/core/rows"
)

func window(cells ...rows.Cell) *rows.Row {
	return &rows.Row{Epoch: 20605, Start: 20605 * 86400, Until: 900, Cells: cells}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	clock := &rows.Row{Until: 900, Cells: []rows.Cell{{Slot: 0, Floor: 1000, Add: 60}}}
	far := &rows.Row{Until: 900, Cells: []rows.Cell{{Floor: math.MaxInt64 - 5, Add: 60}}}
	for _, c := range []struct {
		row  *rows.Row
		want string
	}{
		{window(rows.Cell{Slot: 10, Add: 1}, rows.Cell{Slot: 9}, rows.Cell{Slot: 24, Add: 1}),
			"BITFIELD k OVERFLOW SAT SET u63 #0 900 INCRBY u63 #11 1 GET u63 #10 INCRBY u63 #25 1"},
		{window(rows.Cell{Slot: 10, Add: -1}, rows.Cell{Slot: 255}),
			"BITFIELD k OVERFLOW SAT GET u63 #0 INCRBY u63 #11 -1 GET u63 #256"},
		{window(rows.Cell{Slot: 65535}), "BITFIELD_RO k GET u63 #65536"},
		{clock, "BITFIELD k OVERFLOW SAT SET u63 #0 900 INCRBY u63 #1 -1000 INCRBY u63 #1 1060"},
		{far, "BITFIELD k OVERFLOW SAT SET u63 #0 900 INCRBY u63 #1 -9223372036854775802 INCRBY u63 #1 9223372036854775807"},
		{window(), ""},
	} {
		if got := strings.Join(Append(nil, "k", c.row), " "); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	r := window(rows.Cell{Slot: 1, Add: 1}, rows.Cell{Slot: 2, Floor: 50, Add: 5}, rows.Cell{Slot: 3})
	previous, err := Decode(r, []int64{900, 7, 0, 55, 9})
	got := []int64{r.Cells[0].Value, r.Cells[1].Value, r.Cells[2].Value}
	if err != nil || previous != 900 || !slices.Equal(got, []int64{7, 55, 9}) {
		t.Errorf("got %v, previous %d, %v", got, previous, err)
	}
	for _, bad := range [][]int64{nil, {1}, {900, 7, 0, 55}, {900, 7, 0, 55, 9, 9}, {900, 7, 0, -1, 9}} {
		r.Cells[0].Value = -77
		if _, err := Decode(r, bad); !errors.Is(err, ErrReply) || r.Cells[0].Value != -77 {
			t.Errorf("%v: got %v and value %d, want ErrReply and the row left alone", bad, err, r.Cells[0].Value)
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	clock := func() *rows.Row { return &rows.Row{Until: 900, Cells: []rows.Cell{{Floor: 1, Add: 1, Value: 2}}} }
	for _, c := range []struct {
		name             string
		row              *rows.Row
		previous, repair int64
		due, sure        bool
	}{
		{"new", window(rows.Cell{Add: 1, Value: 1}), 0, 3, true, true},
		{"steady", window(rows.Cell{Add: 1, Value: 4}), 900, 3, false, false},
		{"few hits so far", window(rows.Cell{Add: 1, Value: 3}, rows.Cell{Value: 3}), 900, 3, true, false},
		{"few hits this hour, many this day", window(rows.Cell{Add: 1, Value: 1}, rows.Cell{Slot: 24, Add: 1, Value: 9}), 900, 3, false, false},
		{"repair off", window(rows.Cell{Add: 1, Value: 1}), 900, 1, false, false},
		{"another expiry", window(rows.Cell{Add: 1, Value: 9}), 800, 3, true, true},
		{"clock moved on", clock(), 800, 3, true, true},
		{"clock steady", clock(), 900, 3, false, false},
		{"clock of an instance behind", clock(), 1000, 3, false, false},
		{"read", window(rows.Cell{Value: 0}), 0, 3, false, false},
		{"refund", window(rows.Cell{Add: -1, Value: 1}), 900, 3, false, false},
		{"refund of a vanished record", window(rows.Cell{Add: -1}), 0, 3, true, true},
		{"no cells", window(), 0, 3, false, false},
	} {
		if due, sure := Due(c.row, c.previous, c.repair); due != c.due || sure != c.sure {
			t.Errorf("%s: got %v, %v, want %v, %v", c.name, due, sure, c.due, c.sure)
		}
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	var x Pending
	x.Add(Expiry{Name: "a", At: 5})
	x.Add(Expiry{Name: "a", At: 4}) // the later one stays
	for range maxTries {
		list := x.Take(10)
		if len(list) != 1 || list[0].At != 5 {
			t.Fatalf("got %v", list)
		}
		x.Add(list[0])
	}
	if n, dropped := x.Len(); n != 0 || dropped != 1 {
		t.Errorf("after %d tries: %d wait, %d dropped", maxTries, n, dropped)
	}
	for i := range maxPending + 3 {
		x.Add(Expiry{Name: strings.Repeat("n", i+1), At: 1})
		if i > 20 {
			x.mu.Lock() // fill up without megabytes of names
			for j := len(x.list); j < maxPending; j++ {
				x.list["fill"+string(rune(j+0x1000))] = Expiry{}
			}
			x.mu.Unlock()
		}
		if i == 30 {
			break
		}
	}
	if n, dropped := x.Len(); n != maxPending || dropped < 2 {
		t.Errorf("%d wait, %d dropped: the set is not bounded", n, dropped)
	}
	if got := len(x.Take(MaxRide)); got != MaxRide {
		t.Errorf("took %d, want %d", got, MaxRide)
	}
	if x.Confirmed("z") {
		t.Error("confirmed without Confirm")
	}
	x.Confirm("z")
	if !x.Confirmed("z") {
		t.Error("Confirm is forgotten at once")
	}
}

// TestConfirmedIsExact: of tens of thousands of clients that come three times, in
// turn, each asks for its expiry once.
func TestConfirmedIsExact(t *testing.T) {
	t.Parallel()
	const clients = generation - 1
	var x Pending
	asked := 0
	for n := int64(1); n <= 3; n++ {
		for i := range clients {
			name := strconv.Itoa(i)
			r := rows.Row{Until: 9, Cells: []rows.Cell{{Slot: 1, Add: 1, Value: n}}}
			previous := int64(0)
			if n > 1 {
				previous = 9
			}
			x.Note(name, &r, previous, 3)
			for _, e := range x.Take(MaxRide) {
				asked++
				x.Confirm(e.Name)
			}
		}
	}
	if asked != clients {
		t.Errorf("%d expiries for %d clients", asked, clients)
	}
	// It forgets, and stays bounded, with the latest kept.
	for i := range 3 * generation {
		x.Confirm("more" + strconv.Itoa(i))
	}
	if n := len(x.confirmed) + len(x.before); n > 2*generation {
		t.Errorf("%d names are remembered, want at most %d", n, 2*generation)
	}
	for i := 2 * generation; i < 3*generation; i++ {
		if !x.Confirmed("more" + strconv.Itoa(i)) {
			t.Fatalf("number %d of %d is forgotten", i, 3*generation)
		}
	}
	if x.Confirmed("0") {
		t.Error("the first is still remembered")
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"OOM command not allowed when used memory > 'maxmemory'.": true,
		"READONLY You can't write against a read only replica.":   true,
		"MOVED 866 127.0.0.1:7001":                                true,
		"ERR unknown command 'BITFIELD_RO', with args":            true,
		"ERR upstream failure":                                    false,
		"UNKNOWN":                                                 false,
		"":                                                        false,
	} {
		if Refused(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
