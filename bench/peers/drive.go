package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A sample is one contender in one round.
type sample struct {
	decisions, errors int64
	perSecond         float64
	p50, p99          float64 // microseconds
	allocs, commands  float64
	cpu, serverCPU    float64 // microseconds a decision, errors among them
}

func warm(c contender, keys int) error {
	decide := c.client()
	for n := range keys {
		if err := decide(n); err != nil {
			return err
		}
	}
	return nil
}

// drive calls a contender from so many goroutines and asserts that all keys were
// different ones and that time went on.
func drive(c contender, ways, keys int, d time.Duration) (sample, error) {
	var (
		next, errors atomic.Int64
		mu           sync.Mutex
		took         []time.Duration
		wg           sync.WaitGroup
		first        atomic.Bool // another key than number 0 was asked for
		m0, m1       runtime.MemStats
	)
	runtime.GC()
	runtime.ReadMemStats(&m0)
	cpu0 := processor()
	began := time.Now()
	for range ways {
		decide := c.client()
		wg.Go(func() {
			var mine []time.Duration
			for i := 0; ; i++ {
				if time.Since(began) >= d {
					break
				}
				n := int(uint64(next.Add(1)) * 2654435761 & uint64(keys-1))
				if n != 0 && !first.Load() {
					first.Store(true)
				}
				from := time.Now()
				err := decide(n)
				spent := time.Since(from)
				if err != nil {
					errors.Add(1)
					continue
				}
				mine = append(mine, spent)
			}
			mu.Lock()
			took = append(took, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	seconds := time.Since(began).Seconds()
	cpu1 := processor()
	runtime.ReadMemStats(&m1)
	if len(took) == 0 {
		return sample{}, fmt.Errorf("no decision, %d errors", errors.Load())
	}
	if keys > 1 && !first.Load() || seconds < d.Seconds() {
		return sample{}, fmt.Errorf("keys did not differ or time stood still")
	}
	slices.Sort(took)
	us := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1e3
	}
	n := int64(len(took))
	return sample{
		decisions: n, errors: errors.Load(), perSecond: float64(n) / seconds, p50: us(0.5), p99: us(0.99),
		cpu:    float64((cpu1 - cpu0).Nanoseconds()) / 1e3 / float64(n+errors.Load()),
		allocs: float64(m1.Mallocs-m0.Mallocs) / float64(n+errors.Load()),
	}, nil
}

// processor is the time that this process has spent computing. On a shared machine
// it says more than the clock on the wall.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
