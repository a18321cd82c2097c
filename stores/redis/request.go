package redis

import (
	"github.com/redis/rueidis"

	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// A request is what one caller has for one lane: some commands that go out
// together, in order, on one connection. After a deadline the client library
// may still hold the commands, so a request is not used again.
type request struct {
	cmds    []rueidis.Completed
	lead    int               // commands before the first row's: 1 after ASKING
	expiry  []bitfield.Expiry // the last commands: to be given back if they fail
	replies []rueidis.RedisResult

	first  [2]rueidis.Completed // room for cmds
	single [1]rueidis.RedisResult
}

func newRequest() *request {
	r := new(request)
	r.cmds = r.first[:0]
	return r
}

// add appends a command. The words are copied: the caller may use them again.
func (r *request) add(words []string) {
	r.cmds = append(r.cmds, rueidis.Builder{}.Arbitrary(words...).Build())
}

// addExpiry appends an EXPIREAT; no row may follow.
func (r *request) addExpiry(e bitfield.Expiry) {
	var buf [3]string
	r.add(bitfield.AppendExpiry(buf[:0], e.Name, e.At))
	r.expiry = append(r.expiry, e)
}

// integers reads reply k as BITFIELD's. The numbers are appended to dst.
func (r *request) integers(dst []int64, k int) ([]int64, error) {
	list, err := r.replies[k].ToArray()
	if err != nil {
		return dst, err
	}
	for i := range list {
		n, err := list[i].ToInt64()
		if err != nil {
			return dst, bitfield.ErrReply // a null or another type: not what was asked
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// boardAgain adds the command of a row to the trip of the lane that its slot has
// moved to. While the slot is still being moved (ask), the new node serves it
// only right after ASKING, so each such row travels in a request of its own.
func boardAgain(trips []trip, l *lane, ask bool, i int, name string, r *rows.Row) []trip {
	if !ask {
		return board(trips, l, i, name, r)
	}
	req := newRequest()
	req.lead = 1
	req.add([]string{"ASKING"})
	var buf [32]string
	req.add(bitfield.Append(buf[:0], name, r))
	return append(trips, trip{lane: l, req: req, rows: []int{i}})
}
