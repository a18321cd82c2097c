package crawlers

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// verdict is the remembered answer of reverse DNS for one address. It covers
// every pattern at once, so that a client cannot buy one look-up per crawler
// that it claims to be.
type verdict struct {
	agents mask // empty: refuted or undecided
	renew  int64
	until  int64 // both in Unix nanoseconds; from renew on, a hit asks again
}

// verdicts is read by every request and replaced as a whole by the refresher.
type verdicts struct {
	current      atomic.Pointer[map[netip.Addr]verdict]
	positive     int // caps: proofs and refutations do not push each other out
	negative     int
	positiveTTL  time.Duration
	negativeTTL  time.Duration
	undecidedTTL time.Duration
}

func (c *verdicts) get(a netip.Addr) (verdict, bool) {
	v, ok := (*c.current.Load())[a]
	return v, ok
}

// lookup is one finished reverse look-up.
type lookup struct {
	addr   netip.Addr
	agents mask
	out    outcome
}

// put adds finished look-ups. Only one goroutine may call it at a time.
func (c *verdicts) put(done []lookup, now time.Time) {
	if len(done) == 0 {
		return
	}
	old := *c.current.Load()
	next := make(map[netip.Addr]verdict, len(old)+len(done))
	at := now.UnixNano()
	for a, v := range old {
		if v.until > at {
			next[a] = v
		}
	}
	for _, d := range done {
		held := next[d.addr]
		switch {
		case d.out == confirmed:
			next[d.addr] = verdict{agents: d.agents, renew: at + int64(c.positiveTTL/4*3), until: at + int64(c.positiveTTL)}
		case d.out == refuted:
			next[d.addr] = verdict{renew: at + int64(c.negativeTTL), until: at + int64(c.negativeTTL)}
		case held.agents.empty():
			next[d.addr] = verdict{renew: at + int64(c.undecidedTTL), until: at + int64(c.undecidedTTL)}
		default: // an outage does not take a proof away before its time
			held.renew = min(at+int64(c.undecidedTTL), held.until)
			next[d.addr] = held
		}
	}
	trim(next, c.positive, func(v verdict) bool { return !v.agents.empty() })
	trim(next, c.negative, func(v verdict) bool { return v.agents.empty() })
	c.current.Store(&next)
}

// trim drops the entries of one kind that end first until at most limit remain.
func trim(m map[netip.Addr]verdict, limit int, kind func(verdict) bool) {
	var of []netip.Addr
	for a, v := range m {
		if kind(v) {
			of = append(of, a)
		}
	}
	if len(of) <= limit {
		return
	}
	slices.SortFunc(of, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(m[a].until, m[b].until), a.Compare(b)) })
	for _, a := range of[:len(of)-limit] {
		delete(m, a)
	}
}

// queue holds addresses whose claim waits for reverse DNS. It is bounded twice:
// as a whole, and per network, so that one sprayer cannot keep real crawlers out.
type queue struct {
	mu      sync.Mutex
	order   []netip.Addr
	held    map[netip.Addr]struct{}
	perNet  map[netip.Prefix]int
	cap     int
	netCap  int
	dropped atomic.Uint64
	length  atomic.Int64
	wake    chan struct{}
}

// network groups neighbours: /24 of IPv4, /48 of IPv6.
func network(a netip.Addr) netip.Prefix {
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits)
	return p
}

// add queues a unless it waits already or there is no room.
func (q *queue) add(a netip.Addr) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.held[a]; ok {
		return
	}
	n := network(a)
	if len(q.order) >= q.cap || q.perNet[n] >= q.netCap {
		q.dropped.Add(1)
		return
	}
	q.held[a] = struct{}{}
	q.perNet[n]++
	q.order = append(q.order, a)
	q.length.Store(int64(len(q.order)))
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes up to n addresses, the oldest first.
func (q *queue) take(n int) []netip.Addr {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.order))
	out := slices.Clone(q.order[:n])
	q.order = slices.Delete(q.order, 0, n)
	for _, a := range out {
		delete(q.held, a)
		if net := network(a); q.perNet[net] > 1 {
			q.perNet[net]--
		} else {
			delete(q.perNet, net)
		}
	}
	q.length.Store(int64(len(q.order)))
	return out
}
