package redis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/stilehq/stile/stores/redis/bitfield"
)

// A lane is the way to one server: its connections, and the expiries that it is
// still to be told. All requests share the connections, so that concurrent hits
// share writes and reads; each goes at once, in its caller's goroutine as long as
// it is alone on its connection.
type lane struct {
	addr  string
	cfg   Config
	links []*link
	turn  atomic.Uint32 // which link is next
	end   context.CancelFunc
	stats *stats
	home  func(name string) *bitfield.Pending // where an expiry belongs now; the lane's own unless a slot moved

	expiries bitfield.Pending
}

// stats counts what was sent, over all lanes of a store.
type stats struct {
	commands atomic.Int64
	trips    atomic.Int64
}

func newLane(c Config, addr string, st *stats) *lane {
	alive, end := context.WithCancel(context.Background())
	l := &lane{addr: addr, cfg: c, stats: st, end: end}
	for range c.Pool {
		l.links = append(l.links, &link{cfg: c, addr: addr, alive: alive})
	}
	return l
}

// do sends req and waits for its replies. It returns an error only if req was
// certainly not sent; it wraps core.ErrNotApplied. Errors of single commands,
// broken connections among them, are in the replies.
func (l *lane) do(ctx context.Context, req *request) error {
	err := l.carry(ctx, req)
	if err != nil {
		l.giveBack(req.expiry)
		return err
	}
	l.stats.trips.Add(1)
	l.stats.commands.Add(int64(len(req.cmds)))
	first := len(req.cmds) - len(req.expiry)
	for i, e := range req.expiry {
		if req.replies[first+i].Error() != nil {
			l.giveBack(req.expiry[i : i+1])
		} else {
			l.expiries.Confirm(e.Name)
		}
	}
	return nil
}

// carry finds a connection for req and sends it there.
func (l *lane) carry(ctx context.Context, req *request) error {
	if err := ctx.Err(); err != nil {
		return notApplied(err)
	}
	until := deadline(ctx, l.cfg.Timeout)
	k := l.links[0]
	if n := uint32(len(l.links)); n > 1 {
		k = l.links[l.turn.Add(1)%n]
	}
	for try := 0; ; try++ {
		c, err := k.get(ctx, until)
		if err != nil {
			return notApplied(err)
		}
		// A connection that had ended while it was idle: the request is still here
		// and goes to the next one. Twice, for the server may be on its way down.
		if err = c.send(ctx, until, req); !errors.Is(err, errUnsent) {
			return err
		}
		if try == 2 {
			return notApplied(err)
		}
	}
}

// ask sends one command that is no row's, and is not counted.
func (l *lane) ask(ctx context.Context, words ...string) (rueidis.RedisMessage, error) {
	req := newRequest(l)
	req.add(words)
	if err := l.carry(ctx, req); err != nil {
		return rueidis.RedisMessage{}, err
	}
	return req.replies[0].ToMessage()
}

// giveBack keeps expiries that were not confirmed for a later trip, up to
// maxTries: sending an EXPIREAT twice does no harm, and sending it for ever would.
func (l *lane) giveBack(list []bitfield.Expiry) {
	for _, e := range list {
		l.home(e.Name).Add(e)
	}
}

// close ends the connections. Requests on their way end with an error.
func (l *lane) close() {
	l.end()
	for _, k := range l.links {
		k.close()
	}
}

// String names the lane in errors.
func (l *lane) String() string { return fmt.Sprintf("node %s", l.addr) }
