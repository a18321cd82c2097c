package reliability

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
)

// TestThaw: a process loses its CPU between two requests, as on a serverless
// platform, and goes on seconds later. A connection that is still good is used as if
// nothing had been; one that the server has closed meanwhile costs no hit; one that
// was dropped without a word costs what was on its way, within the deadline.
func TestThaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		ways   int
		pause  time.Duration
		during func(*redistest.Server, *storetest.FaultProxy)
		conns  int64 // connections in all
	}{
		{"the connection is good, one at a time", 1, 4 * time.Second, nil, 1},
		{"the connection is good, many at once", 16, 4 * time.Second, nil, 1},
		{"the server has hung up, one at a time", 1, time.Second, hangUp, 2},
		{"the server has hung up, many at once", 16, time.Second, hangUp, 2},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := storetest.NewFaultProxy(t, server.Addr)
			const hits = 32
			cmd, out := start(t, job{Store: "redis://" + proxy.Addr(), Policy: policyText(100_000, "open", 20*time.Second), Hits: hits, Ways: c.ways, Pause: true})
			for end := time.Now().Add(30 * time.Second); !counted(server, hits) || !stopped(cmd.Process.Pid); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the worker has not stopped itself (stopped: %v), the server has counted %v", stopped(cmd.Process.Pid), server.Calls())
				}
			}
			if c.during != nil {
				c.during(server, proxy)
			}
			time.Sleep(c.pause) // longer than any timer that the client could have
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			d := finish(t, cmd, out)
			if d != (done{Admitted: 2 * hits}) || !counted(server, 2*hits) {
				t.Errorf("%+v, want %d admitted; the server has counted %v", d, 2*hits, server.Calls())
			}
			if got := proxy.Dials(); got != c.conns {
				t.Errorf("%d connections, want %d", got, c.conns)
			}
		})
	}
}

func hangUp(s *redistest.Server, _ *storetest.FaultProxy) {
	s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

// counted reports whether the server has run at least so many BITFIELD.
func counted(s *redistest.Server, n int64) bool {
	for line := range strings.Lines(s.Do("INFO", "commandstats").(string)) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_bitfield:calls="); ok {
			calls, _, _ := strings.Cut(rest, ",")
			got, _ := strconv.ParseInt(calls, 10, 64)
			return got >= n
		}
	}
	return false
}
