package memory

import (
	"sync"
	"testing"
	"time"
)

var noon = time.Unix(1_800_014_400, 0).UTC() // 2027-01-15 12:00:00

// verify checks what must hold between any two calls: index, chunks, free list,
// classes, spill and the bound agree with one another.
func verify(t *testing.T, s *Store) {
	t.Helper()
	total := 0
	for n := range s.shards {
		sh := &s.shards[n]
		sh.mu.Lock()
		used, spilled, cells := 0, 0, 0
		var byClass [classes]int
		for place := range sh.used {
			r := sh.at(place)
			if r.flags&flagUsed == 0 {
				continue
			}
			used++
			byClass[r.class()]++
			if got := sh.find(r.fp); got != place {
				t.Fatalf("shard %d: the record at %d is found at %d", n, place, got)
			}
			if r.flags&flagSpilled != 0 {
				spilled++
				cells += cap(sh.spill[r.words[0]])
			}
		}
		entries := 0
		for _, e := range sh.index {
			if e != 0 {
				entries++
			}
		}
		free := 0
		for f := sh.free; f != 0; f = sh.at(int(f) - 1).words[0] {
			if free++; free > sh.used {
				t.Fatalf("shard %d: the free list is a circle", n)
			}
		}
		if used != sh.count || entries != sh.count || used+free != sh.used || byClass != sh.byClass {
			t.Fatalf("shard %d: count %d, records %d, index entries %d, free %d of %d places, classes %v and %v",
				n, sh.count, used, entries, free, sh.used, byClass, sh.byClass)
		}
		if spilled+len(sh.spillFree) != len(sh.spill) || cells != sh.spillCells {
			t.Fatalf("shard %d: %d spilled, %d free of %d; %d cells, %d counted",
				n, spilled, len(sh.spillFree), len(sh.spill), cells, sh.spillCells)
		}
		total += used
		sh.mu.Unlock()
	}
	if got := s.records.Load(); got != int64(total) || got > s.records.limit {
		t.Fatalf("%d records counted, %d held, limit %d", got, total, s.records.limit)
	}
}

// fill hits keys first .. first+n-1, times each.
func fill(tb testing.TB, s *Store, h *hits, first, n, times int) {
	for range times {
		for i := range n {
			h.hit(tb, s, address(uint64(first+i)))
		}
	}
}

// A spray of new addresses, also one of several hits each, does not touch the
// counts of busier keys.
func TestSprayKeepsBusyKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		busy, each   int // of 1<<14 records, hits each
		sprayed, per int // keys, hits each
	}{
		{"one hit each", 1 << 13, 2, 1 << 17, 1},
		{"two hits each", 1 << 12, 4, 1 << 16, 2},
		{"seven hits each", 1 << 12, 8, 1 << 16, 7},
		{"busy keys are nearly seven eighths", 13 << 10, 16, 1 << 17, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				c.sprayed /= 4
			}
			s, h := New(Config{MaxKeys: 1 << 14}), newHits(noon)
			fill(t, s, h, 0, c.busy, c.each)
			for i := range c.sprayed {
				key := address(uint64(1<<40 + i))
				for j := range c.per {
					if hour, _ := h.hit(t, s, key); hour != int64(j+1) {
						t.Fatalf("sprayed key %d: hit %d counted %d", i, j+1, hour)
					}
				}
			}
			verify(t, s)
			for i := range c.busy {
				if hour, day := h.look(t, s, address(uint64(i))); hour != int64(c.each) || day != int64(c.each) {
					t.Fatalf("busy key %d: counts %d and %d after the spray, want %d", i, hour, day, c.each)
				}
			}
			stats := s.Stats()
			if want := c.busy + c.sprayed - 1<<14; stats.EvictedLive != uint64(want) {
				t.Errorf("%d live records displaced, want %d", stats.EvictedLive, want)
			}
			if c.per == 1 && stats.EvictedBusy != 0 {
				t.Errorf("%d busy records displaced, want 0", stats.EvictedBusy)
			}
		})
	}
}

// A client that starts during a spray and returns in time becomes busy and stays.
func TestNewcomerRisesDuringSpray(t *testing.T) {
	t.Parallel()
	const size = 1 << 14
	s, h := New(Config{MaxKeys: size}), newHits(noon)
	fill(t, s, h, 0, size*3/4, 16)
	sprayed := 1 << 30
	for n := 1; n <= 20; n++ {
		if hour, _ := h.hit(t, s, address(1<<50)); hour != int64(n) {
			t.Fatalf("hit %d counted %d", n, hour)
		}
		fill(t, s, h, sprayed, size/16, 1) // half of what the guarantee allows
		sprayed += size / 16
	}
}

