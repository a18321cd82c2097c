package bench

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A forwarder passes TCP connections on to one server and counts their bytes. It
// is how bytes are measured alike for every store, whatever its client library.
type forwarder struct {
	listener net.Listener
	target   string
	out, in  atomic.Int64 // to the server, from the server

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
	wg    sync.WaitGroup
}

// forward starts a forwarder to target on a free port of 127.0.0.1.
func forward(target string) (*forwarder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: l, target: target, conns: map[net.Conn]bool{}}
	f.wg.Go(f.accept)
	return f, nil
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

func (f *forwarder) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", f.target)
		if err != nil {
			client.Close()
			continue
		}
		if !f.keep(client, server) {
			return
		}
		f.wg.Go(func() { f.copy(server, client, &f.out) })
		f.wg.Go(func() { f.copy(client, server, &f.in) })
	}
}

func (f *forwarder) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		if f.done {
			c.Close()
		} else {
			f.conns[c] = true
		}
	}
	return !f.done
}

// copy counts before it writes: once the other side has the bytes, they have been
// counted.
func (f *forwarder) copy(to, from net.Conn, n *atomic.Int64) {
	_, _ = io.Copy(counting{to, n}, from)
	to.Close()
	from.Close()
	f.mu.Lock()
	delete(f.conns, to)
	delete(f.conns, from)
	f.mu.Unlock()
}

type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.Writer.Write(p)
}

func (f *forwarder) close() {
	f.listener.Close()
	f.mu.Lock()
	f.done = true
	for c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}
