// Command peers measures Stile beside other rate limiters, in one run on one
// machine: on the same Redis, and in memory. A decision is an hour and a day of one
// client. It is a module of its own, so that nobody who uses Stile downloads them.
//
//	redis-server --port 6390 --save "" --appendonly no &
//	cd bench/peers && go run . -redis 127.0.0.1:6390 -rounds 9 -time 400ms
//
// Rounds are interleaved: each measures every contender once, in a new order, and
// ratios are taken within a round. Absolute figures say little on a shared machine.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"
)

func main() {
	redisAddr := flag.String("redis", "", "host:port of a Redis to measure on; empty = memory only")
	rounds := flag.Int("rounds", 7, "interleaved rounds")
	each := flag.Duration("time", 300*time.Millisecond, "of each contender in a round")
	out := flag.String("out", "", "write the table as JSON into this file")
	memoryKeys := flag.Int("memory-keys", 1<<20, "spread keys in memory, a power of two")
	flag.Parse()
	if err := measure(*redisAddr, *rounds, *each, *memoryKeys, *out); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// A contender decides about client n. Ours is what ratios are taken over.
type contender struct {
	Name     string
	Ours     bool
	client   func() func(n int) error
	closeAll func()
}

// A Table is one shape of load over all contenders.
type Table struct {
	Title string `json:"title"`
	Ways  int    `json:"ways"`
	Keys  int    `json:"keys"`
	Rows  []Row  `json:"rows"`
}

// A Row is the medians of one contender over the rounds.
type Row struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"decisions_per_second"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	ErrorRate float64 `json:"errors_share"`
	Allocs    float64 `json:"allocs_per_decision"`
	Commands  float64 `json:"server_commands_per_decision,omitempty"` // those inside scripts too
	CPU       float64 `json:"client_cpu_us_per_decision"`
	ServerCPU float64 `json:"server_cpu_us_per_decision,omitempty"`
	// Ratios of ours to this one, medians of the ratios within a round.
	Faster float64 `json:"ours_is_faster_by"`
	Slower float64 `json:"our_p50_over_its"`
	Dearer float64 `json:"our_cpu_over_its"` // client and server together
}

// A Report is one run.
type Report struct {
	Date   string  `json:"date"`
	Cores  int     `json:"cores"`
	Go     string  `json:"go"`
	Redis  string  `json:"redis,omitempty"`
	Rounds int     `json:"rounds"`
	Each   string  `json:"time_each"`
	Tables []Table `json:"tables"`
}

func measure(addr string, rounds int, each time.Duration, memoryKeys int, out string) error {
	report := Report{Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.GOMAXPROCS(0), Go: runtime.Version(), Rounds: rounds, Each: each.String()}
	type shape struct {
		title string
		ways  int
		keys  int
		list  func() ([]contender, error)
		redis *server
	}
	var shapes []shape
	if addr != "" {
		s, err := connect(addr)
		if err != nil {
			return err
		}
		defer s.close()
		report.Redis = s.version
		for _, keys := range []int{4096, 1} {
			for _, ways := range []int{64, 1} {
				for _, pool := range []int{0, 20} {
					title := "Redis, each with its own client's defaults"
					if pool > 0 {
						title = fmt.Sprintf("Redis, all over go-redis with %d connections", pool)
					}
					shapes = append(shapes, shape{title, ways, keys, func() ([]contender, error) { return s.contenders(pool) }, s})
				}
			}
		}
	}
	for _, keys := range []int{memoryKeys, 1} {
		for _, ways := range []int{64, 1} {
			shapes = append(shapes, shape{"memory", ways, keys, func() ([]contender, error) { return inMemory(memoryKeys) }, nil})
		}
	}
	for _, s := range shapes {
		list, err := s.list()
		if err != nil {
			return err
		}
		t, err := play(list, s.redis, s.ways, s.keys, rounds, each)
		for _, c := range list {
			if c.closeAll != nil {
				c.closeAll()
			}
		}
		if err != nil {
			return err
		}
		t.Title = s.title
		print(t)
		report.Tables = append(report.Tables, t)
	}
	if out == "" {
		return nil
	}
	data, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(data, '\n'), 0o644)
}

