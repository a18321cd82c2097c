package core

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// The explorer runs the real charge loop of several concurrent requests in
// every order in which their store operations can interleave: each Apply waits
// for its turn, and the schedule is walked depth first.

// turnStore hands every Apply to a scheduler before it is performed.
type turnStore struct {
	*mapStore
	who  chan int // the caller announces itself ...
	turn []chan struct{}
}

type callerKey struct{}

func (s *turnStore) Apply(ctx context.Context, b *Batch) error {
	me := ctx.Value(callerKey{}).(int)
	s.who <- me
	<-s.turn[me]
	return s.mapStore.Apply(ctx, b)
}

// scenario is a set of concurrent requests and what must hold of every order.
type scenario struct {
	name     string
	buckets  []Bucket
	before   []*Request // made one after another first
	requests []*Request
	min, max int // admitted
	// counted names a key whose counters must hold exactly the admitted hits of
	// it, before and during.
	counted []Key
	after   func(t *testing.T, l *Limiter)
}

// run performs one schedule: choices[i] says which of the waiting requests goes
// next at step i; where it ends, the first goes. It returns how many were
// waiting at each step, so that the caller can walk all schedules.
func (sc *scenario) run(t *testing.T, choices []int) (waiting []int) {
	t.Helper()
	n := len(sc.requests)
	s := &turnStore{mapStore: newMapStore(), who: make(chan int), turn: make([]chan struct{}, n)}
	done := make(chan int)
	decisions := make([]Decision, n)
	plain, err := New(Policy{Buckets: sc.buckets}, Options{Store: s.mapStore, Local: newMapStore()})
	if err != nil {
		t.Fatal(err)
	}
	admittedBefore := map[Key]int64{}
	for _, r := range sc.before {
		if d := plain.Decide(context.Background(), r); d.Outcome == Admit {
			for _, k := range sc.counted {
				if k == d.Key || !k.Kind.Own() {
					admittedBefore[k]++
				}
			}
		}
	}
	l, err := New(Policy{Buckets: sc.buckets}, Options{Store: s, Local: newMapStore()})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range sc.requests {
		s.turn[i] = make(chan struct{})
		go func() {
			decisions[i] = l.Decide(context.WithValue(context.Background(), callerKey{}, i), r)
			done <- i
		}()
	}
	running, ready := n, []int{}
	for {
		for running > len(ready) {
			select {
			case i := <-s.who:
				ready = append(ready, i)
			case <-done:
				running--
			}
		}
		if running == 0 {
			break
		}
		// The order in which goroutines announce themselves is not part of the
		// schedule.
		sortInts(ready)
		pick := 0
		if len(waiting) < len(choices) {
			pick = choices[len(waiting)]
		}
		waiting = append(waiting, len(ready))
		i := ready[pick]
		ready = append(ready[:pick], ready[pick+1:]...)
		s.turn[i] <- struct{}{}
	}
	admitted := 0
	for i := range decisions {
		d := &decisions[i]
		if d.Outcome == Admit {
			admitted++
			for _, k := range sc.counted {
				if k == d.Key || !k.Kind.Own() {
					admittedBefore[k]++
				}
			}
		}
	}
	if admitted < sc.min || admitted > sc.max {
		t.Fatalf("%s, order %v: admitted %d, want %d to %d", sc.name, choices, admitted, sc.min, sc.max)
	}
	for _, k := range sc.counted {
		if got := s.total(k); got != admittedBefore[k]*int64(perKey(sc.buckets, k.Kind)) {
			t.Fatalf("%s, order %v: %v holds %d, admitted were %d", sc.name, choices, k, got, admittedBefore[k])
		}
	}
	if sc.after != nil {
		l.store = s.mapStore
		sc.after(t, l)
	}
	return waiting
}

func perKey(buckets []Bucket, k Kind) (n int) {
	for _, b := range buckets {
		if b.Key == k {
			n++
		}
	}
	return n
}

func sortInts(s []int) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}

// explore walks all schedules, or the first most of them.
func (sc *scenario) explore(t *testing.T, most int) {
	t.Helper()
	var choices []int
	for n := 1; ; n++ {
		waiting := sc.run(t, choices)
		for len(choices) < len(waiting) {
			choices = append(choices, 0)
		}
		choices = choices[:len(waiting)]
		i := len(choices) - 1
		for i >= 0 && choices[i]+1 >= waiting[i] {
			i--
		}
		if i < 0 {
			t.Logf("%s: all %d orders", sc.name, n)
			return
		}
		if n == most {
			t.Fatalf("%s: more than %d orders; make the scenario smaller", sc.name, most)
		}
		choices[i]++
		choices = choices[:i+1]
	}
}

