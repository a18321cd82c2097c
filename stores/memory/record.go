package memory

import "math"

// A record is one row in 48 bytes without pointers, so that a million of them
// cost the garbage collector nothing. Its 24 bytes of cell space hold one of
// three forms:
//
//	narrow   up to 4 cells of 24-bit values, with their Until in 64-second steps
//	         before the record's: the usual row (the day, this hour, the one
//	         before, and one more in its grace time)
//	wide     1 cell of any value: a clock
//	spilled  the index of a list of cells in the shard's spill: everything else
type record struct {
	fp    fingerprint
	words [narrowCells]uint32 // narrow: slot<<24 | value
	ages  [narrowCells]uint16 // narrow: steps by which the cell's Until is before until
	until uint32              // Unix seconds, the latest of the row's and its cells'; maxUntil = no end known
	hits  uint8               // applications that may create, saturating: the record's worth under pressure
	flags uint8
	_     uint16
}

const (
	narrowCells   = 4
	narrowMax     = 1<<24 - 1
	step          = 64 // seconds per age
	maxUntil      = math.MaxUint32
	flagCount     = 7      // mask: number of narrow cells
	flagWide      = 1 << 3 // one cell of any value
	flagSpilled   = 1 << 4 // words[0] is the place in the spill
	flagUsed      = 1 << 5 // holds a record; else free, words[0] is the next free one
	flagSecond    = 1 << 6 // the hand passes it once before it may be displaced
	recordBytes   = 48
	spillCellSize = 16
)

// A spillCell is one cell of a spilled row: 62 bits of value, and slot and Until.
type spillCell struct {
	value uint64
	until uint32
	slot  uint8
}

// clampUntil brings Unix seconds into a record's range. Without an end (zero or
// negative) the cell ends with its row, and the row never by itself.
func clampUntil(t int64) uint32 {
	if t <= 0 || t >= maxUntil {
		return maxUntil
	}
	return uint32(t)
}

// over reports whether until, and the grace after it, have passed at horizon.
// The horizon has the grace subtracted already.
func over(until uint32, horizon int64) bool {
	return until != maxUntil && int64(until) <= horizon
}

// class is the worth of a record under pressure: the bit length of its hits, so
// 0 for a free one, 1 for one hit, 2 for two or three, up to 8 for 128 and more.
func (r *record) class() int { return classOf[r.hits] }

const classes = 9

var classOf = func() (t [256]int) {
	for i := range t {
		for h := i; h > 0; h >>= 1 {
			t[i]++
		}
	}
	return t
}()

// extend moves the record's end to until if that is later. The narrow cells'
// ages are relative to it and grow along, rounded down: a cell may be kept up
// to a step too long, never too short.
func (r *record) extend(until uint32) {
	if until <= r.until {
		return
	}
	if r.flags&(flagWide|flagSpilled) == 0 {
		by := (until - r.until) / step
		for i := range int(r.flags & flagCount) {
			r.ages[i] = uint16(min(uint32(r.ages[i])+by, math.MaxUint16))
		}
	}
	r.until = until
}

// age encodes a cell's Until against the record's, which must not be earlier.
func (r *record) age(until uint32) uint16 {
	return uint16(min((r.until-until)/step, math.MaxUint16))
}

// narrowUntil decodes the Until of narrow cell i, up to a step late.
func (r *record) narrowUntil(i int) uint32 {
	if r.until == maxUntil {
		return maxUntil // a row without end keeps its cells
	}
	return uint32(max(int64(r.until)-int64(r.ages[i])*step, 0))
}
