package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// deadline is that of a hit in production; slack is what a loaded machine adds.
const (
	deadline = 150 * time.Millisecond
	slack    = 2 * time.Second
)

// try hits once and checks the bound of the latency.
func try(t *testing.T, s *redis.Store, id string) error {
	t.Helper()
	ctx, cancel := within(deadline)
	defer cancel()
	start := time.Now()
	_, err := apply(ctx, s, hit(id))
	if d := time.Since(start); d > deadline+slack {
		t.Errorf("Apply took %v with a deadline of %v", d, deadline)
	}
	return err
}

// recovers expects hits to succeed again without help.
func recovers(t *testing.T, s *redis.Store) {
	t.Helper()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(t, s, "recovery"); err == nil {
			return
		}
	}
	t.Fatalf("no recovery: %v", err)
}

func proves(t *testing.T, err error, want bool) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if errors.Is(err, core.ErrNotApplied) != want || errors.Is(err, redis.ErrUnknown) == want {
		t.Errorf("proves that nothing was applied: want %v, got %v", want, err)
	}
}

func TestKilledAndBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	if err := try(t, s, "k"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	for range 10 {
		proves(t, try(t, s, "k"), true) // dial refused
	}
	server.Restart()
	recovers(t, s)
}

func TestDownAtStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	s, err := redis.Open(context.Background(), redis.Config{Addrs: []string{server.Addr}, Namer: namer})
	if s == nil || !errors.Is(err, redis.ErrUnreachable) || redis.IsWarning(err) {
		t.Fatalf("Open: %v, %v; want a store and ErrUnreachable", s, err)
	}
	defer s.Close()
	proves(t, try(t, s, "d"), true)
	server.Restart()
	recovers(t, s)
}