// In a table full of live busy keys a newcomer is served and counted, and what
// it displaces shows in the stats.
func TestFullOfBusyKeys(t *testing.T) {
	t.Parallel()
	const size = 1 << 12
	s, h := New(Config{MaxKeys: size}), newHits(noon)
	fill(t, s, h, 0, size, 8)
	if got := s.Stats(); got.Records != size || got.EvictedLive != 0 {
		t.Fatalf("the table displaces before it is full: %+v", got)
	}
	for n := 1; n <= 6; n++ {
		for i := range 100 {
			if hour, day := h.hit(t, s, address(uint64(1<<40+i))); hour != int64(n) || day != int64(n) {
				t.Fatalf("newcomer %d: hit %d counted %d and %d", i, n, hour, day)
			}
		}
	}
	verify(t, s)
	if got := s.Stats(); got.Records != size || got.EvictedLive != 100 || got.EvictedBusy != 100 {
		t.Fatalf("got %+v, want %d records and 100 busy ones displaced", got, size)
	}
}

func TestSmallestTables(t *testing.T) {
	t.Parallel()
	for size := 1; size <= 9; size++ {
		s, h := New(Config{MaxKeys: size}), newHits(noon)
		for i := range 200 {
			key := address(uint64(i))
			for n := int64(1); n <= 3; n++ {
				if hour, _ := h.hit(t, s, key); hour != n {
					t.Fatalf("MaxKeys %d, key %d: hit %d counted %d", size, i, n, hour)
				}
			}
			verify(t, s)
		}
		if got := s.Stats().Records; got != size {
			t.Fatalf("MaxKeys %d: %d records", size, got)
		}
	}
}

// A full table under many callers at once: never above the bound, never an
// error, every hit at least counted as one, and a hot key exact all the while.
func TestPressureInParallel(t *testing.T) {
	t.Parallel()
	const size, callers = 4 << 10, 16
	s := New(Config{MaxKeys: size})
	per := 8000
	if testing.Short() {
		per /= 4
	}
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			h := newHits(noon)
			for i := range per {
				if hour, _ := h.hit(t, s, address(uint64(g*per+i)<<8)); hour != 1 {
					t.Errorf("a new key counted %d", hour)
				}
				if i%4 == 0 {
					h.hit(t, s, address(1))
				}
				if i%1000 == 0 && s.Stats().Records > size {
					t.Errorf("%d records, bound %d", s.Stats().Records, size)
				}
			}
		})
	}
	wg.Wait()
	verify(t, s)
	if hour, _ := newHits(noon).look(t, s, address(1)); hour != int64(callers*per/4) {
		t.Fatalf("the hot key counted %d of %d", hour, callers*per/4)
	}
}

// When the window has passed, the records of its keys are used again: memory
// stays flat under the next day's keys, without displacing a live one, and
// goes down when nobody comes.
func TestFlatAfterTheWindow(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	s, h := New(Config{MaxKeys: 1 << 20}), newHits(noon)
	fill(t, s, h, 0, keys, 2)
	first := s.Stats()
	for day := 1; day <= 4; day++ {
		h.now = noon.AddDate(0, 0, 2*day)
		fill(t, s, h, day*keys, keys, 2)
		verify(t, s)
		stats := s.Stats()
		if stats.Bytes > first.Bytes*3/2 {
			t.Fatalf("day %d: %d bytes, day one took %d", day, stats.Bytes, first.Bytes)
		}
		if stats.EvictedLive != 0 || stats.Recycled < uint64((day-1)*keys) {
			t.Fatalf("day %d: %+v", day, stats)
		}
		for i := range keys {
			if hour, _ := h.look(t, s, address(uint64(day*keys+i))); hour != 2 {
				t.Fatalf("day %d, key %d: %d", day, i, hour)
			}
		}
	}
	const quiet, days = keys / 8, 6 // each key looks at four records, so this cleans everything twice
	for day := range days {
		h.now = h.now.AddDate(0, 0, 2)
		fill(t, s, h, (1+day)<<40, quiet, 3)
	}
	verify(t, s)
	if got := s.Stats().Bytes; got > first.Bytes/2 {
		t.Fatalf("%d bytes after the crowd has gone, %d with it", got, first.Bytes)
	}
	for i := range quiet {
		if hour, _ := h.look(t, s, address(uint64(days<<40+i))); hour != 3 {
			t.Fatalf("key %d after the shrinking: %d, want 3", i, hour)
		}
	}
}
