package memory

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

var (
	_ core.Store    = (*Store)(nil)
	_ core.Featurer = (*Store)(nil)
)

// DefaultMaxKeys is the bound when Config names none: a million records, at
// most about 64 MiB for rows of hour and day buckets.
const DefaultMaxKeys = 1 << 20

// grace is how long after its Until a record is kept, in seconds: time servers
// set clocks back, and ten minutes must not cost a visitor's count.
const grace = 15 * 60

// maxShards is the number of locks of a large table. A shard should have
// minShard records at least, for its share of busy keys to be close to the table's.
const (
	maxShards = 64
	minShard  = 1024
)

// Config bounds a store. The zero Config is usable.
type Config struct {
	// MaxKeys is the largest number of records (one per key and epoch), each up
	// to 64 bytes as the package comment says. 0 or less means DefaultMaxKeys;
	// more than 1<<27 means 1<<27.
	MaxKeys int
}

// A Store is core.Store in memory. Create it with New; it must not be copied.
// All methods are safe for concurrent use.
type Store struct {
	key     sipKey
	shards  []shard
	records bounded
	closed  atomic.Bool
}

// New returns an empty store. It allocates one header for each of up to 64
// shards and nothing in proportion to MaxKeys.
func New(c Config) *Store {
	limit := c.MaxKeys
	if limit <= 0 {
		limit = DefaultMaxKeys
	}
	limit = min(limit, 1<<27)
	n := 1
	for n < maxShards && limit >= 2*n*minShard {
		n *= 2
	}
	var seed [16]byte
	rand.Read(seed[:]) // never fails: crypto/rand ends the process instead
	s := &Store{
		key:    sipKey{binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])},
		shards: make([]shard, n),
	}
	s.records.limit = int64(limit)
	for i := range s.shards {
		s.shards[i].store = s
		s.shards[i].last = math.MinInt64
	}
	return s
}

// Features declares what the store can do: everything, for this process alone.
func (s *Store) Features() core.Features {
	return core.Features{Name: "memory", Clocks: true}
}

var (
	errClosed = fmt.Errorf("memory: the store is closed: %w", core.ErrNotApplied)
	errSlot   = fmt.Errorf("memory: a slot above %d: %w: %w", rows.MaxSlots-1, core.ErrUnsupported, core.ErrNotApplied)
)

// Apply implements core.Store. Its only errors prove every row they are on
// unchanged: a context that is over and a closed store (the whole batch), and a
// cell whose slot is not below rows.MaxSlots (that row, core.ErrUnsupported).
func (s *Store) Apply(ctx context.Context, b *core.Batch) error {
	err := ctx.Err()
	switch {
	case err != nil:
		err = fmt.Errorf("memory: %w: %w", core.ErrNotApplied, err)
	case s.closed.Load():
		err = errClosed
	}
	if err != nil {
		for i := range b.Rows {
			b.Rows[i].Err = err
		}
		return err
	}
	now := b.Now.Unix()
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Err = s.applyRow(r, now); r.Err != nil && err == nil {
			err = r.Err
		}
	}
	return err
}

func (s *Store) applyRow(row *core.Row, now int64) error {
	for i := range row.Cells {
		if row.Cells[i].Slot >= rows.MaxSlots {
			return errSlot
		}
	}
	fp := s.key.fingerprint(row)
	creates := row.Creates()
	sh := &s.shards[fp[1]&uint64(len(s.shards)-1)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	horizon := sh.horizon(now)
	place := sh.find(fp)
	if place >= 0 && over(sh.at(place).until, horizon) {
		sh.recycle(place)
		place = -1
	}
	var r *record
	switch {
	case place >= 0:
		r = sh.at(place)
	case creates:
		r = sh.create(fp, horizon)
	default: // absent, and a read or a refund does not change that
		for i := range row.Cells {
			row.Cells[i].Value = 0
		}
		return nil
	}
	if creates {
		sh.touch(r)
		r.extend(clampUntil(row.Until))
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		value, at := sh.load(r, uint8(c.Slot), horizon)
		if c.Add != 0 || c.Floor != 0 {
			value = advance(value, c.Floor, c.Add)
			if value != 0 || at >= 0 {
				until := r.until
				if c.Until > 0 {
					until = clampUntil(c.Until)
				}
				sh.put(r, spillCell{value: value, until: until, slot: uint8(c.Slot)}, at, horizon)
			}
		}
		c.Value = int64(value)
	}
	return nil
}

// Close forgets every record. Apply returns an error that wraps
// core.ErrNotApplied afterwards. Close never fails and may be called again.
func (s *Store) Close() error {
	s.closed.Store(true)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		s.records.Add(-int64(sh.count))
		sh.index, sh.chunks, sh.spill, sh.spillFree = nil, nil, nil, nil
		sh.used, sh.free, sh.count, sh.hand, sh.broom, sh.spillCells = 0, 0, 0, 0, 0, 0
		sh.byClass = [classes]int{}
		sh.mu.Unlock()
	}
	return nil
}

// Stats is a store's state for metrics. The counters never go down.
type Stats struct {
	Records     int    // records held now, those not yet swept among them
	Bytes       int    // memory of the table, estimated from its parts
	EvictedLive uint64 // live records displaced by newcomers in a full table: raise MaxKeys, or a spray is under way
	EvictedBusy uint64 // those of them that had been hit twice or more: counts that mattered were lost
	Recycled    uint64 // records whose time was over, freed or reused
}

// Stats adds up all shards, locking one after another; it is cheap enough for
// every scrape.
func (s *Store) Stats() Stats {
	t := Stats{Bytes: int(unsafe.Sizeof(*s))}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		t.Records += sh.count
		t.EvictedLive += sh.evictedLive
		t.EvictedBusy += sh.evictedBusy
		t.Recycled += sh.recycled
		t.Bytes += sh.bytes()
		sh.mu.Unlock()
	}
	return t
}

func (s *shard) bytes() int {
	const header = int(unsafe.Sizeof([]byte(nil)))
	n := int(unsafe.Sizeof(*s)) + 4*cap(s.index) + header*(cap(s.chunks)+cap(s.spill)) + 4*cap(s.spillFree)
	if k := len(s.chunks); k > 0 {
		n += recordBytes * ((k-1)*chunkLen + len(s.chunks[k-1]))
	}
	return n + spillCellSize*s.spillCells
}
