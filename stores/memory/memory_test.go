package memory

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/storetest"
)

func harness() storetest.Harness {
	return storetest.Harness{
		Open: func(testing.TB) core.Store { return New(Config{}) },
		Exists: func(st core.Store, row *core.Row) (bool, error) {
			_, ok := peek(st.(*Store), row)
			return ok, nil
		},
		Expiry: func(st core.Store, row *core.Row) (time.Time, bool) {
			r, ok := peek(st.(*Store), row)
			return time.Unix(int64(r.until), 0), ok && r.until != maxUntil
		},
		BenchKeys: 1 << 20,
	}
}

// peek returns a copy of row's record.
func peek(s *Store, row *core.Row) (record, bool) {
	fp := s.key.fingerprint(row)
	sh := &s.shards[fp[1]&uint64(len(s.shards)-1)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if place := sh.find(fp); place >= 0 {
		return *sh.at(place), true
	}
	return record{}, false
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness())
}

// A table far too large for its bound in shards, and the smallest ones: the
// suite's cases hold at most some hundred keys each.
func TestConformanceSmall(t *testing.T) {
	t.Parallel()
	h := harness()
	h.Open = func(testing.TB) core.Store { return New(Config{MaxKeys: 200}) }
	storetest.Run(t, h)
}

func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness()) }

// SipHash-2-4-128 of the bytes 0, 1, 2, ... under the key 00 01 .. 0f, from the
// reference implementation's published vectors.
func TestFingerprintVectors(t *testing.T) {
	t.Parallel()
	key := sipKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	for _, c := range []struct {
		message string
		want    fingerprint
	}{
		{"", fingerprint{0xe6a825ba047f81a3, 0x930255c71472f66d}},
		{"\x00", fingerprint{0x44af996bd8c187da, 0x45fc229b11597634}},
	} {
		if got := key.sum(nil, c.message); got != c.want {
			t.Errorf("%q: got %x, want %x", c.message, got, c.want)
		}
	}
	// Words and tail are one message, however it is cut.
	message := "0123456789abcdef-tail"
	words := []uint64{leWord(message), leWord(message[8:])}
	if a, b := key.sum(nil, message), key.sum(words, message[16:]); a != b {
		t.Errorf("whole %x, cut %x", a, b)
	}
}

func TestAdvanceStaysInRange(t *testing.T) {
	t.Parallel()
	const m, lowest, highest = maxValue, math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		v          uint64
		floor, add int64
		want       uint64
	}{
		{0, 0, 1, 1}, {5, 0, -5, 0}, {5, 0, -6, 0}, {0, 0, -1, 0}, {3, 7, 2, 9}, {9, 7, 2, 11}, {9, -7, 0, 9},
		{m, 0, 1, m}, {m - 1, 0, 1, m}, {m, 0, highest, m}, {0, 0, highest, m}, {0, highest, 0, m},
		{0, highest, highest, m}, {m, highest, lowest, 0}, {0, lowest, lowest, 0}, {m, 0, -1, m - 1}, {1, lowest, highest, m},
	} {
		if got := advance(c.v, c.floor, c.add); got != c.want {
			t.Errorf("advance(%d, %d, %d) = %d, want %d", c.v, c.floor, c.add, got, c.want)
		}
	}
}

func TestSlotOutOfRange(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	b := &core.Batch{Now: time.Unix(1e9, 0), Rows: []core.Row{
		{Key: address(1), Cells: []core.Cell{{Slot: 0, Add: 1}, {Slot: rows.MaxSlots, Add: 1}}},
		{Key: address(2), Cells: []core.Cell{{Slot: 0, Add: 1}}},
	}}
	err := s.Apply(context.Background(), b)
	if err != errSlot || b.Rows[0].Err != errSlot || b.Rows[1].Err != nil {
		t.Fatalf("got %v, %v, %v", err, b.Rows[0].Err, b.Rows[1].Err)
	}
	if got := b.Rows[1].Cells[0].Value; got != 1 {
		t.Fatalf("the row beside it got %d, want 1", got)
	}
	if got := s.Stats().Records; got != 1 {
		t.Fatalf("%d records, want 1: the refused row must not exist", got)
	}
}

func TestNewIsCheap(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxKeys: 1 << 27})
	if got := s.Stats().Bytes; got > 32<<10 {
		t.Fatalf("an empty store takes %d bytes", got)
	}
}

func TestAllocations(t *testing.T) {
	s := New(Config{})
	h := newHits(time.Unix(1_800_000_000, 0))
	if n := testing.AllocsPerRun(1000, func() { h.hit(t, s, address(7)) }); n != 0 {
		t.Fatalf("%v allocations for a hit of an address row, want 0", n)
	}
}
