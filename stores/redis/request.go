package redis

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// A request is what one caller has for one lane: some commands that go out
// together, in order, on one connection. After a deadline the client library
// may still hold the commands, so a request is not used again.
type request struct {
	lane    *lane
	cmds    []rueidis.Completed
	lead    int               // commands before the first row's: 1 after ASKING
	rows    []int             // index in the batch of each row's command
	expiry  []bitfield.Expiry // the last commands: to be given back if they fail
	replies []rueidis.RedisResult
	err     error // it was not sent; there are no replies

	// Room for the usual: one or two rows.
	first  [2]rueidis.Completed
	index  [2]int
	single [1]rueidis.RedisResult
}

func newRequest(l *lane) *request {
	r := &request{lane: l}
	r.cmds, r.rows = r.first[:0], r.index[:0]
	return r
}

// run sends the request.
func (r *request) run(ctx context.Context) { r.err = r.lane.do(ctx, r) }

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

// board adds the command of row i to the request to its lane.
func board(trips []*request, l *lane, i int, name string, r *rows.Row) []*request {
	at := slices.IndexFunc(trips, func(t *request) bool { return t.lane == l && t.lead == 0 })
	if at < 0 {
		at = len(trips)
		trips = append(trips, newRequest(l))
	}
	var buf [32]string
	trips[at].add(bitfield.Append(buf[:0], name, r))
	trips[at].rows = append(trips[at].rows, i)
	return trips
}

// boardAgain adds the command of a row to the request to the lane that its slot
// has moved to. While the slot is still being moved (ask), the new node serves it
// only right after ASKING, so each such row travels in a request of its own.
func boardAgain(trips []*request, l *lane, ask bool, i int, name string, r *rows.Row) []*request {
	if !ask {
		return board(trips, l, i, name, r)
	}
	t := newRequest(l)
	t.lead = 1
	t.add([]string{"ASKING"})
	var buf [32]string
	t.add(bitfield.Append(buf[:0], name, r))
	t.rows = append(t.rows, i)
	return append(trips, t)
}
