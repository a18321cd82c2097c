package bitfield

import (
	"math"
	"strconv"
	"sync/atomic"

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
// it. A row without cells needs no command: dst is returned as it was.
func Append(dst []string, name string, r *rows.Row) []string {
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
		dst = append(dst, set, u63, places[0], until(r.Until))
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

// lately is the text of the last expiry: all rows of an epoch have the same.
var lately atomic.Pointer[struct {
	at   int64
	text string
}]

// until spells an expiry out.
func until(at int64) string {
	if l := lately.Load(); l != nil && l.at == at {
		return l.text
	}
	text := strconv.FormatInt(at, 10)
	lately.Store(&struct {
		at   int64
		text string
	}{at, text})
	return text
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
