package redis_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// TestBill asserts the commands of each state, counted at the server (commands in
// scripts would be among them), and the round trips.
func TestBill(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	t0 := time.Now().Unix()
	tat := time.Now().UnixMicro()
	clock := core.Cell{Floor: tat, Add: 60e6}
	for _, step := range []struct {
		name           string
		rows           []core.Row
		settle         bool
		write, ro, exp int64
		trips          int64
	}{
		{"first hit of a key", []core.Row{hit("a")}, true, 1, 0, 1, 2},
		{"steady", []core.Row{hit("a")}, true, 1, 0, 0, 1},
		{"a new hour in the same row", []core.Row{row("a", count(11), read(10), count(24))}, true, 1, 0, 0, 1},
		{"first hour of an epoch: two rows", []core.Row{row("a", count(0), count(24)), yesterday("a", read(23))}, true, 1, 1, 0, 1},
		{"refund of a denied hit", []core.Row{row("a", refund(10), refund(24))}, true, 1, 0, 0, 1},
		{"read only", []core.Row{row("a", read(10), read(24))}, true, 0, 1, 0, 1},
		{"read of an absent key", []core.Row{row("none", read(10))}, true, 0, 1, 0, 1},
		{"own and outer row", []core.Row{hit("a"), hit("net")}, true, 2, 0, 1, 2},
		{"first hit of another key, Settle not called", []core.Row{hit("b")}, false, 1, 0, 0, 1},
		{"its expiry rides with the next hit of any key", []core.Row{hit("a")}, false, 1, 0, 1, 1},
		{"clock, first", []core.Row{clockRow("c", t0+172800, clock)}, true, 1, 0, 1, 2},
		{"clock, steady", []core.Row{clockRow("c", t0+172800, clock)}, true, 1, 0, 0, 1},
		{"clock, a day later", []core.Row{clockRow("c", t0+259200, clock)}, true, 1, 0, 1, 2},
		{"clock, an instance whose day has not begun", []core.Row{clockRow("c", t0+172800, clock)}, true, 1, 0, 0, 1},
		{"refund of a vanished record", []core.Row{row("gone", refund(10))}, true, 1, 0, 1, 2},
		{"nothing", nil, true, 0, 0, 0, 0},
	} {
		server.ResetCalls()
		trips, commands := s.Trips(), s.Commands()
		if _, err := apply(context.Background(), s, step.rows...); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if step.settle {
			if err := s.Settle(context.Background()); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		}
		calls := server.Calls()
		if calls["bitfield"] != step.write || calls["bitfield_ro"] != step.ro || calls["expireat"] != step.exp {
			t.Errorf("%s: %v, want %d BITFIELD, %d BITFIELD_RO, %d EXPIREAT", step.name, calls, step.write, step.ro, step.exp)
		}
		delete(calls, "config|resetstat")
		for name := range calls {
			switch name {
			case "bitfield", "bitfield_ro", "expireat", "info", "config":
			default:
				t.Errorf("%s: an unexpected command %s", step.name, name)
			}
		}
		if got := s.Trips() - trips; got != step.trips {
			t.Errorf("%s: %d round trips, want %d", step.name, got, step.trips)
		}
		if got, want := s.Commands()-commands, step.write+step.ro+step.exp; got != want {
			t.Errorf("%s: Commands grew by %d, want %d", step.name, got, want)
		}
	}
	// No record is left without an expiry, the vanished one included.
	for _, key := range server.Do("KEYS", "*").([]any) {
		if ttl := server.Do("TTL", key).(int64); ttl <= 0 {
			t.Errorf("%s has TTL %d", key, ttl)
		}
	}
}

// TestRepair: an instance that died between the count and the expiry leaves a
// record without one; the next instance repairs it while counts are small, and an
// instance that knows of the expiry does not ask again.
func TestRepair(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx := context.Background()
	first := open(t, redis.Config{Addrs: []string{server.Addr}})
	second := open(t, redis.Config{Addrs: []string{server.Addr}})
	third := open(t, redis.Config{Addrs: []string{server.Addr}, Repair: 1})
	do := func(s *redis.Store, want int64) {
		t.Helper()
		server.ResetCalls()
		if _, err := apply(ctx, s, hit("r")); err != nil {
			t.Fatal(err)
		}
		if s != first { // which dies before it settles
			if err := s.Settle(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := server.Calls()["expireat"]; got != want {
			t.Errorf("%d EXPIREAT, want %d", got, want)
		}
	}
	do(first, 0)
	do(third, 0) // never repairs
	r := hit("r")
	if ttl := server.Do("TTL", namer.Name(&r)).(int64); ttl != -1 {
		t.Fatalf("TTL %d: the fault was not played", ttl)
	}
	do(second, 1) // count 3
	if ttl := server.Do("TTL", namer.Name(&r)).(int64); ttl <= 0 {
		t.Errorf("TTL %d after the repair", ttl)
	}
	do(second, 0)
}

// TestBillOfManyClients: 20,000 clients that come three times cost one BITFIELD
// each time and one EXPIREAT each, however they take turns.
func TestBillOfManyClients(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}, Timeout: patient})
	ctx := context.Background()
	const clients, atOnce = 20_000, 200
	server.ResetCalls()
	for range 3 {
		for i := 0; i < clients; i += atOnce {
			b := &core.Batch{Now: time.Now()}
			for k := range atOnce {
				b.Rows = append(b.Rows, hit("many-"+strconv.Itoa(i+k)))
			}
			if err := s.Apply(ctx, b); err != nil {
				t.Fatal(err)
			}
			if err := s.Settle(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if calls := server.Calls(); calls["bitfield"] != 3*clients || calls["expireat"] != clients {
		t.Errorf("%d BITFIELD and %d EXPIREAT, want %d and %d", calls["bitfield"], calls["expireat"], 3*clients, clients)
	}
}

// TestSettleFails: an expiry whose EXPIREAT failed is kept, and sent later.
func TestSettleFails(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	if _, err := apply(context.Background(), s, hit("s")); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	ctx, cancel := within(100 * time.Millisecond)
	defer cancel()
	err := s.Settle(ctx)
	server.Thaw()
	if err == nil {
		t.Fatal("Settle succeeded with a frozen server")
	}
	if n, _ := s.Pending(); n != 1 {
		t.Fatalf("%d expiries wait, want 1", n)
	}
	if err := s.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := hit("s")
	if ttl := server.Do("TTL", namer.Name(&r)).(int64); ttl <= 0 {
		t.Errorf("TTL %d", ttl)
	}
}
