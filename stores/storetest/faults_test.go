package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

// Server is the reference store behind net/rpc: a network store small enough to
// be wrong in chosen ways. Exported for net/rpc only.
type Server struct{ st *reference }

// Apply applies b and answers its values.
func (s *Server) Apply(b *core.Batch, reply *[][]int64) error {
	if err := s.st.Apply(context.Background(), b); err != nil {
		return err
	}
	for i := range b.Rows {
		*reply = append(*reply, values(&b.Rows[i]))
	}
	return nil
}

// serve starts a server for the test and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	srv := rpc.NewServer()
	if err := srv.RegisterName("Store", &Server{newReference("")}); err != nil {
		t.Fatal(err)
	}
	go srv.Accept(quietListener{l})
	return l.Addr().String()
}

// quietListener ends rpc's accept loop without the log line that it writes.
type quietListener struct{ net.Listener }

func (l quietListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if errors.Is(err, net.ErrClosed) {
		select {} // the test process ends soon; the loop has no other way out
	}
	return c, err
}

// remote is the client: one connection, dialled anew after an error.
type remote struct {
	addr, fault string
	mu          sync.Mutex
	conn        *rpc.Client
	closed      bool
}

func (s *remote) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.drop()
	return nil
}

func (s *remote) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

func (s *remote) Features() core.Features {
	return core.Features{Name: "remote", Shared: true, Clocks: true}
}

func (s *remote) Apply(ctx context.Context, b *core.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.send(ctx, b)
	switch {
	case s.fault == "sends again when the connection breaks" && errors.Is(err, io.ErrUnexpectedEOF),
		s.fault == "sends again on any error" && err != nil && !errors.Is(err, core.ErrNotApplied):
		err = s.send(context.WithoutCancel(ctx), b)
	case s.fault == "claims that nothing was applied" && err != nil:
		err = fmt.Errorf("%w: %w", core.ErrNotApplied, err)
	case s.fault == "says nothing of errors":
		err = nil
	}
	for i := range b.Rows {
		b.Rows[i].Err = err
	}
	return err
}

func (s *remote) send(ctx context.Context, b *core.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", core.ErrNotApplied, err)
	}
	if s.closed {
		return core.ErrNotApplied
	}
	if s.conn == nil {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			return fmt.Errorf("%w: %w", core.ErrNotApplied, err)
		}
		s.conn = rpc.NewClient(c)
	}
	sent := &core.Batch{Now: b.Now, Rows: slices.Clone(b.Rows)}
	for i := range sent.Rows {
		sent.Rows[i].Err = nil
	}
	var reply [][]int64
	call := s.conn.Go("Store.Apply", sent, &reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		s.drop()
		if s.fault == "sends again after the deadline" {
			go func() {
				time.Sleep(200 * time.Millisecond) // as a client's background retry does
				s.mu.Lock()
				defer s.mu.Unlock()
				s.send(context.Background(), sent)
			}()
		}
		return ctx.Err()
	}
	if call.Error != nil {
		s.drop()
		return call.Error
	}
	for i := range b.Rows {
		for j := range b.Rows[i].Cells {
			b.Rows[i].Cells[j].Value = reply[i][j]
		}
	}
	return nil
}

func remoteHarness(t *testing.T, fault string) Harness {
	backend := serve(t)
	return Harness{
		Open:    func(testing.TB) core.Store { return &remote{addr: backend} },
		Backend: backend,
		Through: func(_ testing.TB, addr string) core.Store { return &remote{addr: addr, fault: fault} },
		Timeout: 500 * time.Millisecond,
		Slow:    true, // one call at a time; the long runs show nothing more here
	}
}

func TestNetworkStorePasses(t *testing.T) {
	t.Parallel()
	Run(t, remoteHarness(t, ""))
}

// Every way of sending twice, or of being wrong about an outcome, is noticed.
func TestNetworkFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	for fault, by := range map[string]string{
		"sends again when the connection breaks": "fault/reply lost, connection closed",
		"sends again on any error":               "fault/reply lost, connection closed",
		"sends again after the deadline":         "fault/reply lost, connection open",
		"claims that nothing was applied":        "fault/refund's reply lost",
		"says nothing of errors":                 "fault/black hole",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(faultCases, func(c testCase) bool { return c.name == by })
			if failed := failuresOf(remoteHarness(t, fault), faultCases[i:i+1]); len(failed) == 0 {
				t.Fatalf("a store that %s passes %q", fault, by)
			}
		})
	}
}
