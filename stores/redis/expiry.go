package redis

import (
	"hash/maphash"
	"sync"
)

const (
	// maxPending bounds the expiries that wait to be sent. Beyond it the newest
	// is dropped and counted; a later hit of its row asks again (Config.Repair).
	maxPending = 4096
	// maxTries bounds how often one EXPIREAT is sent.
	maxTries = 5
	// maxRide bounds the expiries that ride along with one request.
	maxRide = 64
	// confirmedSize is the number of places in the table of records whose expiry
	// this process has seen confirmed (64 KiB).
	confirmedSize = 8192
)

// An expiry is one EXPIREAT to send.
type expiry struct {
	name  string
	at    int64 // Unix seconds
	tries int   // how often it was sent without an answer
}

// expiries holds the EXPIREATs of one lane that are still to be sent. They are
// safe to repeat, so one whose outcome is unknown is simply kept.
type expiries struct {
	mu      sync.Mutex
	pending map[string]expiry
	dropped int64

	// confirmed remembers hashes of names, each in the one place its hash
	// points to; a collision forgets the older one, which costs at most one
	// needless EXPIREAT.
	confirmed []uint64
	seed      maphash.Seed
}

// add keeps e for the next trip.
func (x *expiries) add(e expiry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, ok := x.pending[e.name]
	if e.tries >= maxTries || !ok && len(x.pending) >= maxPending {
		x.dropped++
		return
	}
	if x.pending == nil {
		x.pending = make(map[string]expiry)
	}
	e.at = max(e.at, old.at)
	x.pending[e.name] = e
}

// take removes at most n expiries and returns them as sent once more.
func (x *expiries) take(n int) []expiry {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.pending) == 0 {
		return nil
	}
	list := make([]expiry, 0, min(n, len(x.pending)))
	for _, e := range x.pending {
		if len(list) == n {
			break
		}
		e.tries++
		list = append(list, e)
		delete(x.pending, e.name)
	}
	return list
}

// confirm remembers that the server has set an expiry for name.
func (x *expiries) confirm(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.confirmed == nil {
		x.confirmed = make([]uint64, confirmedSize)
		x.seed = maphash.MakeSeed()
	}
	h := maphash.String(x.seed, name)
	x.confirmed[h%confirmedSize] = h
}

// isConfirmed reports whether confirm was called for name and not forgotten.
func (x *expiries) isConfirmed(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.confirmed == nil {
		return false
	}
	h := maphash.String(x.seed, name)
	return x.confirmed[h%confirmedSize] == h
}
