package identity

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

const (
	// newcomerPlaces bounds how many (address, browser) pairs hold room.
	newcomerPlaces = 1 << 16
	// newcomerLife is how long room is kept, and how soon a cookie must come
	// back to earn any: a day, as the limits that it relieves.
	newcomerLife = 24 * time.Hour
	// advance is the room that the first return from an address and browser earns
	// beyond its own: people who come at the same minute, or read one page and
	// never come back, must not use up what was earned.
	advance = 16
	// seenCookies bounds each of the two generations of remembered cookies.
	seenCookies = 1 << 16
)

// newcomers keeps, for each address and User-Agent, how many first hits were
// moved from the address to cookies that came back, and not used up yet.
//
// The User-Agent proves nothing; it only keeps a crawler that does not disguise
// itself from using up what its neighbours' browsers earned. What is kept here is
// this instance's own, so a cookie may earn once on each; the limits of the
// newcomers' row, which is in the store, hold over all instances.
type newcomers struct {
	count  atomic.Int64 // of entries; Identify looks no further while it is 0
	seed   maphash.Seed
	mu     sync.Mutex
	places map[newcomerKey]newcomer
}

type newcomerKey struct {
	at    netip.Prefix
	agent uint64
}

type newcomer struct {
	room   int32 // first hits that may go without charging the address; may fall below 0 for a moment
	until  time.Time
	closed time.Time // the newcomers' own limit is reached until then
}

func (n *newcomers) init() {
	n.seed = maphash.MakeSeed()
	n.places = map[newcomerKey]newcomer{}
}

func (n *newcomers) key(at netip.Prefix, agent string) newcomerKey {
	return newcomerKey{at, maphash.String(n.seed, agent)}
}

// room reports whether a first hit may be charged to the newcomers.
func (n *newcomers) room(at netip.Prefix, agent string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.places[n.key(at, agent)]
	return e.room > 0 && now.Before(e.until) && !now.Before(e.closed)
}

// earn adds room for one.
func (n *newcomers) earn(at netip.Prefix, agent string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.key(at, agent)
	e, had := n.places[k]
	if !had && len(n.places) >= newcomerPlaces {
		n.evict(now)
	}
	if !now.Before(e.until) {
		e.room = advance
	}
	e.room++
	e.until = now.Add(newcomerLife)
	n.places[k] = e
	n.count.Store(int64(len(n.places)))
}

// spend takes room for one. Several newcomers may have been told of the same
// room at once; the next to earn any pays for them.
func (n *newcomers) spend(at netip.Prefix, agent string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.key(at, agent)
	if e, ok := n.places[k]; ok {
		e.room--
		n.places[k] = e
	}
}

// close sends an address's newcomers back to the address for a while.
func (n *newcomers) close(at netip.Prefix, agent string, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.key(at, agent)
	if e, ok := n.places[k]; ok {
		e.closed = until
		n.places[k] = e
	}
}

// evict makes room in the table: an expired entry if a short look finds one,
// else any. Losing one costs its address the few hits that it had earned.
func (n *newcomers) evict(now time.Time) {
	var victim newcomerKey
	looked := 0
	for k, e := range n.places {
		victim = k
		if looked++; !now.Before(e.until) || looked == 16 {
			break
		}
	}
	delete(n.places, victim)
}

// seen remembers which cookies have come back before. Two generations take turns, so
// that it is bounded and forgets the oldest first.
type seen struct {
	mu       sync.Mutex
	now, old map[[16]byte]struct{}
	turned   time.Time
}

// first reports whether id has not been met before, and remembers it.
func (s *seen) first(id [16]byte, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.now[id]; ok {
		return false
	}
	if _, ok := s.old[id]; ok {
		return false
	}
	if s.now == nil || len(s.now) >= seenCookies || now.Sub(s.turned) > newcomerLife {
		s.old, s.now, s.turned = s.now, map[[16]byte]struct{}{}, now
	}
	s.now[id] = struct{}{}
	return true
}

// navigates reports whether a browser says that it is loading a page. Only such
// a request is taken for a newcomer's; a crawler that writes the field too could
// as well return cookies.
func navigates(r *core.Request) bool {
	if r.Header == nil {
		return false
	}
	v := r.Header.Values("Sec-Fetch-Dest")
	return len(v) == 1 && v[0] == "document"
}

func userAgent(r *core.Request) string {
	if r.Header == nil {
		return ""
	}
	if v := r.Header.Values("User-Agent"); len(v) > 0 {
		return v[0]
	}
	return ""
}
