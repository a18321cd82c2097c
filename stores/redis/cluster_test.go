package redis_test

import (
	"context"
	"errors"
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

// TestClusterUnserved: a slot that no node serves is an error that proves the row
// unchanged; the others count on.
func TestClusterUnserved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := open(t, redis.Config{Addrs: cluster.Addrs()[:1], Cluster: true, Timeout: patient})
	lost := hit("lost")
	slot := cluster.Nodes[0].Do("CLUSTER", "KEYSLOT", namer.Name(&lost)).(int64)
	for _, n := range cluster.Nodes {
		n.Do("CLUSTER", "DELSLOTS", slot)
	}
	for range 3 { // the server refuses; then, when the topology has been looked at, there is no server to ask
		_, err := apply(context.Background(), s, hit("lost"))
		proves(t, err, true)
		time.Sleep(600 * time.Millisecond) // a look at the topology is not repeated sooner
	}
	served := 0
	for i := range 20 {
		if _, err := apply(context.Background(), s, hit(fmt.Sprint("other-", i))); err == nil {
			served++
		}
	}
	if served < 19 { // one might have the same slot
		t.Errorf("%d of 20 other keys were counted", served)
	}
}

// TestClusterFailover: a master is killed and its replica takes over. Hits on its
// keys fail meanwhile, within their deadline; then they count on from what was
// replicated, without help. The other masters' keys never fail.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	s := open(t, redis.Config{Addrs: cluster.Addrs(), Cluster: true, Timeout: patient})
	ctx := context.Background()
	var doomed *redistest.Server
	r := hit("doomed")
	slot := cluster.Nodes[0].Do("CLUSTER", "KEYSLOT", namer.Name(&r)).(int64)
	const before = 5
	for range before {
		if _, err := apply(ctx, s, hit("doomed")); err != nil {
			t.Fatal(err)
		}
	}
	other := ""
	for _, n := range cluster.Nodes {
		if n.Do("CLUSTER", "COUNTKEYSINSLOT", slot).(int64) > 0 {
			doomed = n
		}
	}
	for i := 0; other == ""; i++ {
		r := hit(fmt.Sprint("safe-", i))
		if at := cluster.Nodes[0].Do("CLUSTER", "KEYSLOT", namer.Name(&r)).(int64); at*3/16384 != slot*3/16384 {
			other = r.Key.ID
		}
	}
	replica := cluster.AddReplica(doomed)
	if n := doomed.Do("WAIT", 1, 20000).(int64); n != 1 {
		t.Fatalf("the replica did not confirm: %d", n)
	}
	doomed.Kill()
	killed := time.Now()
	failed, proven := 0, 0
	var count int64
	for {
		short, cancel := within(deadline)
		b, err := apply(short, s, hit("doomed"))
		cancel()
		if err == nil {
			count = b.Rows[0].Cells[0].Value
			break
		}
		failed++
		if errors.Is(err, core.ErrNotApplied) {
			proven++
		}
		if time.Since(killed) > 60*time.Second {
			t.Fatalf("no recovery: %v; the replica says %v", err, replica.Do("ROLE"))
		}
		if _, err := apply(ctx, s, hit(other)); err != nil {
			t.Fatalf("a key of another master: %v", err)
		}
		time.Sleep(20 * time.Millisecond) // the nodes take their time to agree
	}
	if failed == 0 || count < before+1 || count > before+1+int64(failed-proven) {
		t.Errorf("after %d failed hits, %d of them proven unsent, the counter says %d; want %d, and those whose outcome is unknown", failed, proven, count, before+1)
	}
	t.Logf("failover in a cluster: %d hits failed, %d proven unsent, over %v (cluster-node-timeout 2 s); counter %d after %d", failed, proven, time.Since(killed).Round(10*time.Millisecond), count, before)
}