// play measures every contender once a round, in a new order each time.
func play(list []contender, redis *server, ways, keys, rounds int, each time.Duration) (Table, error) {
	t := Table{Ways: ways, Keys: keys}
	runs := make([][]sample, len(list))
	for i, c := range list { // every key is there before anything is timed
		if err := warm(c, keys); err != nil {
			return t, fmt.Errorf("%s: %w", c.Name, err)
		}
		runs[i] = nil
	}
	for range rounds {
		for _, i := range rand.Perm(len(list)) {
			before, err := redis.commands()
			if err != nil {
				return t, err
			}
			busy, err := redis.processor()
			if err != nil {
				return t, err
			}
			s, err := drive(list[i], ways, keys, each)
			if err != nil {
				return t, fmt.Errorf("%s: %w", list[i].Name, err)
			}
			after, err := redis.commands()
			if err != nil {
				return t, err
			}
			still, err := redis.processor()
			if err != nil {
				return t, err
			}
			s.serverCPU = (still - busy) / float64(s.decisions+s.errors)
			s.commands = float64(after-before) / float64(s.decisions+s.errors)
			runs[i] = append(runs[i], s)
		}
	}
	ours := slices.IndexFunc(list, func(c contender) bool { return c.Ours })
	for i, c := range list {
		median := func(f func(sample) float64) float64 {
			var all []float64
			for _, s := range runs[i] {
				all = append(all, f(s))
			}
			return medianOf(all)
		}
		r := Row{
			Name:      c.Name,
			PerSecond: median(func(s sample) float64 { return s.perSecond }),
			P50:       median(func(s sample) float64 { return s.p50 }),
			P99:       median(func(s sample) float64 { return s.p99 }),
			ErrorRate: median(func(s sample) float64 { return float64(s.errors) / float64(s.decisions+s.errors) }),
			Allocs:    median(func(s sample) float64 { return s.allocs }),
			CPU:       median(func(s sample) float64 { return s.cpu }),
			ServerCPU: median(func(s sample) float64 { return s.serverCPU }),
			Commands:  median(func(s sample) float64 { return s.commands }),
		}
		var faster, slower, dearer []float64
		for k := range runs[i] {
			faster = append(faster, runs[ours][k].perSecond/runs[i][k].perSecond)
			slower = append(slower, runs[ours][k].p50/runs[i][k].p50)
			us, it := runs[ours][k], runs[i][k]
			dearer = append(dearer, (us.cpu+us.serverCPU)/(it.cpu+it.serverCPU))
		}
		r.Faster, r.Slower, r.Dearer = medianOf(faster), medianOf(slower), medianOf(dearer)
		t.Rows = append(t.Rows, r)
	}
	slices.SortStableFunc(t.Rows, func(a, b Row) int { return cmp.Compare(b.PerSecond, a.PerSecond) })
	return t, nil
}

func medianOf(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	m := list[len(list)/2]
	return float64(int64(m*1000+0.5)) / 1000
}

func print(t Table) {
	fmt.Printf("\n%s; %d ways, %d keys\n", t.Title, t.Ways, t.Keys)
	fmt.Println("| limiter | decisions/s | p50 us | p99 us | errors | commands | allocs | client CPU us | server CPU us | ours faster by | our p50 / its | our CPU / its |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range t.Rows {
		fmt.Printf("| %s | %.0f | %.1f | %.0f | %.1f %% | %.2f | %.0f | %.1f | %.1f | %.2f | %.2f | %.2f |\n",
			r.Name, r.PerSecond, r.P50, r.P99, 100*r.ErrorRate, r.Commands, r.Allocs, r.CPU, r.ServerCPU, r.Faster, r.Slower, r.Dearer)
	}
}

var background = context.Background()
