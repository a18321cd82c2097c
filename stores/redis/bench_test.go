package redis_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/storetest"
)

func BenchmarkStore(b *testing.B) {
	h := harness(redistest.Start(b))
	h.BenchKeys = 4096
	storetest.Bench(b, h)
}

// gcra is a limiter script of the usual kind, written for this benchmark: one
// bucket costs EVALSHA, TIME, GET and SET. Hour and day are two calls, as users of
// such libraries make them.
const gcra = `
local t = redis.call("TIME")
local now = t[1] + t[2] / 1000000
local tat = tonumber(redis.call("GET", KEYS[1]) or now)
local next = math.max(tat, now) + ARGV[1]
if next - now > tonumber(ARGV[2]) then return {0, tostring(next - now)} end
redis.call("SET", KEYS[1], next, "EX", math.ceil(next - now))
return {1, tostring(next - now)}`

// BenchmarkRatio compares one decision (hour and day of one client) with a bare
// PING and with a script limiter, over the same client library with its default
// pool, at 1 and 64 ways, on a hot key and on spread keys. Read the ratios.
func BenchmarkRatio(b *testing.B) {
	server := redistest.Start(b)
	plain := goredis.NewClient(&goredis.Options{Addr: server.Addr, Protocol: 2, DisableIdentity: true, PipelinePoolSize: -1})
	defer plain.Close()
	ctx := context.Background()
	script := goredis.NewScript(gcra)
	if err := script.Load(ctx, plain).Err(); err != nil {
		b.Fatal(err)
	}
	s := open(b, redis.Config{Addrs: []string{server.Addr}})

	type contender struct {
		name string
		call func(key uint64) error
	}
	var batches sync.Pool
	batches.New = func() any {
		return &core.Batch{Rows: []core.Row{hit("")}}
	}
	now := time.Now()
	names := make([]string, 4096)
	for i := range names {
		names[i] = fmt.Sprintf("client-%d", i)
	}
	contenders := []contender{
		{"ping", func(uint64) error { return plain.Ping(ctx).Err() }},
		{"stile", func(k uint64) error {
			batch := batches.Get().(*core.Batch)
			defer batches.Put(batch)
			batch.Now = now.Add(time.Duration(k))
			batch.Rows[0].Key.ID = names[k%uint64(len(names))]
			return s.Apply(ctx, batch)
		}},
		{"script", func(k uint64) error {
			name := names[k%uint64(len(names))]
			if err := script.Run(ctx, plain, []string{name + ":h"}, 1e-6, 3600).Err(); err != nil {
				return err
			}
			return script.Run(ctx, plain, []string{name + ":d"}, 1e-6, 86400).Err()
		}},
	}
	for _, shape := range []struct {
		name   string
		stride uint64
	}{{"hot", 0}, {"spread", 2_147_483_647}} {
		for _, ways := range []int{1, 64} {
			for _, c := range contenders {
				b.Run(fmt.Sprintf("%s/%d/%s", shape.name, ways, c.name), func(b *testing.B) {
					load(b, ways, func(i uint64) error { return c.call(i * shape.stride) })
				})
			}
		}
	}
}

// load makes b.N calls from so many goroutines and reports percentiles.
func load(b *testing.B, ways int, call func(i uint64) error) {
	b.ReportAllocs()
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	runtime.GC()
	b.ResetTimer()
	for range ways {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(b.N) {
					return
				}
				start := time.Now()
				if err := call(uint64(i)); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}
