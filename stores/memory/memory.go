// Package memory is core.Store in the memory of one process: a sharded table,
// bounded, exact under concurrency, without any goroutine.
//
// It counts for this process only. With N instances the effective limit is up
// to N times the policy's, and what it knows is lost with the process; use it
// in front of one site, in tests and replays, and as the local half of
// wrappers. Every call's time is Batch.Now; the store reads no clock.
//
// # Cost
//
// A hit of one row costs one hash, one short lock and about two cache misses,
// and no allocation when the row exists. A record takes 48 bytes and its index
// entry 5 to 11: below 64 bytes for a key with up to four live cells (hour and
// day: today, this hour, the previous one, and one more in its grace time), or
// with one clock cell. A row with more cells takes 16 bytes per cell more, in
// lists that double: a 61-cell sliding log about 1.1 KB. [New] allocates a few
// kilobytes; memory grows with the keys and shrinks when a crowd has gone.
//
// # Exactness
//
// Rows are identified by a 128-bit SipHash-2-4 under a random secret of the
// store, not by their key, so an 8 KB id costs no more than an address. Two of
// n rows meet with a probability of about n²/2¹²⁹, for a million live rows
// 2⁻⁸⁹, and nobody can search for such a pair without the secret. Nothing else
// is approximate: no hit is ever dropped, merged or sampled.
//
// # Time
//
// A cell or record is forgotten 15 minutes after its Until (cells up to 64
// seconds later still), by the earlier of the last two batches' times. A clock
// that goes back by up to 15 minutes therefore finds every live count, and one
// stray batch dated in the future forgets nothing. Forgotten records are swept
// by the arrival of new ones, four looked at for each.
//
// # Pressure
//
// Config.MaxKeys bounds the records. In a full table each new row still gets a
// record and is counted: it takes the place of a record that is over, else of a
// live one, chosen by how often records were hit in their life, in classes of
// 1, 2–3, 4–7, … 64–127, 128 and more hits. Victims are the lowest classes
// that together make up at least an eighth of the (hash-picked) shard, the
// oldest first. From this follows, for each shard:
//
//   - A live record of h hits is displaced only while more than seven eighths of
//     the records have as many hits, by class, or more. A spray of any number of
//     addresses with m hits each displaces no record of a higher class than m's
//     until the higher classes themselves fill seven eighths.
//   - So whoever wants a record of h hits forgotten needs about 7/8·MaxKeys other
//     keys of at least half as many hits each, within the record's life.
//   - A newcomer is not displaced before MaxKeys/8 newer ones have come (in its
//     shard, in proportion): a client that returns sooner rises a class.
//
// Displaced live records are counted in [Stats].
package memory

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
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
	errSlot   = fmt.Errorf("memory: a slot above %d: %w", rows.MaxSlots-1, errors.Join(core.ErrUnsupported, core.ErrNotApplied))
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
