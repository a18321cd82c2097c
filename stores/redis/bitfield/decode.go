package bitfield

import (
	"errors"

	"github.com/stilehq/stile/core/rows"
)

// ErrReply reports a reply that does not have the shape of the command. The
// record may have been changed: the outcome is unknown.
var ErrReply = errors.New("bitfield: reply does not match the command")

// Replies returns the number of integers that the reply to r must hold.
func Replies(r *rows.Row) int {
	n := len(r.Cells)
	if n > 0 && r.Writes() {
		n++
		for i := range r.Cells {
			if r.Cells[i].Floor > 0 {
				n++
			}
		}
	}
	return n
}

// Decode sets the Value of every cell of r from the reply to its command and
// returns the previous content of place 0 (0 for a read). It returns ErrReply,
// and leaves r alone, when the reply has another length or a negative number.
func Decode(r *rows.Row, reply []int64) (previous int64, err error) {
	if len(reply) != Replies(r) {
		return 0, ErrReply
	}
	for _, v := range reply {
		if v < 0 {
			return 0, ErrReply
		}
	}
	next := 0
	if len(r.Cells) > 0 && r.Writes() {
		previous, next = reply[0], 1
	}
	for i := range r.Cells {
		if r.Cells[i].Floor > 0 {
			next++ // the first of the two is only the way to the maximum
		}
		r.Cells[i].Value = reply[next]
		next++
	}
	return previous, nil
}

// Due reports whether the record of a decoded row needs an EXPIREAT: it is new
// (previous is 0), its Until has moved, or no count of it exceeds repair,
// so that whoever created it may have died before setting the expiry. Repair 0
// or 1 never asks a second time. A caller that has itself seen the expiry
// confirmed need not follow the third reason; sure reports that it was one of
// the first two.
func Due(r *rows.Row, previous, repair int64) (due, sure bool) {
	switch {
	case len(r.Cells) == 0 || !r.Writes():
		return false, false
	case !r.Creates():
		// The refund found no record, or one whose creator is still to set the
		// expiry: asking twice is harmless.
		return previous == 0, previous == 0
	case previous != r.Until:
		// For a clock the recorded expiry may be the later one; then the
		// record keeps it and nothing is due.
		if previous > r.Until && r.Epoch == 0 && r.Start == 0 {
			return false, false
		}
		return true, true
	case repair <= 1:
		return false, false
	}
	counts := false
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Floor > 0 {
			return false, false // a clock repairs itself with its next step
		}
		if c.Value > repair {
			return false, false
		}
		counts = counts || c.Add > 0
	}
	return counts, false
}
