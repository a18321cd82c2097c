package storetest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A FaultProxy stands between a store and its server on TCP and misbehaves on
// command. It knows no protocol, so it serves RESP, HTTP, gRPC and TLS alike.
// A switch acts on open connections as well as on new ones. Safe for concurrent use.
type FaultProxy struct {
	backend  string
	listener net.Listener
	mode     atomic.Int32
	delay    atomic.Int64 // ns, each way
	lost     atomic.Int64 // bytes of replies swallowed
	held     atomic.Int64 // bytes of requests black-holed
	dials    atomic.Int64

	mu    sync.Mutex
	conns map[*proxied]struct{}
	over  bool
}

// The modes of a FaultProxy.
const (
	modePass int32 = iota
	modeLoseReply
	modeSwallowReplies
	modeBlackHole
	modeRefuse
)

// quiet is how long the server must have said nothing before a lost reply ends
// in a closed connection. Some protocols chat before they answer (HTTP/2 window
// updates), and closing on that would undo the request instead of the reply.
const quiet = 150 * time.Millisecond

// proxied is one client connection and its way to the server.
type proxied struct {
	client, server net.Conn
	lastLost       atomic.Int64 // Unix ns of the last swallowed reply byte; 0 = none
}

func (c *proxied) close() {
	c.client.Close()
	c.server.Close()
}

// NewFaultProxy listens on a free port of 127.0.0.1 and forwards to backend
// until the test ends. It starts in the passing state.
func NewFaultProxy(tb testing.TB, backend string) *FaultProxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("fault proxy: %v", err)
	}
	p := &FaultProxy{backend: backend, listener: l, conns: map[*proxied]struct{}{}}
	var done sync.WaitGroup
	done.Go(func() { p.accept(&done) })
	tb.Cleanup(func() {
		p.Close()
		done.Wait()
	})
	return p
}

// Addr is the host:port that the store under test must dial.
func (p *FaultProxy) Addr() string { return p.listener.Addr().String() }

// Pass forwards both ways. Bytes that other modes swallowed stay lost, and a
// connection that lost some is closed, since its protocol is out of step.
func (p *FaultProxy) Pass() {
	p.delay.Store(0)
	was := p.mode.Swap(modePass)
	if was == modeLoseReply || was == modeSwallowReplies || was == modeBlackHole {
		p.closeConns()
	}
}

// LoseReply lets requests reach the server, swallows its reply and then closes
// the connection: the fault after which a careless client sends again.
func (p *FaultProxy) LoseReply() { p.mode.Store(modeLoseReply) }

// SwallowReplies lets requests reach the server and swallows its replies, with
// the connection left open: the client must give up by its own deadline.
func (p *FaultProxy) SwallowReplies() { p.mode.Store(modeSwallowReplies) }

// BlackHole accepts everything and forwards nothing, either way.
func (p *FaultProxy) BlackHole() { p.mode.Store(modeBlackHole) }

// Delay forwards each chunk of bytes d later, each way.
func (p *FaultProxy) Delay(d time.Duration) {
	p.delay.Store(int64(d))
	p.mode.Store(modePass)
}

// Refuse closes open connections and every new one at once.
func (p *FaultProxy) Refuse() {
	p.mode.Store(modeRefuse)
	p.closeConns()
}

// Lost is the number of reply bytes swallowed so far: above zero, the server
// has answered something that the client never saw.
func (p *FaultProxy) Lost() int64 { return p.lost.Load() }

// Held is the number of request bytes that a black hole took.
func (p *FaultProxy) Held() int64 { return p.held.Load() }

// Dials is the number of connections accepted so far.
func (p *FaultProxy) Dials() int64 { return p.dials.Load() }

// Close stops listening and closes every connection: dials are refused from now on.
func (p *FaultProxy) Close() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.listener.Close()
	p.closeConns()
}

func (p *FaultProxy) closeConns() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

func (p *FaultProxy) accept(done *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.dials.Add(1)
		if p.mode.Load() == modeRefuse {
			client.Close()
			continue
		}
		done.Go(func() { p.serve(client, done) })
	}
}

func (p *FaultProxy) serve(client net.Conn, done *sync.WaitGroup) {
	server, err := net.Dial("tcp", p.backend)
	if err != nil {
		client.Close()
		return
	}
	c := &proxied{client: client, server: server}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		c.close()
		return
	}
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	done.Go(func() { p.copyRequests(c) })
	p.copyReplies(c)
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *FaultProxy) copyRequests(c *proxied) {
	defer c.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.client.Read(buf)
		if n > 0 {
			if p.mode.Load() == modeBlackHole {
				p.held.Add(int64(n))
			} else {
				time.Sleep(time.Duration(p.delay.Load()))
				if _, werr := c.server.Write(buf[:n]); werr != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *FaultProxy) copyReplies(c *proxied) {
	defer c.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(buf)
		if n > 0 {
			switch p.mode.Load() {
			case modeLoseReply:
				p.lost.Add(int64(n))
				c.closeWhenQuiet()
			case modeSwallowReplies:
				p.lost.Add(int64(n))
			case modeBlackHole:
			default:
				time.Sleep(time.Duration(p.delay.Load()))
				if _, werr := c.client.Write(buf[:n]); werr != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// closeWhenQuiet closes c once no reply byte has come for a while.
func (c *proxied) closeWhenQuiet() {
	mark := time.Now().UnixNano()
	c.lastLost.Store(mark)
	time.AfterFunc(quiet, func() {
		if c.lastLost.Load() == mark {
			c.close()
		}
	})
}
