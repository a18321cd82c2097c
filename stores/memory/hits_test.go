package memory

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// address returns the i-th of 2^64 IPv6 clients.
func address(i uint64) core.Key {
	var a [16]byte
	a[0] = 0x20
	binary.BigEndian.PutUint64(a[1:9], i)
	return core.Key{Kind: rows.Address, Net: netip.PrefixFrom(netip.AddrFrom16(a), 128)}
}

// hits makes the batches of one caller: the usual row of an hour bucket
// (sliding, so the previous hour is read) and a day bucket.
type hits struct {
	now   time.Time
	batch core.Batch
	rows  [1]core.Row
	cells [3]core.Cell
}

func newHits(now time.Time) *hits { return &hits{now: now} }

// row prepares the row of key at h.now. Slot 24 is the day, an hour's Until the
// end of the hour after it, as the planner has it.
func (h *hits) row(key core.Key) *core.Row {
	day, hour := h.now.Unix()/86400, h.now.Unix()/3600
	end := (day + 1) * 86400
	slot := uint16((hour%24 + 24) % 24) // also before 1970
	h.cells = [3]core.Cell{
		{Slot: slot, Until: (hour + 2) * 3600, Add: 1},
		{Slot: (slot + 23) % 24, Until: (hour + 1) * 3600},
		{Slot: 24, Until: end, Add: 1},
	}
	h.rows[0] = core.Row{Key: key, Plan: 1, Epoch: day, Start: day * 86400, Until: end + 3600, Cells: h.cells[:]}
	h.batch = core.Batch{Now: h.now, Rows: h.rows[:]}
	return &h.rows[0]
}

// hit counts one navigation of key and returns this hour's count and the day's.
func (h *hits) hit(tb testing.TB, s *Store, key core.Key) (hour, day int64) {
	h.row(key)
	return h.apply(tb, s)
}

// look reads the same without counting.
func (h *hits) look(tb testing.TB, s *Store, key core.Key) (hour, day int64) {
	h.row(key)
	h.cells[0].Add, h.cells[2].Add = 0, 0
	return h.apply(tb, s)
}

func (h *hits) apply(tb testing.TB, s *Store) (hour, day int64) {
	if err := s.Apply(context.Background(), &h.batch); err != nil {
		tb.Fatal(err)
	}
	return h.cells[0].Value, h.cells[2].Value
}
