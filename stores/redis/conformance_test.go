package redis_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
)

// patient is the bound of calls without a deadline: many cases run at once, and
// a loaded machine under the race detector may be slow.
const patient = 20 * time.Second

var namer = rows.Namer{Site: "test"}

// open opens a store and fails the test on anything but a warning.
func open(tb testing.TB, c redis.Config) *redis.Store {
	tb.Helper()
	c.Namer = namer
	s, err := redis.Open(context.Background(), c)
	if err != nil && !redis.IsWarning(err) {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// probes are the suite's looks at the server itself.
func probes(h storetest.Harness, client goredis.UniversalClient) storetest.Harness {
	// A refund of a vanished record leaves a record of zeros until its epoch ends
	// (package bitfield says why). It holds nothing, its place 0 included, and
	// is taken for absent here, as every instance takes it.
	h.Exists = func(_ core.Store, r *core.Row) (bool, error) {
		v, err := client.Do(context.Background(), "BITFIELD_RO", namer.Name(r), "GET", "u63", "#0").Int64Slice()
		return err == nil && v[0] != 0, err
	}
	h.Expiry = func(_ core.Store, r *core.Row) (time.Time, bool) {
		d, err := client.ExpireTime(context.Background(), namer.Name(r)).Result()
		return time.Unix(int64(d/time.Second), 0), err == nil && d > 0
	}
	return h
}

func harness(server *redistest.Server) storetest.Harness {
	return probes(storetest.Harness{
		Open: func(tb testing.TB) core.Store {
			return open(tb, redis.Config{Addrs: []string{server.Addr}, Timeout: patient})
		},
		Backend: server.Addr,
		Through: func(tb testing.TB, addr string) core.Store { return open(tb, redis.Config{Addrs: []string{addr}}) },
	}, server.Client())
}

func TestConformance(t *testing.T) {
	storetest.Run(t, harness(redistest.Start(t)))
}

func TestConformanceCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	storetest.Run(t, probes(storetest.Harness{
		Open: func(tb testing.TB) core.Store {
			return open(tb, redis.Config{Addrs: cluster.Addrs()[:1], Cluster: true, Timeout: patient})
		},
	}, cluster.Client(t)))
}
