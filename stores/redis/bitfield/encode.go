package bitfield

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/stilehq/stile/core/rows"
)

// The words of the commands.
const (
	Write    = "BITFIELD"
	Read     = "BITFIELD_RO"
	ExpireAt = "EXPIREAT"

	u63      = "u63"
	overflow = "OVERFLOW"
	sat      = "SAT"
	get      = "GET"
	set      = "SET"
	incrBy   = "INCRBY"
)

// places holds "#0" to "#256", since a place is named in every sub-command.
var places = func() (p [rows.MaxSlots + 1]string) {
	for i := range p {
		p[i] = "#" + strconv.Itoa(i)
	}
	return p
}()

// place returns the address of a slot. A slot beyond MaxSlots cannot come from a
// planner; it is spelled out all the same, since a store must not panic.
func place(slot uint16) string {
	if int(slot)+1 < len(places) {
		return places[slot+1]
	}
	return "#" + strconv.Itoa(int(slot)+1)
}

// Append appends the command of r under name to dst, word by word, and returns
// it. Expiry is the value of [Expiry] for r; it is written only by a row that
// may create its record. A row without cells needs no command: dst is returned
// as it was.
func Append(dst []string, name string, r *rows.Row, expiry int64) []string {
	if len(r.Cells) == 0 {
		return dst
	}
	if !r.Writes() {
		dst = append(dst, Read, name)
		for i := range r.Cells {
			dst = append(dst, get, u63, place(r.Cells[i].Slot))
		}
		return dst
	}
	dst = append(dst, Write, name, overflow, sat)
	if r.Creates() {
		dst = append(dst, set, u63, places[0], strconv.FormatInt(expiry, 10))
	} else {
		dst = append(dst, get, u63, places[0])
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		at := place(c.Slot)
		switch {
		case c.Floor > 0:
			dst = append(dst,
				incrBy, u63, at, strconv.FormatInt(-c.Floor, 10),
				incrBy, u63, at, strconv.FormatInt(sum(c.Floor, c.Add), 10))
		case c.Add == 0:
			dst = append(dst, get, u63, at)
		default:
			dst = append(dst, incrBy, u63, at, strconv.FormatInt(c.Add, 10))
		}
	}
	return dst
}

// AppendExpiry appends the command that lets the record go at expiry (Unix
// seconds). It may be sent any number of times.
func AppendExpiry(dst []string, name string, expiry int64) []string {
	return append(dst, ExpireAt, name, strconv.FormatInt(expiry, 10))
}

// sum adds a non-negative floor to an Add and stops at the largest integer.
func sum(floor, add int64) int64 {
	if add > math.MaxInt64-floor {
		return math.MaxInt64
	}
	return floor + add
}

// Expiry returns the Unix second at which the record of r is to expire, for a
// caller whose clock says now (Unix seconds). It is r.Until for a row of an
// epoch. For a row of clocks (Epoch and Start 0) it is r.Until rounded up to a
// multiple of the largest power of two not above the row's remaining life, at
// least 64 s: at most one more life, and the same value for about one life.
func Expiry(r *rows.Row, now int64) int64 {
	if r.Epoch != 0 || r.Start != 0 {
		return r.Until
	}
	life := max(r.Until-now, 64)
	step := int64(1) << (bits.Len64(uint64(life)) - 1)
	if r.Until > math.MaxInt64-step {
		return r.Until
	}
	return (r.Until + step - 1) / step * step
}
