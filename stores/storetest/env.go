package storetest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// env is the surrounding of one case: an open store and keys nobody else has.
type env struct {
	tb       testing.TB
	h        Harness
	st       core.Store
	features core.Features
	now      time.Time
	plan     uint32 // random: the rows of two cases or runs never meet
	prefix   string // of ids, for the cases that vary the plan
}

func newEnv(tb testing.TB, h Harness) *env {
	tb.Helper()
	if h.Open == nil {
		tb.Fatal("storetest: Harness.Open is required")
	}
	if h.Timeout <= 0 {
		h.Timeout = time.Second
	}
	st := h.Open(tb)
	if st == nil {
		tb.Fatal("storetest: Harness.Open returned nil")
	}
	tb.Cleanup(func() { st.Close() })
	var seed [12]byte
	rand.Read(seed[:])
	return &env{
		tb: tb, h: h, st: st, features: FeaturesOf(st),
		now:    time.Now().UTC(),
		plan:   binary.BigEndian.Uint32(seed[:4]),
		prefix: hex.EncodeToString(seed[4:]) + "-",
	}
}

// FeaturesOf returns what st declares, or for a store that declares nothing
// what core.Featurer says of it: it can do everything and shares nothing.
func FeaturesOf(st core.Store) core.Features {
	if f, ok := st.(core.Featurer); ok {
		return f.Features()
	}
	return core.Features{Name: "undeclared", Clocks: true}
}

// row returns a row of the case's own under id, living for two hours.
func (e *env) row(id string, cells ...core.Cell) core.Row {
	return e.keyed(core.Key{Kind: rows.User, ID: e.prefix + id}, cells...)
}

func (e *env) keyed(k core.Key, cells ...core.Cell) core.Row {
	day := e.now.Unix() / 86400
	r := core.Row{
		Key: k, Plan: e.plan, Epoch: day, Start: day * 86400,
		Until: e.now.Add(2 * time.Hour).Unix(),
		Cells: slices.Clone(cells),
	}
	for i := range r.Cells {
		r.Cells[i].Until = e.now.Add(time.Hour).Unix()
	}
	return r
}

// clockRow returns a row of clocks, which has no epoch.
func (e *env) clockRow(id string, cells ...core.Cell) core.Row {
	r := e.row(id, cells...)
	r.Epoch, r.Start = 0, 0
	return r
}

func (e *env) batch(list ...core.Row) *core.Batch {
	return &core.Batch{Now: e.now, Rows: list}
}

// do applies one row, fails the case on an error and returns the cells' values.
func (e *env) do(r core.Row) []int64 {
	e.tb.Helper()
	b := e.batch(r)
	e.apply(b)
	return values(&b.Rows[0])
}

// apply applies b and fails the case on any error.
func (e *env) apply(b *core.Batch) {
	e.tb.Helper()
	// A stale Value or Err in a pooled batch must not shine through.
	for i := range b.Rows {
		b.Rows[i].Err = errStale
		for j := range b.Rows[i].Cells {
			b.Rows[i].Cells[j].Value = -77
		}
	}
	err := e.st.Apply(context.Background(), b)
	if err != nil {
		e.tb.Fatalf("Apply: %v", err)
	}
	for i := range b.Rows {
		if b.Rows[i].Err != nil {
			e.tb.Fatalf("Apply returned nil, but row %d has Err %v", i, b.Rows[i].Err)
		}
	}
}

func values(r *core.Row) []int64 {
	vs := make([]int64, len(r.Cells))
	for i := range r.Cells {
		vs[i] = r.Cells[i].Value
	}
	return vs
}

// want applies r and compares the values.
func (e *env) want(r core.Row, want ...int64) {
	e.tb.Helper()
	if got := e.do(r); !slices.Equal(got, want) {
		e.tb.Fatalf("cells %s: got values %v, want %v", cellsText(r.Cells), got, want)
	}
}

// exists asserts, where the harness can see it, whether a record exists.
func (e *env) exists(r core.Row, want bool) {
	e.tb.Helper()
	if e.h.Exists == nil {
		return
	}
	got, err := e.h.Exists(e.st, &r)
	if err != nil {
		e.tb.Fatalf("probe: %v", err)
	}
	if got != want {
		e.tb.Fatalf("record of %s exists: %v, want %v", r.Key, got, want)
	}
}

// settle lets a store finish the work that it does beside the origin request.
func (e *env) settle() {
	e.tb.Helper()
	if s, ok := e.st.(core.Settler); ok {
		if err := s.Settle(context.Background()); err != nil {
			e.tb.Fatalf("Settle: %v", err)
		}
	}
}

// repeat returns n, or less where calls are slow or tests are to be short.
func (e *env) repeat(n int) int {
	if e.h.Slow {
		n /= 8
	}
	if testing.Short() {
		n /= 4
	}
	return max(n, 2)
}

// The four kinds of cell, as the planner makes them.
func count(slot uint16) core.Cell             { return core.Cell{Slot: slot, Add: 1} }
func read(slot uint16) core.Cell              { return core.Cell{Slot: slot} }
func add(slot uint16, n int64) core.Cell      { return core.Cell{Slot: slot, Add: n} }
func clock(slot uint16, f, a int64) core.Cell { return core.Cell{Slot: slot, Floor: f, Add: a} }

func ipv4(a, b, c, d byte, bits int) core.Key {
	return core.Key{Kind: rows.Address, Net: netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)}
}