// TestKilledMidway kills the server under load: the successes are at most what
// the server had when each answered, and no value is seen twice.
func TestKilledMidway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		seen    = map[int64]int{}
		unknown atomic.Int64
		stop    atomic.Bool
	)
	for range 32 {
		wg.Go(func() {
			for !stop.Load() {
				ctx, cancel := within(deadline)
				b, err := apply(ctx, s, hit("m"))
				cancel()
				switch {
				case err == nil:
					mu.Lock()
					seen[b.Rows[0].Cells[0].Value]++
					mu.Unlock()
				case errors.Is(err, core.ErrNotApplied):
					return // dials are refused
				default:
					unknown.Add(1)
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // let the load run; the kill may fall anywhere
	server.Kill()
	wg.Wait()
	stop.Store(true)
	var most int64
	for v, n := range seen {
		if n != 1 {
			t.Errorf("value %d was given %d times", v, n)
		}
		most = max(most, v)
	}
	// Every value below the highest was given to somebody, or lost in the kill.
	if lost := most - int64(len(seen)); lost < 0 || lost > unknown.Load() {
		t.Errorf("highest value %d, %d seen, %d unknown: counts were invented or repeated", most, len(seen), unknown.Load())
	}
	if len(seen) == 0 {
		t.Error("nothing was counted before the kill")
	}
	server.Restart()
	recovers(t, s)
}

// TestFrozen: the server takes requests and answers nothing, to one hit and to a
// crowd. Latency is bounded, the outcome unknown once written, and afterwards each
// hit is there at most once.
func TestFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	if err := try(t, s, "f"); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	proves(t, try(t, s, "f"), false) // written to the open connection
	proves(t, try(t, s, "f"), true)  // a new connection does not get through its handshake
	var (
		wg          sync.WaitGroup
		maybe, none atomic.Int64
	)
	for range 64 {
		wg.Go(func() {
			switch err := try(t, s, "f"); {
			case err == nil:
				t.Error("a frozen server answered")
			case errors.Is(err, core.ErrNotApplied):
				none.Add(1)
			default:
				maybe.Add(1)
			}
		})
	}
	wg.Wait()
	server.Thaw()
	recovers(t, s)
	b, err := apply(context.Background(), s, row("f", read(10)))
	if err != nil {
		t.Fatal(err)
	}
	if got, most := b.Rows[0].Cells[0].Value, 2+maybe.Load(); got < 1 || got > most {
		t.Errorf("the server has %d hits, want 1 to %d", got, most)
	}
}

// TestPasswordRotated: the new password is needed for new connections; the error
// proves that nothing was applied and does not show the old one.
func TestPasswordRotated(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "old-secret")
	s := open(t, redis.Config{Addrs: []string{server.Addr}, Password: "old-secret"})
	if err := try(t, s, "p"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.SetArg("--requirepass", "new-secret")
	server.Restart()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		err = try(t, s, "p")
		proves(t, err, true)
		if strings.Contains(err.Error(), "WRONGPASS") {
			break
		}
	}
	if !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	probe := s.Probe(context.Background())
	if !errors.Is(probe, redis.ErrAuth) || strings.Contains(probe.Error(), "secret") {
		t.Errorf("Probe: %v", probe)
	}
	open(t, redis.Config{Addrs: []string{server.Addr}, Password: "new-secret"})
}

func TestMemoryFull(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	if err := try(t, s, "full"); err != nil {
		t.Fatal(err)
	}
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1")
	proves(t, try(t, s, "full"), true)
	if _, err := apply(context.Background(), s, row("full", read(10))); err != nil {
		t.Errorf("a read while memory is full: %v", err)
	}
	if err := s.Probe(context.Background()); !errors.Is(err, redis.ErrMemoryFull) || redis.IsWarning(err) {
		t.Errorf("Probe: %v", err)
	}
	server.Do("CONFIG", "SET", "maxmemory", "0")
	if err := try(t, s, "full"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	b, _ := apply(context.Background(), s, row("full", read(10)))
	if got := b.Rows[0].Cells[0].Value; got != 2 {
		t.Errorf("the server has %d hits, want 2", got)
	}
}

func TestReplica(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t), redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{replica.Addr}})
	if err := try(t, s, "r"); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(master.Addr, ":")
	replica.Do("REPLICAOF", host, port)
	proves(t, try(t, s, "r"), true)
	if err := s.Probe(context.Background()); !errors.Is(err, redis.ErrReplica) || redis.IsWarning(err) {
		t.Errorf("Probe: %v", err)
	}
	replica.Do("REPLICAOF", "NO", "ONE")
	recovers(t, s)
}

// TestPlaceDeadline: hits that wait for a place on a full connection when their
// time runs out were never sent, and say so; those that had a place are counted.
func TestPlaceDeadline(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}, Timeout: time.Minute})
	if err := try(t, s, "q"); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	const places = 900
	var wg sync.WaitGroup
	ctx, cancel := within(time.Minute)
	defer cancel()
	for range places {
		wg.Go(func() {
			if _, err := apply(ctx, s, hit("q")); err != nil {
				t.Error(err)
			}
		})
	}
	for end := time.Now().Add(30 * time.Second); redis.InFlight(s) < places; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d hits are on their way", redis.InFlight(s), places)
		}
	}
	proves(t, try(t, s, "q"), true)
	server.Thaw()
	wg.Wait()
	b, err := apply(context.Background(), s, row("q", read(10)))
	if err != nil || b.Rows[0].Cells[0].Value != 1+places {
		t.Errorf("got %v and %v, want %d hits at the server", b.Rows[0].Cells[0].Value, err, 1+places)
	}
}

// TestClosed: Apply after Close is refused as unsent.
func TestClosed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}})
	if _, err := apply(context.Background(), s, hit("c")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := hit("c")
	if ttl := server.Do("TTL", namer.Name(&r)).(int64); ttl <= 0 {
		t.Errorf("TTL %d: Close did not send the expiry", ttl)
	}
	_, err := apply(context.Background(), s, hit("c"))
	proves(t, err, true)
}
