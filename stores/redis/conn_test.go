package redis_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
)

// TestOneConnection: however many hits at once, there is one connection, and what
// it says at its beginning is HELLO. Nothing is sent while nobody asks.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := storetest.NewFaultProxy(t, server.Addr)
	s, err := redis.New(redis.Config{Addrs: []string{proxy.Addr()}, Namer: namer, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server.ResetCalls()
	const ways, each = 64, 50
	var wg sync.WaitGroup
	for range ways {
		wg.Go(func() {
			for range each {
				if _, err := apply(context.Background(), s, hit("one")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	time.Sleep(2500 * time.Millisecond) // the client library's own timer would have sent two PINGs
	calls := server.Calls()
	for _, ours := range []string{"config|resetstat", "info"} {
		delete(calls, ours)
	}
	expiries := calls["expireat"] // with 64 first hits, of some of the first three
	delete(calls, "expireat")
	if len(calls) != 2 || calls["hello"] != 1 || calls["bitfield"] != ways*each || expiries < 1 || expiries > 3*ways {
		t.Errorf("the server saw %v and %d EXPIREAT, want one HELLO and %d BITFIELD", calls, expiries, ways*each)
	}
	if n := proxy.Dials(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestServerHangsUp: a connection that the server has closed while it was idle (its
// timeout setting, a restart behind the same name) costs no hit.
func TestServerHangsUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{Addrs: []string{server.Addr}, Timeout: patient})
	for i := range int64(20) {
		b, err := apply(context.Background(), s, hit("idle"))
		if err != nil || b.Rows[0].Cells[0].Value != i+1 {
			t.Fatalf("hit %d: %v, %v", i+1, b.Rows[0].Cells[0].Value, err)
		}
		if i%2 == 0 { // and once more on the connection that stays
			server.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}
	}
}

// TestDialBudget: connecting takes longer than a hit may wait. The hit gives up,
// proven unsent, the dial goes on, and a later hit has its connection.
func TestDialBudget(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := storetest.NewFaultProxy(t, server.Addr)
	proxy.Delay(400 * time.Millisecond)
	s, err := redis.New(redis.Config{Addrs: []string{proxy.Addr()}, Namer: namer, ConnectTimeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	proves(t, try(t, s, "far"), true)
	proxy.Delay(0)
	recovers(t, s)
	if n := proxy.Dials(); n != 1 {
		t.Errorf("%d dials, want the first to be the one that was used", n)
	}
}

// TestGreetingHangs: the server takes the connection and says nothing. Every hit is
// proven unsent within its deadline, and there are no more connections than dials
// within ConnectTimeout.
func TestGreetingHangs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := storetest.NewFaultProxy(t, server.Addr)
	proxy.BlackHole()
	s, err := redis.New(redis.Config{Addrs: []string{proxy.Addr()}, Namer: namer, ConnectTimeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { proves(t, try(t, s, "hole"), true) })
	}
	wg.Wait()
	if n := proxy.Dials(); n != 1 {
		t.Errorf("%d dials, want 1", n)
	}
	done := make(chan error)
	go func() { done <- s.Close() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("Close waits for the dial")
	}
}

// TestHostileServer: replies that nobody asked for, and bytes that are none. The
// process lives, the hit's outcome is unknown, and the next one dials anew.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	const good = "*4\r\n:0\r\n:1\r\n:0\r\n:1\r\n"
	for name, answer := range map[string]string{
		"twice":             good + good,
		"a negative length": "$-7\r\n",
		"a huge length":     "*4\r\n$99999999999999\r\n",
		"HTTP":              "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a push":            ">2\r\n+invalidate\r\n*0\r\n",
		"an array too deep": strings.Repeat("*1000\r\n", 3000),
		"a null":            "$-1\r\n",
		"nulls":             "*4\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n",
		"strings":           "*4\r\n+0\r\n+1\r\n+0\r\n+1\r\n",
		"too few":           "*3\r\n:0\r\n:1\r\n:0\r\n",
		"an error":          "-ERR upstream failure\r\n",
		"nothing, and end":  "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bad atomic.Bool
			addr := speak(t, func(word string) string {
				switch {
				case word != "BITFIELD":
					return "+OK\r\n"
				case bad.Load():
					return answer
				}
				return good
			})
			s, err := redis.New(redis.Config{Addrs: []string{addr}, Namer: namer, Timeout: patient})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 2 { // alone on its connection, and among others
				if _, err := apply(context.Background(), s, hit("h")); err != nil {
					t.Fatal(err)
				}
				bad.Store(true)
				var wg sync.WaitGroup
				for range 16 {
					wg.Go(func() {
						if _, err := apply(context.Background(), s, hit("h")); err == nil && name != "twice" {
							t.Error("taken for an answer")
						} else if errors.Is(err, core.ErrNotApplied) {
							t.Errorf("taken for a proof: %v", err)
						}
					})
				}
				wg.Wait()
				bad.Store(false)
			}
			recovers(t, s)
		})
	}
}

// speak serves RESP on a port of its own: answer gives the bytes for each command;
// none close the connection.
func speak(t *testing.T, answer func(word string) string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				// Every command is an array of bulk strings: its length, the first
				// word's length, the first word.
				for r, next := bufio.NewReader(c), ""; ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					line = strings.TrimSpace(line)
					if next == "word" {
						text := answer(line)
						if _, err := c.Write([]byte(text)); err != nil || text == "" {
							return
						}
					}
					switch {
					case strings.HasPrefix(line, "*"):
						next = "length"
					case next == "length":
						next = "word"
					default:
						next = ""
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestRights: a user with the rights that the package's documentation names, and no
// others, can count, and Probe finds all that it looks for.
func TestRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "stile", "on", ">sesame", "~test:*", "+bitfield", "+bitfield_ro", "+expireat", "+info", "+time")
	s := open(t, redis.Config{Addrs: []string{server.Addr}, Username: "stile", Password: "sesame", Timeout: patient})
	if _, err := apply(context.Background(), s, hit("acl"), row("acl", read(10)), row("acl", refund(10))); err != nil {
		t.Error(err)
	}
	if err := s.Settle(context.Background()); err != nil {
		t.Error(err)
	}
	server.Do("ACL", "SETUSER", "stile", "-bitfield")
	proves(t, try(t, s, "acl"), true)
}
