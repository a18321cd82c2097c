package reliability

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// A name is an address that is moved from one server to another, as the endpoint
// of a managed store is in a failover. Connections of the old server end.
type name struct {
	listener net.Listener
	to       atomic.Value // string
}

func newName(t *testing.T, to string) *name {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &name{listener: l}
	n.to.Store(to)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.serve(c)
		}
	}()
	return n
}

func (n *name) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", n.to.Load().(string))
	if err != nil {
		return
	}
	defer s.Close()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(s, c); done <- struct{}{} }()
	go func() { _, _ = io.Copy(c, s); done <- struct{}{} }()
	<-done
}

// TestFailover: the primary dies, its replica is promoted and takes over the
// name. Visitors are served throughout, and what was replicated goes on counting.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary, replica := redistest.Start(t), redistest.Start(t)
	host, port := primary.HostPort()
	replica.Do("REPLICAOF", host, port)
	at := newName(t, primary.Addr)
	r, err := limiter("redis://"+at.listener.Addr().String(), policyText(100_000, "open", timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	deadline := time.Now().Add(60 * time.Second)
	for primary.Client().Do(context.Background(), "WAIT", 1, 200).Val() != int64(1) {
		if time.Now().After(deadline) {
			t.Fatal("the replica never caught up")
		}
	}
	const before = 7
	for i := range before {
		if d := hit(t, r); d.Err != nil || d.States[1].Count != int64(i+1) {
			t.Fatalf("before: %+v", d)
		}
	}
	if n := primary.Client().Do(context.Background(), "WAIT", 1, 5000).Val(); n != int64(1) {
		t.Fatalf("the replica did not confirm: %v", n)
	}
	primary.Kill()
	served := 0
	for range 8 {
		if d := hit(t, r); d.Outcome != core.Admit {
			t.Fatalf("turned away: %s", d.Reason)
		}
		served++
	}
	replica.Do("REPLICAOF", "NO", "ONE")
	at.to.Store(replica.Addr)
	promoted := time.Now()
	d := hit(t, r)
	for ; d.Err != nil; d = hit(t, r) {
		if time.Since(promoted) > 60*time.Second {
			t.Fatalf("no recovery: %v", d.Err)
		}
		time.Sleep(20 * time.Millisecond) // the breaker's pause
	}
	if n := d.States[1].Count; n != before+1 {
		t.Errorf("after the failover the counter says %d, want %d", n, before+1)
	}
	t.Logf("| failover to a promoted replica | %d of %d served by the failure policy | recovery %v |", served, served, time.Since(promoted).Round(10*time.Millisecond))
}
