package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A link is one connection of a lane, as long as there is one, and the dial that
// makes the next. Nothing runs while nobody asks: a link that has lost its
// connection dials when the next request comes.
type link struct {
	cfg   Config
	addr  string
	alive context.Context // ends with the lane

	now atomic.Pointer[conn]

	mu      sync.Mutex
	dialing *dialing
	old     *conn // replaced, while its last requests wait
}

// A dialing is a connection being made. Conn and err are set before done closes.
type dialing struct {
	done     chan struct{}
	conn     *conn
	err      error
	securing atomic.Bool // TCP stands, TLS does not yet
}

// get returns the connection, or makes one, waiting until ctx or the deadline
// ends. A dial is not the hit's that began it: it has a budget of its own, and
// goes on for the next hit when this one gives up.
func (k *link) get(ctx context.Context, until time.Time) (*conn, error) {
	if c := k.now.Load(); c != nil && !c.over.Load() {
		return c, nil
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for first := true; ; first = false {
		d, began := k.dial()
		select {
		case <-d.done:
		case <-ctx.Done():
			err := fmt.Errorf("waiting for a connection: %w", ctx.Err())
			if d.securing.Load() {
				err = errors.Join(errTLS, err) // a plain server waits for a line's end
			}
			return nil, err
		}
		if d.err == nil {
			return d.conn, nil
		}
		// What failed may have been begun long ago, before a process was paused:
		// once more, as of now.
		if began || !first || ctx.Err() != nil {
			return nil, d.err
		}
	}
}

// dial returns the dial in progress, and whether it began with this call.
func (k *link) dial() (d *dialing, began bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dialing != nil {
		return k.dialing, false
	}
	d = &dialing{done: make(chan struct{})}
	if c := k.now.Load(); c != nil {
		if !c.over.Load() {
			d.conn = c
			close(d.done)
			return d, false
		}
		// At most one that is replaced lives beside the new one.
		if k.old != nil {
			k.old.kill()
		}
		k.old = c
		c.retire()
		k.now.Store(nil)
	}
	k.dialing = d
	go k.connect(d)
	return d, true
}

// connect makes a connection and greets the server.
func (k *link) connect(d *dialing) {
	d.conn, d.err = k.greet(&d.securing)
	k.mu.Lock()
	k.dialing = nil
	if d.err == nil {
		k.now.Store(d.conn)
		if k.alive.Err() != nil { // closed meanwhile
			d.conn.kill()
		}
	}
	k.mu.Unlock()
	close(d.done)
}

// greet dials and does the handshakes, within ConnectTimeout.
func (k *link) greet(securing *atomic.Bool) (c *conn, err error) {
	ctx, cancel := context.WithTimeout(k.alive, k.cfg.ConnectTimeout)
	defer cancel()
	defer func() {
		// The library reads the greeting in this goroutine. It trusts a server
		// more than the conn below it lets through; should it still give up, that
		// is an error like others.
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("greeting: %v", r)
		}
	}()
	o := options(k.cfg, k.addr)
	o.DialCtxFn = once(ctx, k.cfg, securing, &c)
	client, err := rueidis.NewClient(o)
	if err == nil && c.over.Load() {
		err = errUnsent
	}
	if err != nil {
		if client != nil {
			client.Close()
		}
		if c != nil {
			c.kill()
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return nil, err
	}
	c.client = client
	c.greeted.Store(true)
	return c, c.SetDeadline(time.Time{})
}

// close ends what there is. Alive has ended before.
func (k *link) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range []*conn{k.now.Load(), k.old} {
		if c != nil {
			c.kill()
		}
	}
}
