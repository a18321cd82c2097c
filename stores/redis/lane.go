package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/stores/redis/bitfield"
)

// maxFlight bounds the requests of one pipeline, so that one slow reply does
// not hold up an unbounded crowd.
const maxFlight = 256

// A lane is the way to one server: its connections, and the queue of requests
// that wait while all connections are busy. What has gathered in the queue goes
// out as one pipeline, so that concurrent hits share writes and reads. There is
// no timer and no standing goroutine: a request that finds a free connection
// goes at once in its caller's goroutine, and a goroutine exists only while
// requests wait for their replies.
type lane struct {
	client  *goredis.Client
	timeout time.Duration // of a call without an earlier deadline
	limit   int           // pipelines in flight at once = connections
	stats   *stats
	home    func(name string) *bitfield.Pending // where an expiry belongs now; the lane's own unless a slot moved

	mu      sync.Mutex
	flights int
	queue   []*request
	closed  bool

	expiries bitfield.Pending
}

// stats counts what was sent, over all lanes of a store.
type stats struct {
	commands atomic.Int64
	trips    atomic.Int64
}

// do sends req and waits for its replies, each in its command. It returns an
// error only if the request did not come back as a whole: one that wraps
// core.ErrNotApplied when it was certainly not sent. Errors of single commands,
// transport errors among them, are in the commands.
func (l *lane) do(ctx context.Context, req *request) error {
	if err := ctx.Err(); err != nil {
		l.giveBack(req.expiry)
		return notApplied(err)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return notApplied(errClosed)
	}
	if l.flights < l.limit {
		l.flights++
		l.mu.Unlock()
		l.landed(req, l.fly(ctx, req.cmds))
		l.next()
		return nil
	}
	req.done = make(chan struct{})
	l.queue = append(l.queue, req)
	l.mu.Unlock()

	ctx, cancel := deadlineOr(ctx, l.timeout)
	defer cancel()
	select {
	case <-req.done:
		return nil
	case <-ctx.Done():
	}
	if l.withdraw(req) {
		l.giveBack(req.expiry)
		return notApplied(fmt.Errorf("waiting for a connection: %w", ctx.Err()))
	}
	select {
	case <-req.done: // it came in the meantime
		return nil
	default:
		return unknown(ctx.Err())
	}
}

// withdraw takes req out of the queue and reports whether it was still there.
func (l *lane) withdraw(req *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.queue {
		if r == req {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			return true
		}
	}
	return false
}

// next ends a flight: what has been waiting goes out in the same place.
func (l *lane) next() {
	l.mu.Lock()
	if len(l.queue) == 0 {
		l.flights--
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	go l.ferry()
}

// ferry sends the queue, pipeline after pipeline, until it is empty. Its callers
// wait for it, each as long as its own context allows.
func (l *lane) ferry() {
	var cmds []goredis.Cmder
	for {
		connected := l.connect()
		l.mu.Lock()
		n := min(len(l.queue), maxFlight)
		if n == 0 {
			l.flights--
			l.mu.Unlock()
			return
		}
		batch := append([]*request(nil), l.queue[:n]...)
		rest := copy(l.queue, l.queue[n:])
		clear(l.queue[rest:])
		l.queue = l.queue[:rest]
		l.mu.Unlock()

		cmds = cmds[:0]
		for _, req := range batch {
			cmds = append(cmds, req.cmds...)
		}
		err := connected
		if err == nil {
			err = l.fly(flight{context.Background()}, cmds)
		}
		for _, req := range batch {
			l.landed(req, err)
			close(req.done)
		}
		clear(cmds)
	}
}

// connect makes sure that a connection stands before requests are taken from
// the queue, so that those whose time runs out meanwhile are known to be unsent.
func (l *lane) connect() error {
	if l.client.PoolStats().IdleConns > 0 {
		return nil
	}
	err := l.client.Ping(flight{context.Background()}).Err()
	var reply goredis.Error
	if errors.As(err, &reply) {
		return nil // it answers; what it thinks of PING does not matter
	}
	return err
}

// fly sends one pipeline on one connection, once. The commands carry replies
// and errors; the error is that of the first, or of the way to the server.
func (l *lane) fly(ctx context.Context, cmds []goredis.Cmder) error {
	l.stats.trips.Add(1)
	if len(cmds) == 1 {
		return l.client.Process(ctx, cmds[0])
	}
	pipe := l.client.Pipeline()
	for _, cmd := range cmds {
		// The client's pipeline only gathers here; it cannot fail before Exec.
		_ = pipe.Process(ctx, cmd)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// landed counts what was sent and takes note of the expiries that rode with req.
// Err is that of its flight.
func (l *lane) landed(req *request, err error) {
	if req.written.Load() {
		l.stats.commands.Add(int64(len(req.cmds)))
	} else {
		// The client leaves commands without an error when the server refused
		// the handshake (a wrong password): they would look answered.
		for _, cmd := range req.cmds {
			if err != nil && cmd.Err() == nil {
				cmd.SetErr(err)
			}
		}
	}
	first := len(req.cmds) - len(req.expiry)
	for i, e := range req.expiry {
		if req.cmds[first+i].Err() != nil {
			l.giveBack(req.expiry[i : i+1])
		} else {
			l.expiries.Confirm(e.Name)
		}
	}
}

// giveBack keeps expiries that were not confirmed for a later trip, up to
// maxTries: sending an EXPIREAT twice does no harm, and sending it for ever would.
func (l *lane) giveBack(list []bitfield.Expiry) {
	for _, e := range list {
		l.home(e.Name).Add(e)
	}
}

// close refuses further requests. Waiting ones end with the client's own error.
func (l *lane) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.client.Close()
}

// flight is the context of a shared pipeline: it has no deadline of its own (the
// client's Timeout bounds it), since its callers leave on theirs.
type flight struct{ context.Context }

// deadlineOr returns ctx, or ctx bounded by d when it has no earlier deadline.
func deadlineOr(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if t, ok := ctx.Deadline(); ok && time.Until(t) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}
