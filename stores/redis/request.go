package redis

import (
	"context"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// A request is what one caller has for one lane: some commands that go out
// together, in order, on one connection.
type request struct {
	name    string // key of the first command
	cmds    []goredis.Cmder
	lead    int               // commands before the first row's: 1 after ASKING
	expiry  []bitfield.Expiry // the last commands: to be given back if they fail
	written atomic.Bool       // the client began to encode the request: no longer "not applied"
	done    chan struct{}     // closed when every cmd has its reply or error
}

// MarshalBinary lets a request stand for the key name among the arguments of its
// first command. The client calls it while it writes that command, which is
// after it has got a connected, authenticated connection. Until then nothing of
// the request can have reached the server, whatever the error says.
func (r *request) MarshalBinary() ([]byte, error) {
	r.written.Store(true)
	return []byte(r.name), nil
}

// Command names as ready arguments, so that they are not boxed for each command.
var commandArg = map[string]any{
	bitfield.Write:    bitfield.Write,
	bitfield.Read:     bitfield.Read,
	bitfield.ExpireAt: bitfield.ExpireAt,
}

// args turns the words of a command into arguments for the client. They point
// into one copy of words, which the request owns: its caller may have left
// before it is written.
func (r *request) args(words []string) []any {
	words = append(make([]string, 0, len(words)), words...)
	args := make([]any, len(words))
	args[0] = commandArg[words[0]]
	for i := 1; i < len(words); i++ {
		args[i] = &words[i]
	}
	if r.name == "" {
		r.name = words[1]
		args[1] = r
	}
	return args
}

// add appends a row's command.
func (r *request) add(words []string) {
	r.cmds = append(r.cmds, goredis.NewIntSliceCmd(context.Background(), r.args(words)...))
}

// addExpiry appends an EXPIREAT; no row may follow.
func (r *request) addExpiry(e bitfield.Expiry) {
	var buf [3]string
	words := bitfield.AppendExpiry(buf[:0], e.Name, e.At)
	r.cmds = append(r.cmds, goredis.NewIntCmd(context.Background(), r.args(words)...))
	r.expiry = append(r.expiry, e)
}

// boardAgain adds the command of a row to the trip of the lane that its slot has
// moved to. While the slot is still being moved (ask), the new node serves it
// only right after ASKING, so each such row travels in a request of its own.
func boardAgain(trips []trip, l *lane, ask bool, i int, name string, r *rows.Row) []trip {
	if !ask {
		return board(trips, l, i, name, r)
	}
	req := &request{lead: 1}
	req.cmds = append(req.cmds, goredis.NewStatusCmd(context.Background(), "ASKING"))
	var buf [32]string
	req.add(bitfield.Append(buf[:0], name, r))
	return append(trips, trip{lane: l, req: req, rows: []int{i}})
}
