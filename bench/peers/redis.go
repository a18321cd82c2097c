package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis"
)

// suffixes of the keys of an hour and a day, for limiters that know one window.
var suffixes = [2]string{":h", ":d"}

var errLimited = errors.New("limited, which no contender should be")

// redisLimit is one that is never met, and such that keys of the contenders that
// keep a time live long enough.
const redisLimit = 1_000_000

// A server is the Redis under test.
type server struct {
	addr, version string
	admin         *goredis.Client
}

func connect(addr string) (*server, error) {
	s := &server{addr: addr, admin: goredis.NewClient(&goredis.Options{Addr: addr})}
	info, err := s.admin.Info(background, "server").Result()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			s.version = v
		}
	}
	return s, nil
}

func (s *server) close() { _ = s.admin.Close() }

// commands counts all calls that the server has executed, those inside scripts
// too, but INFO. A nil server has executed none.
func (s *server) commands() (int64, error) {
	if s == nil {
		return 0, nil
	}
	info, err := s.admin.Info(background, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(line, ":calls=")
		digits, _, ok := strings.Cut(rest, ",")
		switch name = strings.TrimPrefix(name, "cmdstat_"); {
		case !ok, name == "info", name == "hello", strings.HasPrefix(name, "client|"), name == "ping":
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// processor is the time that the server has spent computing, in microseconds.
func (s *server) processor() (float64, error) {
	if s == nil {
		return 0, nil
	}
	info, err := s.admin.Info(background, "cpu").Result()
	if err != nil {
		return 0, err
	}
	total := 0.0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			total += seconds * 1e6
		}
	}
	return total, nil
}

// contenders returns all that count in Redis. A pool of 0 is what users have: every
// client at its defaults, Stile with its own. With a pool all speak through
// go-redis with that many connections, Stile as [overGoRedis].
func (s *server) contenders(pool int) ([]contender, error) {
	err := s.admin.FlushAll(background).Err()
	if err != nil {
		return nil, err
	}
	options := func() *goredis.Options { return &goredis.Options{Addr: s.addr, PoolSize: pool} }
	names := keyNames(1 << 12)

	var ours core.Store = newOverGoRedis(options())
	name := "stile, over go-redis"
	if pool == 0 {
		if ours, err = redis.New(redis.Config{Addrs: []string{s.addr}, Namer: rows.Namer{Site: "peers"}}); err != nil {
			return nil, err
		}
		name = "stile"
	}
	us, err := stile(name, ours, redisLimit)
	if err != nil {
		return nil, err
	}
	list := []contender{us}
	add := func(name string, c *goredis.Client, decide func(key string) error) {
		list = append(list, contender{Name: name, client: func() func(int) error {
			return func(n int) error { return decide(names[n]) }
		}, closeAll: func() { _ = c.Close() }})
	}

	ping := goredis.NewClient(options())
	add("bare PING, go-redis (no limiter)", ping, func(string) error { return ping.Ping(background).Err() })
	if pool == 0 {
		one, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}, ForceSingleClient: true,
			PipelineMultiplex: -1, DisableCache: true, AlwaysRESP2: true, ClientSetInfo: rueidis.DisableClientSetInfo})
		if err != nil {
			return nil, err
		}
		list = append(list, contender{Name: "bare PING, rueidis, 1 connection (no limiter)", client: func() func(int) error {
			return func(int) error { return one.Do(background, one.B().Ping().Build()).Error() }
		}, closeAll: one.Close})
	}

	rateClient := goredis.NewClient(options())
	rate := redis_rate.NewLimiter(rateClient)
	limits := [2]redis_rate.Limit{redis_rate.PerHour(redisLimit), {Rate: redisLimit, Burst: redisLimit, Period: 24 * time.Hour}}
	add("redis_rate", rateClient, func(key string) error {
		for i, suffix := range suffixes {
			r, err := rate.Allow(background, key+suffix, limits[i])
			if err != nil {
				return err
			}
			if r.Allowed == 0 {
				return errLimited
			}
		}
		return nil
	})

	throttledClient := goredis.NewClient(options())
	store, err := throttledstore.NewCtx(throttledClient, "throttled:")
	if err != nil {
		return nil, err
	}
	twice, err := throttledPair(store)
	if err != nil {
		return nil, err
	}
	add("throttled", throttledClient, twice)

	ululeClient := goredis.NewClient(options())
	ululeStore, err := ululestore.NewStore(ululeClient)
	if err != nil {
		return nil, err
	}
	add("ulule/limiter", ululeClient, ululePair(ululeStore, redisLimit))
	return list, nil
}

func throttledPair(store throttled.GCRAStoreCtx) (func(string) error, error) {
	var both [2]*throttled.GCRARateLimiterCtx
	for i, rate := range []throttled.Rate{throttled.PerHour(redisLimit), throttled.PerDay(redisLimit)} {
		var err error
		if both[i], err = throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: rate, MaxBurst: redisLimit}); err != nil {
			return nil, err
		}
	}
	return func(key string) error {
		for i, suffix := range suffixes {
			limited, _, err := both[i].RateLimitCtx(background, key+suffix, 1)
			if err != nil {
				return err
			}
			if limited {
				return errLimited
			}
		}
		return nil
	}, nil
}

func ululePair(store limiter.Store, limit int64) func(string) error {
	both := [2]*limiter.Limiter{
		limiter.New(store, limiter.Rate{Period: time.Hour, Limit: limit}),
		limiter.New(store, limiter.Rate{Period: 24 * time.Hour, Limit: limit}),
	}
	return func(key string) error {
		for i, suffix := range suffixes {
			r, err := both[i].Get(background, key+suffix)
			if err != nil {
				return err
			}
			if r.Reached {
				return errLimited
			}
		}
		return nil
	}
}

func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	}
	return names
}
