package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/stilehq/stile/core"
)

// faultCases: what happens to a hit when the network fails around it. Each
// drives a store through a FaultProxy and counts at the server, by a second
// store that reaches it directly. They run only where the harness offers both.
var faultCases = []testCase{
	{"fault/reply lost, connection closed", func(e *env) { e.loseOne((*FaultProxy).LoseReply) }},
	{"fault/reply lost, connection open", func(e *env) { e.loseOne((*FaultProxy).SwallowReplies) }},
	{"fault/refund's reply lost", func(e *env) {
		p, st := e.through()
		e.want(e.row("refund", add(0, 10)), 10)
		e.warm(st)
		p.LoseReply()
		e.unknown(st, e.row("refund", add(0, -1)), "a refund that was applied")
		e.atServer("refund", 9)
		p.Pass()
		e.recovers(st)
		e.nothingLate("refund", 9)
	}},
	{"fault/black hole", func(e *env) {
		p, st := e.through()
		e.warm(st)
		p.BlackHole()
		if err := e.call(st, e.batch(e.row("hole", count(0)))); err == nil {
			e.tb.Fatal("Apply returned nil, though nothing reached the server")
		}
		e.atServer("hole", 0)
		p.Pass()
		e.recovers(st)
		e.nothingLate("hole", 0)
	}},
	{"fault/connection refused", func(e *env) {
		p, st := e.through()
		e.warm(st)
		p.Refuse()
		for range 3 { // the open connection first, then new dials
			if err := e.call(st, e.batch(e.row("refused", count(0)))); err == nil {
				e.tb.Fatal("Apply returned nil, though nothing reached the server")
			}
		}
		e.atServer("refused", 0)
		p.Pass()
		e.recovers(st)
		e.nothingLate("refused", 0)
	}},
	{"fault/delay", func(e *env) {
		p, st := e.through()
		e.warm(st)
		p.Delay(20 * time.Millisecond)
		for i := int64(1); i <= 3; i++ {
			b := e.batch(e.row("slow", count(0)))
			if err := st.Apply(context.Background(), b); err != nil {
				e.tb.Fatalf("Apply over a slow line: %v", err)
			}
			if got := b.Rows[0].Cells[0].Value; got != i {
				e.tb.Fatalf("got %d, want %d", got, i)
			}
		}
		e.atServer("slow", 3)
	}},
}

// through opens a store behind a new proxy.
func (e *env) through() (*FaultProxy, core.Store) {
	e.tb.Helper()
	p := NewFaultProxy(e.tb, e.h.Backend)
	st := e.h.Through(e.tb, p.Addr())
	e.tb.Cleanup(func() {
		p.Close() // first, so that a call that hangs in the store ends
		st.Close()
	})
	return p, st
}

// call applies b with the harness's deadline. A store that does not return soon
// after it fails the case instead of hanging the test. The bound is wide: it
// tells a kept deadline from a client that waits for its own default.
func (e *env) call(st core.Store, b *core.Batch) error {
	e.tb.Helper()
	return e.within(e.h.Timeout, st, b)
}

// calm is the deadline of calls around which nothing is wrong: a busy machine may
// be slow to do what is right.
const calm = 20 * time.Second

func (e *env) within(limit time.Duration, st core.Store, b *core.Batch) error {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- st.Apply(ctx, b) }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit + 5*time.Second):
		e.tb.Fatalf("Apply has not returned five seconds after its deadline of %v", limit)
		return nil
	}
}

// played waits until the proxy has swallowed a reply: without that there was no
// fault. The server may be slower than the call's deadline.
func (e *env) played(p *FaultProxy) {
	e.tb.Helper()
	for end := time.Now().Add(calm); p.Lost() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			e.tb.Fatal("the proxy saw no reply: the fault was not played")
		}
	}
}

// warm makes one call pass, so that a connection is open before the fault.
func (e *env) warm(st core.Store) {
	e.tb.Helper()
	if err := st.Apply(context.Background(), e.batch(e.row("warm", count(0)))); err != nil {
		e.tb.Fatalf("through the proxy, before any fault: %v", err)
	}
}

// loseOne loses the reply of one hit and asserts exactly one at the server.
func (e *env) loseOne(lose func(*FaultProxy)) {
	e.tb.Helper()
	p, st := e.through()
	e.warm(st)
	lose(p)
	e.unknown(st, e.row("lost", count(0), count(24)), "a hit that was applied")
	e.played(p)
	e.atServer("lost", 1)
	p.Pass()
	e.recovers(st)
	e.nothingLate("lost", 1)
}

// unknown applies r, which the server performs and whose reply is lost. The
// outcome must be an error, and must not claim that nothing happened.
func (e *env) unknown(st core.Store, r core.Row, what string) {
	e.tb.Helper()
	b := e.batch(r)
	err := e.call(st, b)
	if err == nil || b.Rows[0].Err == nil {
		e.tb.Fatalf("%s: Apply returned %v and Row.Err %v without an answer of the server", what, err, b.Rows[0].Err)
	}
	if errors.Is(err, core.ErrNotApplied) || errors.Is(b.Rows[0].Err, core.ErrNotApplied) {
		e.tb.Fatalf("%s: error %v claims that the row is unchanged", what, err)
	}
}

// atServer asserts slot 0 of the row under id as the server has it. A request
// that is still on its way is waited for shortly; one too many never goes away.
func (e *env) atServer(id string, want int64) {
	e.tb.Helper()
	var got int64
	for end := time.Now().Add(calm / 2); ; time.Sleep(20 * time.Millisecond) {
		got = e.do(e.row(id, read(0)))[0]
		if got >= want || time.Now().After(end) {
			break
		}
	}
	if got != want {
		e.tb.Fatalf("the server has %d, want exactly %d", got, want)
	}
}

// nothingLate asserts slot 0 once more after a while: that a retry never comes
// can only be seen by waiting for one.
func (e *env) nothingLate(id string, want int64) {
	e.tb.Helper()
	time.Sleep(3 * quiet)
	e.atServer(id, want)
}

// recovers expects st to work again without help: within twenty seconds, errors
// meanwhile allowed (a breaker may be open), and what it counts is right.
func (e *env) recovers(st core.Store) {
	e.tb.Helper()
	var err error
	for end := time.Now().Add(calm); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = e.call(st, e.batch(e.row("recovery", read(0)))); err == nil {
			break
		}
	}
	if err != nil {
		e.tb.Fatalf("the store did not recover: %v", err)
	}
	b := e.batch(e.row("recovery", count(0)))
	if err := e.within(calm, st, b); err != nil {
		e.tb.Fatalf("after recovery: %v", err)
	}
	if got := b.Rows[0].Cells[0].Value; got != 1 {
		e.tb.Fatalf("after recovery: got %d, want 1", got)
	}
}
