package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/stilehq/stile/core"
)

const (
	// maxInFlight bounds the requests on one connection. The client library has
	// room for 1,024 and does not heed a deadline beyond that; what this leaves is
	// for requests whose caller has given up and whose reply is still to come.
	maxInFlight = 900
	// crowd is the number of requests in flight beyond which a write waits for
	// those that are just about to come.
	crowd = 2
	// maxLate is the number of deadlines in a row after which a connection is
	// replaced although it still brings replies: they are of no use.
	maxLate = 64
)

// errUnsent says that a request was not handed to a connection, so that it may
// go to another one.
var errUnsent = errors.New("the connection had ended")

// A conn is one connection, from its greeting to its end, and the client of the
// library that speaks on it. All requests share it, and their replies come back in
// order. It is never mended: another conn takes its place.
//
// It stands between the library and the socket as a net.Conn and counts the
// messages in both directions. A reply too many or bytes that are no RESP end the
// connection, before the library sees them.
type conn struct {
	net.Conn          // what carries the protocol: TCP, or TLS over it
	raw      net.Conn // TCP
	client   rueidis.Client
	greetBy  time.Time // while greeting: no deadline is later

	greeted atomic.Bool   // the greeting is over; requests may follow
	over    atomic.Bool   // takes no new request
	killed  sync.Once     // its socket is closed
	reads   atomic.Uint64 // pieces of replies that have come
	late    atomic.Int64  // deadlines in a row
	places  chan struct{} // of requests in flight

	written  scanner
	messages atomic.Int64 // complete requests in what was written
	read     scanner
	replies  int64 // complete replies in what was read; of the one reader at a time

	peek struct {
		sync.Mutex
		raw   syscall.RawConn
		look  func(fd uintptr)
		buf   [1]byte
		ended bool
	}
}

var _ net.Conn = (*conn)(nil)

func newConn(transport, raw net.Conn, greetBy time.Time) *conn {
	c := &conn{Conn: transport, raw: raw, greetBy: greetBy, places: make(chan struct{}, maxInFlight)}
	if s, ok := raw.(syscall.Conn); ok {
		if rc, err := s.SyscallConn(); err == nil {
			c.peek.raw = rc
			c.peek.look = func(fd uintptr) { c.peek.ended = ended(fd, c.peek.buf[:]) }
		}
	}
	return c
}

// Write implements net.Conn for the client library.
func (c *conn) Write(p []byte) (int, error) {
	n, ok := c.written.scan(p)
	if !ok {
		return 0, errProtocol // of ours; nothing has left
	}
	c.messages.Add(n)
	if len(c.places) > crowd {
		// Hits that are ready to run come first: what they ask goes out together with
		// the next write, which is then one of many commands. It costs nothing when
		// nobody is ready, and there is no timer.
		runtime.Gosched()
	}
	wrote, err := c.Conn.Write(p)
	if err != nil {
		c.over.Store(true)
	}
	return wrote, err
}

// Read implements net.Conn for the client library.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.reads.Add(1)
		replies, ok := c.read.scan(p[:n])
		c.replies += replies
		if !ok || c.replies > c.messages.Load() {
			c.kill()
			return 0, errProtocol
		}
	}
	if err != nil {
		c.over.Store(true)
	}
	return n, err
}

// SetDeadline implements net.Conn: the greeting as a whole has one deadline.
func (c *conn) SetDeadline(t time.Time) error {
	if !c.greeted.Load() && (t.IsZero() || t.After(c.greetBy)) {
		t = c.greetBy
	}
	return c.Conn.SetDeadline(t)
}

// Close implements net.Conn for the client library, which calls it when it gives
// the connection up. TLS' farewell is left out: it may wait for the peer.
func (c *conn) Close() error {
	c.over.Store(true)
	return c.raw.Close()
}

// kill ends the connection at once, and its requests with it.
func (c *conn) kill() {
	c.over.Store(true)
	c.killed.Do(func() {
		_ = c.raw.Close()
		if client := c.client; client != nil {
			// It frees what the library holds. The socket is closed, so that the
			// farewell that it would send does not reach the server.
			go client.Close()
		}
	})
}

// retire lets no new request in; the last one out ends the connection.
func (c *conn) retire() {
	c.over.Store(true)
	if len(c.places) == 0 {
		c.kill()
	}
}

// dead reports whether an idle connection has been ended by the server. It costs
// one system call.
func (c *conn) dead() bool {
	if c.peek.raw == nil || !c.peek.TryLock() {
		return false
	}
	defer c.peek.Unlock()
	c.peek.ended = false
	if err := c.peek.raw.Control(c.peek.look); err != nil {
		return true // closed here
	}
	return c.peek.ended
}

// send hands req to the client and waits for its replies until the deadline. It
// returns errUnsent or an error that wraps core.ErrNotApplied when req was
// certainly not handed over; all else is in the replies.
func (c *conn) send(ctx context.Context, until time.Time, req *request) error {
	if err := c.enter(ctx, until); err != nil {
		return err
	}
	defer c.leave()
	// A connection that the server or a pause has ended while nothing was on it
	// is found out before it costs a hit.
	if c.over.Load() || len(c.places) == 1 && c.dead() {
		c.over.Store(true)
		return errUnsent
	}
	before := c.reads.Load()
	f := newFlight(until)
	if len(req.cmds) == 1 {
		req.single[0] = c.client.Do(f, req.cmds[0])
		req.replies = req.single[:]
	} else {
		req.replies = c.client.DoMulti(f, req.cmds...)
	}
	f.land()
	switch err := req.replies[0].NonRedisError(); {
	case err == nil:
		if c.late.Load() != 0 {
			c.late.Store(0)
		}
	case errors.Is(err, errUnsent):
		return errUnsent
	case errors.Is(err, context.DeadlineExceeded):
		// Silence since the request was made, or nothing but late replies: others
		// are better off on a new connection.
		if c.reads.Load() == before || c.late.Add(1) >= maxLate {
			c.over.Store(true)
		}
	}
	return nil
}

// enter takes a place among the requests in flight.
func (c *conn) enter(ctx context.Context, until time.Time) error {
	select {
	case c.places <- struct{}{}:
		return nil
	default:
	}
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	select {
	case c.places <- struct{}{}:
		return nil
	case <-wait.Done():
		return fmt.Errorf("redis: %w: waiting for a place on the connection: %w", core.ErrNotApplied, wait.Err())
	}
}

func (c *conn) leave() {
	<-c.places
	if c.over.Load() && len(c.places) == 0 {
		c.kill()
	}
}
