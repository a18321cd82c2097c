package bitfield

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/stilehq/stile/core/rows"
)

const (
	// MaxRide bounds the expiries that ride along with a batch, MaxSettle those
	// that one Settle sends to one server.
	MaxRide   = 64
	MaxSettle = 512

	// maxPending bounds the expiries that wait to be sent. Beyond it the newest
	// is dropped and counted; a later hit of its row asks again (see [Due]).
	maxPending = 4096
	// maxTries bounds how often one EXPIREAT is sent.
	maxTries = 5
	// generation is the number of records after which this process begins to forget
	// that it has seen their expiry confirmed: it remembers at least so many of the
	// latest, and at most twice as many (some 2 MiB then).
	generation = 1 << 16
)

// An Expiry is one EXPIREAT to send.
type Expiry struct {
	Name  string
	At    int64 // Unix seconds
	tries int   // how often it was sent without an answer
}

// Pending holds the EXPIREATs that are still to be sent to one server. They may
// be repeated, so one whose outcome is unknown is simply added again, a few times.
// The zero Pending is empty and ready; it is safe for concurrent use.
type Pending struct {
	mu      sync.Mutex
	list    map[string]Expiry
	dropped int64

	// waiting is len(list), for a look without the lock: most hits find nothing.
	waiting atomic.Int64

	// confirmed and before remember hashes of names. A name is looked for only
	// while its counts are small, so what is forgotten is what has not been
	// confirmed for long; it costs at most a needless EXPIREAT or two. Two hashes of
	// 64 bits that are the same leave one record without its repair.
	confirmed map[uint64]struct{}
	before    map[uint64]struct{}
	seed      maphash.Seed
}

// Add keeps e for the next trip.
func (x *Pending) Add(e Expiry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, ok := x.list[e.Name]
	if e.tries >= maxTries || !ok && len(x.list) >= maxPending {
		x.dropped++
		return
	}
	if x.list == nil {
		x.list = make(map[string]Expiry)
	}
	e.At = max(e.At, old.At)
	x.list[e.Name] = e
	x.waiting.Store(int64(len(x.list)))
}

// Take removes at most n expiries and returns them as sent once more.
func (x *Pending) Take(n int) []Expiry {
	if x.waiting.Load() == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	list := make([]Expiry, 0, min(n, len(x.list)))
	for _, e := range x.list {
		if len(list) == n {
			break
		}
		e.tries++
		list = append(list, e)
		delete(x.list, e.Name)
	}
	x.waiting.Store(int64(len(x.list)))
	return list
}

// Confirm remembers that the server has set an expiry for name.
func (x *Pending) Confirm(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.confirmed == nil {
		x.confirmed, x.before = make(map[uint64]struct{}), make(map[uint64]struct{})
		x.seed = maphash.MakeSeed()
	}
	if len(x.confirmed) >= generation {
		x.confirmed, x.before = x.before, x.confirmed
		clear(x.confirmed)
	}
	x.confirmed[maphash.String(x.seed, name)] = struct{}{}
}

// Confirmed reports whether Confirm was called for name and not forgotten.
func (x *Pending) Confirmed(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.confirmed == nil {
		return false
	}
	h := maphash.String(x.seed, name)
	if _, ok := x.confirmed[h]; ok {
		return true
	}
	_, ok := x.before[h]
	return ok
}

// Waiting returns the number of expiries that wait. It takes no lock.
func (x *Pending) Waiting() int { return int(x.waiting.Load()) }

// Len returns the number of expiries that wait, and how many were given up since
// the start because too many waited or the server refused them several times.
func (x *Pending) Len() (waiting int, dropped int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list), x.dropped
}

// Note adds the expiry of a decoded row if it is due. Previous is what Decode
// returned, repair is explained at [Due].
func (x *Pending) Note(name string, r *rows.Row, previous, repair int64) {
	due, sure := Due(r, previous, repair)
	if due && (sure || !x.Confirmed(name)) {
		x.Add(Expiry{Name: name, At: r.Until})
	}
}
