package core

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	denyShards   = 16
	denyPerShard = 4096 // 65,536 refused keys in all
	denyFirst    = time.Second
	denyMost     = time.Minute
)

// A denyMemory remembers refused keys, so that repeats cost no store operation.
// Forgetting one early only costs an operation. It is bounded, and safe for
// concurrent use.
type denyMemory struct {
	seed   maphash.Seed
	count  atomic.Int64
	shards [denyShards]denyShard
}

type denyShard struct {
	mu      sync.Mutex
	entries map[Key]*denial // each is written once, and replaced
}

// A denial is what is known of a refused key. Its end is kept on two clocks and
// ends with the first: the monotonic one is right when the wall clock is set
// back, the wall clock when it is set forward or when the process slept.
type denial struct {
	group   *group        // whose buckets refused
	until   time.Duration // since the limiter's first decision; not after this
	wall    int64         // Unix microseconds; not after this
	retry   int64         // Unix microseconds: when the visitor may come back
	states  []State       // as they were at taken; not to be changed
	binding int
	taken   int64 // Unix microseconds
	backoff time.Duration
}

func newDenyMemory() *denyMemory {
	m := &denyMemory{seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].entries = map[Key]*denial{}
	}
	return m
}

func (m *denyMemory) shard(k Key) *denyShard {
	return &m.shards[maphash.Comparable(m.seed, k)%denyShards]
}

// lookup returns the refusal in force for k and path, if any.
func (m *denyMemory) lookup(k Key, path string, mono time.Duration, wall int64) (*denial, bool) {
	if m.count.Load() == 0 {
		return nil, false
	}
	s := m.shard(k)
	s.mu.Lock()
	d, ok := s.entries[k]
	s.mu.Unlock()
	if !ok || mono >= d.until || wall >= d.wall || !d.group.applies(path) {
		return nil, false
	}
	return d, true
}

// remember keeps a refusal. Own rows are remembered to the earliest time at
// which one of the refusing buckets admits again; rows whose count may hold
// other parties' hits only for a second, doubling while they go on refusing.
func (m *denyMemory) remember(k Key, d denial, own bool, first, mono time.Duration, wall int64) {
	s := m.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.entries[k]
	last := first
	if !own {
		d.backoff = denyFirst
		if had && old.group == d.group && old.backoff > 0 && mono < old.until+2*old.backoff {
			d.backoff = min(2*old.backoff, denyMost)
		}
		last = min(first, d.backoff)
	}
	d.until, d.wall = mono+last, wall+last.Microseconds()
	if !had && len(s.entries) >= denyPerShard {
		s.evict(mono)
		m.count.Add(-1)
	}
	if !had {
		m.count.Add(1)
	}
	s.entries[k] = &d
}

// evict makes room for one entry: an expired one if a short look finds any,
// else the one of those looked at that ends first.
func (s *denyShard) evict(mono time.Duration) {
	var victim Key
	best, looked := time.Duration(1<<62), 0
	for k, d := range s.entries {
		if d.until < best {
			victim, best = k, d.until
		}
		if looked++; best <= mono || looked == 8 {
			break
		}
	}
	delete(s.entries, victim)
}

// forgetAll drops everything.
func (m *denyMemory) forgetAll() {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		m.count.Add(-int64(len(s.entries)))
		clear(s.entries)
		s.mu.Unlock()
	}
}

// forget drops what is remembered of a key.
func (m *denyMemory) forget(k Key) {
	s := m.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries[k]; ok {
		delete(s.entries, k)
		m.count.Add(-1)
	}
}
