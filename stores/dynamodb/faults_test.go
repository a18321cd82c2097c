package dynamodb

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
)

// within applies one hit under a deadline as a page has it.
func within(t *testing.T, s *Store, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begin := time.Now()
	err := s.Apply(ctx, &core.Batch{Rows: []core.Row{row(1, core.Cell{Add: 1})}})
	if took := time.Since(begin); took > limit+10*time.Second { // an SDK of its own mind waits for minutes
		t.Errorf("Apply took %v under a deadline of %v", took, limit)
	}
	return err
}

// eventually waits until hits work again and returns how long that took.
func eventually(t *testing.T, s *Store) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		err := within(t, s, time.Second)
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("not back after %v: %v", time.Since(begin), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestDialRefused(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Table: table, Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatalf("a server that is down at start: %v, want a store", err)
	}
	defer s.Close()
	if err := within(t, s, time.Second); !errors.Is(err, core.ErrNotApplied) {
		t.Errorf("dial refused: %v, want ErrNotApplied", err)
	}
	if err := s.Probe(t.Context()); err == nil {
		t.Error("Probe is content with a server that is down")
	}
}

// TestKilledAndStopped ends the server in mid-traffic, freezes it, and sees the
// store work again by itself each time.
func TestKilledAndStopped(t *testing.T) {
	t.Parallel()
	server := dynamodbtest.Start(t)
	server.CreateTable(t, table)
	s := open(t, server.Endpoint())
	must(t, s, row(1, core.Cell{Add: 1}))

	server.Kill()
	if err := within(t, s, time.Second); err == nil {
		t.Error("a hit on a killed server succeeded")
	}
	if err := within(t, s, time.Second); !errors.Is(err, core.ErrNotApplied) {
		t.Errorf("killed, second hit: %v, want ErrNotApplied", err)
	}
	server.Run(t)
	server.CreateTable(t, table)
	t.Logf("back %v after the restart", eventually(t, s))

	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Long enough for a busy machine to send it: only then is the outcome unknown.
	err := within(t, s, 2*time.Second)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrNotApplied) {
		t.Errorf("stopped: %v, want a deadline with an unknown outcome", err)
	}
	if err := server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	t.Logf("back %v after SIGCONT", eventually(t, s))
}