func TestInterleavings(t *testing.T) {
	t.Parallel()
	same := func(n int, addr string) (out []*Request) {
		for range n {
			out = append(out, page(addr, noon))
		}
		return out
	}
	network := Bucket{Name: "net", Key: rows.Network, Algorithm: FixedWindow, Window: day}
	limited := func(b Bucket, n int64) Bucket { b.Limit = n; return b }
	netKey := Key{Kind: rows.Network, Net: addressNetwork("203.0.113.9")}
	search := Bucket{Name: "search", Key: rows.Address, Algorithm: FixedWindow, Limit: 1, Window: time.Hour, Paths: mustCompile([]string{"/search/**"})}
	searches := func(addr string) *Request { r := page(addr, noon); r.Path = "/search/x"; return r }
	for _, sc := range []scenario{
		{
			name: "one row, hour and day", buckets: []Bucket{hourBucket(5), dayBucket(3)},
			requests: same(5, "203.0.113.9"), min: 3, max: 3,
			counted: []Key{addressKey("203.0.113.9")},
		},
		{
			name: "one client, outer room 1", buckets: []Bucket{dayBucket(10), limited(network, 1)},
			requests: same(3, "203.0.113.9"), min: 1, max: 1,
			counted: []Key{addressKey("203.0.113.9"), netKey},
		},
		{
			name: "a noisy address and its neighbour, outer room 3", buckets: []Bucket{dayBucket(2), limited(network, 3)},
			before:   same(2, "203.0.113.9"),
			requests: append(same(2, "203.0.113.9"), page("203.0.113.10", noon)),
			min:      1, max: 1, // the neighbour, always
			counted: []Key{addressKey("203.0.113.10"), netKey},
			after: func(t *testing.T, l *Limiter) {
				if d := l.Decide(context.Background(), page("203.0.113.11", noon)); d.Outcome != Refuse {
					t.Fatal("the network is full, and a third address was admitted")
				}
			},
		},
		{
			name: "the noisy address never makes the network look full", buckets: []Bucket{dayBucket(1), limited(network, 2)},
			before:   same(1, "203.0.113.9"),
			requests: same(3, "203.0.113.9"), min: 0, max: 0,
			counted: []Key{netKey},
			after: func(t *testing.T, l *Limiter) {
				if d := l.Decide(context.Background(), page("203.0.113.10", noon)); d.Outcome != Admit {
					t.Fatalf("a neighbour is refused: %s, %+v", d.Reason, d.States)
				}
			},
		},
		{
			name: "a filtered bucket does not spend the wide one", buckets: []Bucket{dayBucket(3), search},
			requests: []*Request{searches("203.0.113.9"), searches("203.0.113.9"), page("203.0.113.9", noon), page("203.0.113.9", noon)},
			min:      3, max: 3,
			counted: nil,
		},
		{
			name: "a clock and a day", buckets: []Bucket{{Name: "pace", Key: rows.Address, Algorithm: GCRA, Limit: 60, Window: time.Hour, Burst: 2}, dayBucket(3)},
			requests: same(4, "203.0.113.9"), min: 2, max: 2,
			after: func(t *testing.T, l *Limiter) {
				if d := l.Decide(context.Background(), page("203.0.113.9", noon.Add(5*time.Minute))); d.Outcome != Admit {
					t.Fatalf("the day has room for one, and the pace for more: %s %+v", d.Reason, d.States)
				}
				if d := l.Decide(context.Background(), page("203.0.113.9", noon.Add(10*time.Minute))); d.Outcome != Refuse {
					t.Fatal("a fourth hit of the day was admitted")
				}
			},
		},
	} {
		t.Run(sc.name, func(t *testing.T) { sc.explore(t, 400_000) })
	}
}

// TestExplorerSeesPhantoms shows that the explorer can fail: a loop that charges
// independent rows in one trip admits none of two where one has room.
func TestExplorerSeesPhantoms(t *testing.T) {
	t.Parallel()
	s := newMapStore()
	one := func() (full bool, undo func()) {
		b := &Batch{Rows: []Row{
			{Key: Key{Kind: rows.User, ID: "own"}, Cells: []Cell{{Add: 1}}},
			{Key: Key{Kind: rows.Global}, Cells: []Cell{{Add: 1}}},
		}}
		_ = s.Apply(context.Background(), b)
		full = b.Rows[0].Cells[0].Value > 1 || b.Rows[1].Cells[0].Value > 1
		return full, func() {
			for i := range b.Rows {
				b.Rows[i].Cells[0].Add = -1
			}
			_ = s.Apply(context.Background(), b)
		}
	}
	// A row that is full for another reason makes the first hit a phantom.
	_ = s.Apply(context.Background(), &Batch{Rows: []Row{{Key: Key{Kind: rows.User, ID: "own"}, Cells: []Cell{{Add: 1}}}}})
	first, undo := one()
	_ = s.Apply(context.Background(), &Batch{Rows: []Row{{Key: Key{Kind: rows.User, ID: "own"}, Cells: []Cell{{Add: -2}}}}})
	second, _ := one()
	undo()
	if !first || !second {
		t.Fatal(fmt.Sprint("expected both to be refused by the other's phantom: ", first, second))
	}
}

func addressNetwork(s string) (p prefix) {
	c := (&ClientSource{}).client(mustAddr(s), ClientOK, 0)
	return c.Network
}
