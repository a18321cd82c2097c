package memory

import (
	"math"
	"sync"
	"sync/atomic"
)

// A shard is one part of the table under one lock: records in chunks, and an
// open-addressing index of 4-byte entries to them. Index and chunks hold no
// pointers to records, so nothing in them is traced by the garbage collector.
type shard struct {
	mu     sync.Mutex
	store  *Store
	index  []uint32   // 0 = empty, else tag<<refBits | place+1; linear probing
	chunks [][]record // all of chunkLen, but the last, which grows to it
	used   int        // places handed out, free ones among them
	free   uint32     // place+1 of the first free one; 0 = none
	count  int        // records

	byClass [classes]int // records of each class
	hand    int          // where the search for a place goes on
	broom   int          // where the sweep for records that are over goes on
	last    int64        // Unix seconds of the batch before, see horizon

	spill      [][]spillCell
	spillFree  []uint32
	spillCells int // capacity of all spilled lists

	evictedLive, evictedBusy, recycled uint64

	_ [64]byte // keeps two shards' locks off one cache line
}

const (
	chunkLen    = 512 // records of a chunk, 24 KiB
	refBits     = 22
	maxRecords  = 1<<refBits - 1 // in one shard
	sweepPerNew = 4              // records that each new one looks at: the table is clean after count/4 of them
)

// horizon returns the time before which an Until means that nobody will ask
// again: the grace before the batch's time, or before that of the shard's batch
// before if that is earlier. So a clock set back by less than the grace finds
// everything in place, and one stray batch from the future forgets nothing.
func (s *shard) horizon(now int64) int64 {
	believed := min(now, s.last)
	s.last = now
	if believed < math.MinInt64+grace {
		return math.MinInt64
	}
	return believed - grace
}

func (s *shard) at(place int) *record { return &s.chunks[place/chunkLen][place%chunkLen] }

func tagOf(fp fingerprint) uint32 { return uint32(fp[0] >> (64 - (32 - refBits))) }

// find returns the place of fp's record, or -1.
func (s *shard) find(fp fingerprint) int {
	if s.count == 0 {
		return -1
	}
	mask, tag := uint64(len(s.index)-1), tagOf(fp)
	for i := fp[0] & mask; ; i = (i + 1) & mask {
		e := s.index[i]
		if e == 0 {
			return -1
		}
		if e>>refBits == tag {
			place := int(e&maxRecords) - 1
			if s.at(place).fp == fp {
				return place
			}
		}
	}
}

// link enters a place into the index, which must have room.
func (s *shard) link(fp fingerprint, place int) {
	mask := uint64(len(s.index) - 1)
	i := fp[0] & mask
	for s.index[i] != 0 {
		i = (i + 1) & mask
	}
	s.index[i] = tagOf(fp)<<refBits | uint32(place+1)
}

// unlink takes a place out of the index, moving later entries of its run up, so
// that runs stay short however many records have come and gone.
func (s *shard) unlink(fp fingerprint, place int) {
	mask := uint64(len(s.index) - 1)
	gap := fp[0] & mask
	for want := tagOf(fp)<<refBits | uint32(place+1); s.index[gap] != want; {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; s.index[i] != 0; i = (i + 1) & mask {
		home := s.at(int(s.index[i]&maxRecords) - 1).fp[0] & mask
		if (i-home)&mask >= (i-gap)&mask {
			s.index[gap] = s.index[i]
			gap = i
		}
	}
	s.index[gap] = 0
}

// reindex builds an index of size entries, a power of two.
func (s *shard) reindex(size int) {
	s.index = make([]uint32, size)
	for place := range s.used {
		if r := s.at(place); r.flags&flagUsed != 0 {
			s.link(r.fp, place)
		}
	}
}

// create makes an empty record for fp, which must not exist, and returns it.
func (s *shard) create(fp fingerprint, horizon int64) *record {
	s.sweep(horizon)
	place, second := -1, false
	switch {
	case s.count < maxRecords && s.store.records.reserve():
		place = s.place()
		// A place ahead of the hand would be looked at too soon.
		second = s.evictedLive > 0
	case s.count > 0:
		place = s.displace(horizon)
	default: // the table is full and this shard has nothing to give
		s.store.records.Add(1)
		place = s.place()
	}
	s.count++
	if s.count*4 > len(s.index)*3 {
		s.reindex(max(16, 2*len(s.index)))
	}
	r := s.at(place)
	*r = record{fp: fp, flags: flagUsed}
	if second {
		r.flags |= flagSecond
	}
	s.byClass[0]++
	s.link(fp, place)
	return r
}

// place returns a place that holds no record.
func (s *shard) place() int {
	if s.free != 0 {
		place := int(s.free) - 1
		s.free = s.at(place).words[0]
		return place
	}
	place := s.used
	s.used++
	at := place / chunkLen
	if at == len(s.chunks) {
		s.chunks = append(s.chunks, nil)
	}
	if c := s.chunks[at]; place%chunkLen == len(c) {
		// The last chunk grows in small steps: a small table stays small, and
		// 64 of them waste little.
		grown := make([]record, min(max(2*len(c), 8), len(c)+64, chunkLen))
		copy(grown, c)
		s.chunks[at] = grown
	}
	return place
}

// touch counts an application that may create towards r's class.
func (s *shard) touch(r *record) {
	before := r.class()
	if r.hits < math.MaxUint8 {
		r.hits++
	}
	if after := r.class(); after != before {
		s.byClass[before]--
		s.byClass[after]++
	} else {
		r.flags |= flagSecond
	}
}

// detach takes the record out of the index and the counts. Its place is the
// caller's to use.
func (s *shard) detach(place int) {
	r := s.at(place)
	s.unlink(r.fp, place)
	s.dropSpill(r)
	s.byClass[r.class()]--
	s.count--
	r.flags = 0
}

// recycle frees a record whose time is over.
func (s *shard) recycle(place int) {
	s.detach(place)
	s.at(place).words[0] = s.free
	s.free = uint32(place + 1)
	s.recycled++
	s.store.records.Add(-1)
}

// counter of records over all shards, bounded by limit.
type bounded struct {
	atomic.Int64
	limit int64
}

// reserve adds one unless the bound is reached.
func (b *bounded) reserve() bool {
	for {
		n := b.Load()
		if n >= b.limit {
			return false
		}
		if b.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
