package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// TestClusterMoves moves the slot of a key between two masters while it is hit:
// every hit counts once, before, during (ASK) and after (MOVED).
func TestClusterMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := open(t, redis.Config{Addrs: cluster.Addrs()[:1], Cluster: true, Timeout: patient})
	ctx := context.Background()
	var want int64
	expect := func(when string) {
		t.Helper()
		want++
		b, err := apply(ctx, s, hit("moving"))
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := b.Rows[0].Cells[0].Value; got != want {
			t.Fatalf("%s: got %d, want %d", when, got, want)
		}
	}
	expect("before")
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	r := hit("moving")
	name := namer.Name(&r)
	slot := cluster.Nodes[0].Do("CLUSTER", "KEYSLOT", name).(int64)
	var from, to *redistest.Server
	for _, n := range cluster.Nodes {
		if n.Do("CLUSTER", "COUNTKEYSINSLOT", slot).(int64) > 0 {
			from = n
		} else {
			to = n
		}
	}
	if from == nil || to == nil {
		t.Fatalf("no node has %s", name)
	}
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.ID())
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.ID())
	expect("announced, not yet moved")
	host, port := to.HostPort()
	from.Do("MIGRATE", host, port, name, 0, 5000)
	expect("the record has moved, the slot has not: ASK")
	expect("ASK again")
	for _, n := range []*redistest.Server{to, from} {
		n.Do("CLUSTER", "SETSLOT", slot, "NODE", to.ID())
	}
	expect("MOVED")
	trips := s.Trips()
	expect("after")
	if got := s.Trips() - trips; got != 1 {
		t.Errorf("%d round trips after the move, want 1: the new place was not learnt", got)
	}
}

// TestClusterBill: rows of one batch spread over all nodes in parallel, one command
// each, and no command takes two keys.
func TestClusterBill(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := open(t, redis.Config{Addrs: cluster.Addrs()[:1], Cluster: true, Timeout: patient})
	var list []core.Row
	for i := range 30 {
		list = append(list, hit(fmt.Sprint("spread-", i)))
	}
	for round := int64(1); round <= 2; round++ {
		for _, n := range cluster.Nodes {
			n.ResetCalls()
		}
		trips := s.Trips()
		b := &core.Batch{Now: time.Now()}
		for _, r := range list {
			r.Cells = append([]core.Cell(nil), r.Cells...)
			b.Rows = append(b.Rows, r)
		}
		if err := s.Apply(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		if got := s.Trips() - trips; got != 3 {
			t.Errorf("%d pipelines for three nodes", got)
		}
		if err := s.Settle(context.Background()); err != nil {
			t.Fatal(err)
		}
		calls := cluster.Calls()
		if calls["bitfield"] != 30 || calls["expireat"] != 30*(2-round) {
			t.Errorf("round %d: %v, want 30 BITFIELD and %d EXPIREAT", round, calls, 30*(2-round))
		}
		for i := range b.Rows {
			if got := b.Rows[i].Cells[0].Value; got != round {
				t.Errorf("row %d: got %d, want %d", i, got, round)
			}
		}
	}
}
