package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/wrap"
)

// Config says what to measure. URL and Registry are required; other zero values
// mean the defaults.
type Config struct {
	URL      string
	Registry *open.Registry
	Getenv   func(string) string // for what store URLs leave to the environment

	Duration    time.Duration // of each load; 0 = 2 s
	Navigations int           // in each state; 0 = 256
	Keys        int           // spread keys of a load, a power of two; 0 = 4096
	Ways        []int         // empty = 1 and 64
	Server      string        // what answers, if it does not say itself: "Memorystore, Redis 7.2, us-central1"

	Now func() time.Time // of the result's date; nil = time.Now
}

// callTimeout bounds a trip of the measurement. It is longer than a visitor would
// wait: a slow answer is to be measured, not cut off.
const callTimeout = 30 * time.Second

// Measure measures one store. On a store that is paid for by operation it costs
// some 2,000 operations for the states, 4,096 for the spread keys and as many as
// the store can do for the loads. Records live under a site name of their own and
// expire by themselves within three days. An error means that no result can be
// trusted: the URL is wrong, the store failed, or a count at the end was not what
// had been charged.
func Measure(ctx context.Context, c Config) (*Result, error) {
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Duration <= 0 {
		c.Duration = 2 * time.Second
	}
	if c.Navigations <= 0 {
		c.Navigations = 256
	}
	if c.Keys <= 0 {
		c.Keys = 4096
	}
	if c.Keys&(c.Keys-1) != 0 || c.Keys > maxClients || c.Navigations > maxClients {
		return nil, fmt.Errorf("bench: %d keys: want a power of two up to %d", c.Keys, maxClients)
	}
	if len(c.Ways) == 0 {
		c.Ways = []int{1, 64}
	}
	if err := open.Validate(c.URL, c.Registry, open.Options{Getenv: c.Getenv}); err != nil {
		return nil, err
	}
	direct := target{c.URL, c.Getenv}
	where, err := locate(direct)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Schema: Schema, Date: c.Now().UTC().Truncate(time.Second), Stile: version(),
		Machine: Machine{Cores: runtime.GOMAXPROCS(0), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH},
		Store:   Server{Name: where.name, Server: c.Server, Kind: where.kind, Loopback: where.loopback(), Unit: where.unit},
		Policy:  policyText,
	}
	rig, err := c.open(ctx, direct)
	if err != nil {
		return nil, err
	}
	defer rig.close()
	if r.States, err = rig.states(ctx, c.Navigations); err != nil {
		return nil, err
	}
	if err := c.bytes(ctx, &where, r); err != nil {
		return nil, err
	}
	if r.Floor, err = where.floor(ctx, direct, rig, r, 8*c.Navigations); err != nil {
		r.Notes = append(r.Notes, "the floor could not be measured: "+err.Error())
	}
	if r.Store.Server == "" {
		r.Store.Server = "unknown"
		if where.kind == KindInProcess {
			r.Store.Server = "this process"
		}
	}
	for _, keys := range []int{1, c.Keys} {
		for _, ways := range c.Ways {
			l, err := rig.load(ctx, ways, keys, c.Duration)
			if err != nil {
				return nil, err
			}
			r.Loads = append(r.Loads, l)
		}
	}
	return r, nil
}

// bytes plays the states again through a forwarder and adds what it saw. That the
// operations are the same again is asserted: they are what money is computed from.
func (c *Config) bytes(ctx context.Context, where *place, r *Result) error {
	if where.addr == "" || where.via == nil {
		r.Notes = append(r.Notes, "bytes are unknown: "+where.why)
		return nil
	}
	f, err := forward(where.addr)
	if err != nil {
		return err
	}
	defer f.close()
	rig, err := c.open(ctx, where.via(f.addr()))
	if err != nil {
		return err
	}
	defer rig.close()
	rig.wire = f
	again, err := rig.states(ctx, c.Navigations)
	if err != nil {
		return err
	}
	for i := range again {
		a, s := &again[i], &r.States[i]
		// A coalesced state mixes first hits of networks with others, so a needless
		// repair of an expiry, which the store allows itself, may be among them.
		same := a.Writes == s.Writes && a.Reads == s.Reads && a.Expiries == s.Expiries
		if off := abs(a.Operations() - s.Operations()); !same && (!strings.HasPrefix(s.Name, "outer-") || 50*off > s.Operations()) {
			return fmt.Errorf("bench: state %s cost %d operations, and %d when it was played again", s.Name, s.Operations(), a.Operations())
		}
		s.BytesOut, s.BytesIn = a.BytesOut, a.BytesIn
	}
	return nil
}

func abs(n int64) int64 { return max(n, -n) }

// A rig is an open store with its wrappers, under a site name of its own.
type rig struct {
	driver core.Store
	stack  *wrap.Stacked
	local  *memory.Store
	base   time.Time  // the first instant of the calendar that is played
	wire   *forwarder // nil = bytes are not counted
}

func (c *Config) open(ctx context.Context, t target) (*rig, error) {
	now := time.Now().UTC() // the server's own clock expires records
	site := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	driver, err := open.Store(ctx, t.url, c.Registry, open.Options{
		Namer: rows.Namer{Site: site}, Timeout: callTimeout, Getenv: t.getenv,
	})
	if driver == nil {
		return nil, err
	}
	if errors.Is(err, core.ErrNotApplied) { // other errors are findings; the measurement will tell
		return nil, errors.Join(err, driver.Close())
	}
	return &rig{
		driver: driver,
		// The breaker must not decide what a slow store is worth.
		stack: wrap.Stack(driver, wrap.GuardConfig{Timeout: callTimeout, Failures: 1 << 30}, wrap.SpendConfig{}),
		local: memory.New(memory.Config{MaxKeys: 1024}),
		// Midday of tomorrow: no record may expire while it is measured.
		base: now.Truncate(24 * time.Hour).Add(36 * time.Hour),
	}, nil
}

func (g *rig) close() { _ = errors.Join(g.stack.Close(), g.local.Close()) }

// counts are what a store says it has sent.
type counts struct{ writes, reads, expiries, trips int64 }

// count reads the store's own counters. A store that has none is taken at the
// meter's word; one in memory sends nothing.
func (g *rig) count() counts {
	m := g.stack.Meter.Read()
	switch s := g.driver.(type) {
	case interface{ Operations() (w, r, t int64) }:
		w, r, t := s.Operations()
		return counts{writes: w, reads: r, trips: t}
	case interface {
		Commands() int64
		Trips() int64
	}:
		return counts{writes: m.Writes, reads: m.Reads, expiries: s.Commands() - m.Writes - m.Reads, trips: s.Trips()}
	}
	if f, ok := g.driver.(core.Featurer); ok && f.Features().Name == "memory" {
		return counts{}
	}
	return counts{writes: m.Writes, reads: m.Reads, trips: m.Trips}
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "unknown"
}
