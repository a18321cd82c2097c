package storetest

import (
	"cmp"
	"context"
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// Bench runs the benchmarks that every store shares: one counted navigation,
// hour + previous hour + day on one address, on one hot key and over
// Harness.BenchKeys keys that all exist beforehand, serial and parallel. It
// asserts that what it measures happened: the counts at the end are exact.
// BenchKeys is rounded up to a power of two.
func Bench(b *testing.B, h Harness) {
	keys := 1
	for want := cmp.Or(max(h.BenchKeys, 0), 1<<16); keys < want; {
		keys *= 2
	}
	for _, shape := range []struct {
		name string
		keys int
	}{{"hot", 1}, {"spread", keys}} {
		b.Run(shape.name, func(b *testing.B) {
			t := newTraffic(b, h, shape.keys)
			b.Run("serial", t.serial)
			b.Run("parallel", t.parallel)
		})
	}
}

// traffic is a stream of hits over n keys in a scattered order.
type traffic struct {
	e    *env
	n    uint64
	hits atomic.Uint64 // drawn so far, over all runs
}

func newTraffic(b *testing.B, h Harness, n int) *traffic {
	t := &traffic{e: newEnv(b, h), n: uint64(n)}
	seen := make(map[netip.Prefix]struct{}, n)
	hit := t.newHit()
	for range n {
		hit.next(t)
		seen[hit.batch.Rows[0].Key.Net] = struct{}{}
		if err := t.e.st.Apply(context.Background(), hit.batch); err != nil {
			b.Fatal(err)
		}
	}
	if len(seen) != n {
		b.Fatalf("%d distinct keys, want %d", len(seen), n)
	}
	return t
}

// hit is one caller's reusable batch.
type hit struct {
	batch *core.Batch
	cells [3]core.Cell
}

func (t *traffic) newHit() *hit {
	h := &hit{}
	r := t.e.row("", count(9), read(8), count(24))
	copy(h.cells[:], r.Cells)
	r.Cells = h.cells[:]
	h.batch = t.e.batch(r)
	return h
}

// stride keeps keys that follow one another in time apart in memory. It is odd,
// so that multiples of it visit every number below a power of two.
const stride = 2_147_483_647

// next turns h into the stream's next hit. The stream visits all n keys before
// it returns to one.
func (h *hit) next(t *traffic) {
	i := t.hits.Add(1) - 1
	r := &h.batch.Rows[0]
	r.Key = benchKey(i * stride & (t.n - 1))
	h.batch.Now = t.e.now.Add(time.Duration(i) * time.Microsecond) // time moves
}

func benchKey(i uint64) core.Key {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 10<<24|uint32(i))
	return core.Key{Kind: rows.Address, Net: netip.PrefixFrom(netip.AddrFrom4(a), 32)}
}

func (t *traffic) serial(b *testing.B) {
	hit := t.newHit()
	b.ReportAllocs()
	for b.Loop() {
		hit.next(t)
		if err := t.e.st.Apply(context.Background(), hit.batch); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	t.check(b)
}

func (t *traffic) parallel(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		hit := t.newHit()
		for pb.Next() {
			hit.next(t)
			if err := t.e.st.Apply(context.Background(), hit.batch); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	t.check(b)
}

// check reads keys back: each has exactly the hits that the stream gave it.
func (t *traffic) check(b *testing.B) {
	b.Helper()
	total := t.hits.Load()
	for j := range min(t.n, 1000) {
		want := int64(total / t.n)
		if j < total%t.n {
			want++ // visited in the unfinished turn as well
		}
		r := t.e.row("", read(9))
		r.Key = benchKey(j * stride & (t.n - 1))
		batch := t.e.batch(r)
		if err := t.e.st.Apply(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
		if got := batch.Rows[0].Cells[0].Value; got != want || got == 0 {
			b.Fatalf("key %d: %d hits in the store, want %d of %d", j, got, want, total)
		}
	}
}
