package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	throttledmem "github.com/throttled/throttled/v2/store/memstore"
	ululemem "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/stilehq/stile/stores/memory"
)

// memoryLimit is never met: a day of a hot key at full speed.
const memoryLimit = 1 << 40

// inMemory returns all that count in memory, two limiters each where one knows
// only one window.
func inMemory(keys int) ([]contender, error) {
	names := keyNames(keys)
	us, err := stile("stile", memory.New(memory.Config{MaxKeys: 2 * keys}), memoryLimit)
	if err != nil {
		return nil, err
	}
	list := []contender{us}
	add := func(name string, decide func(key string) error, done func()) {
		list = append(list, contender{Name: name, client: func() func(int) error {
			return func(n int) error { return decide(names[n]) }
		}, closeAll: done})
	}

	var pairs sync.Map
	add("x/time/rate in a sync.Map", func(key string) error {
		v, ok := pairs.Load(key)
		if !ok {
			v, _ = pairs.LoadOrStore(key, &[2]*rate.Limiter{rate.NewLimiter(1e9, 1<<30), rate.NewLimiter(1e9, 1<<30)})
		}
		both := v.(*[2]*rate.Limiter)
		if !both[0].Allow() || !both[1].Allow() {
			return errLimited
		}
		return nil
	}, nil)

	var stores [2]limiter.Store
	for i, d := range []time.Duration{time.Hour, 24 * time.Hour} {
		if stores[i], err = memorystore.New(&memorystore.Config{Tokens: memoryLimit, Interval: d}); err != nil {
			return nil, err
		}
	}
	add("go-limiter", func(key string) error {
		for _, s := range stores {
			if _, _, _, ok, err := s.Take(background, key); err != nil || !ok {
				return errLimited
			}
		}
		return nil
	}, func() { _, _ = stores[0].Close(background), stores[1].Close(background) })

	throttledStore, err := throttledmem.NewCtx(0)
	if err != nil {
		return nil, err
	}
	twice, err := throttledPair(throttledStore)
	if err != nil {
		return nil, err
	}
	add("throttled", twice, nil)
	add("ulule/limiter", ululePair(ululemem.NewStore(), memoryLimit), nil)

	hour, day := httprate.NewRateLimiter(1<<30, time.Hour), httprate.NewRateLimiter(1<<30, 24*time.Hour)
	request, err := http.NewRequest(http.MethodGet, "http://x.example/articles/1", nil)
	if err != nil {
		return nil, err
	}
	list = append(list, contender{Name: "httprate", client: func() func(int) error {
		w := blank{}
		return func(n int) error {
			if hour.OnLimit(w, request, names[n]) || day.OnLimit(w, request, names[n]) {
				return errLimited
			}
			return nil
		}
	}})
	return list, nil
}

// blank is a response that nobody reads.
type blank map[string][]string

func (b blank) Header() http.Header         { return http.Header(b) }
func (b blank) Write(p []byte) (int, error) { return len(p), nil }
func (b blank) WriteHeader(int)             {}

var _ http.ResponseWriter = blank(nil)
