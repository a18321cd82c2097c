package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/stilehq/stile/stores/redis/bitfield"
)

// refreshEvery is the shortest time between two looks at a cluster's topology
// that failures ask for.
const refreshEvery = 500 * time.Millisecond

// maxNodes bounds the lanes of a cluster (the protocol's own advice is 1,000).
const maxNodes = 1024

// nodes knows the lane of every key: the only one, or in a cluster the master
// of its slot.
//
// The client library's own cluster client is not used: it looks at the topology
// by timers of its own, and what it sends on when is its own rule. Here only MOVED
// and ASK, which prove that nothing was applied, send a row on, once, and nothing
// happens while nobody asks.
type nodes struct {
	cfg   Config
	stats *stats
	only  *lane // not a cluster

	table   atomic.Pointer[table] // nil until the topology is known
	stale   atomic.Bool           // a failure or a MOVED suggests another look
	looking chan struct{}         // holds one token: who has it may look
	looked  time.Time             // guarded by looking

	mu    sync.Mutex
	lanes map[string]*lane // by address
}

// A table maps slots to lanes; it is replaced as a whole.
type table struct{ slots [slotCount]*lane }

func newNodes(c Config, st *stats) *nodes {
	n := &nodes{cfg: c, stats: st, lanes: make(map[string]*lane), looking: make(chan struct{}, 1)}
	for _, addr := range c.Addrs {
		l := n.at(addr)
		if !c.Cluster {
			n.only = l
		}
	}
	return n
}

// at returns the lane to addr, nil if there would be too many.
func (n *nodes) at(addr string) *lane {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.lanes[addr]; l != nil {
		return l
	}
	if len(n.lanes) >= maxNodes {
		return nil
	}
	l := newLane(n.cfg, addr, n.stats)
	l.home = func(name string) *bitfield.Pending {
		if now := n.lane(name); now != nil {
			return &now.expiries
		}
		return &l.expiries
	}
	n.lanes[addr] = l
	return l
}

// all returns every lane.
func (n *nodes) all() []*lane {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]*lane, 0, len(n.lanes))
	for _, l := range n.lanes {
		list = append(list, l)
	}
	return list
}

// lane returns the lane of a key, nil for a slot that no node serves.
func (n *nodes) lane(name string) *lane {
	if n.only != nil {
		return n.only
	}
	t := n.table.Load()
	if t == nil {
		return nil
	}
	return t.slots[slot(name)]
}

// ready makes sure that lane can answer: in a cluster the topology is looked at
// when it is unknown, or when a failure has made it doubtful, by the first
// caller, while the others wait. An error means that the topology is unknown.
func (n *nodes) ready(ctx context.Context) error {
	if n.only != nil || n.table.Load() != nil && !n.stale.Load() {
		return nil
	}
	select {
	case n.looking <- struct{}{}:
		defer func() { <-n.looking }()
	case <-ctx.Done():
		if n.table.Load() != nil {
			return nil
		}
		return fmt.Errorf("waiting for the cluster's topology: %w", ctx.Err())
	}
	known := n.table.Load() != nil
	if known && (!n.stale.Load() || time.Since(n.looked) < refreshEvery) {
		return nil
	}
	n.looked = time.Now()
	if err := n.look(ctx); err != nil && !known {
		return err
	}
	return nil
}

// look asks the nodes in turn for the slots, until one answers.
func (n *nodes) look(ctx context.Context) error {
	var errs []error
	for _, l := range n.all() {
		// CLUSTER SHARDS would need Redis 7; CLUSTER SLOTS is served by every
		// version of Redis and Valkey.
		answer, err := l.ask(ctx, "CLUSTER", "SLOTS")
		var ranges []slotRange
		if err == nil {
			ranges, err = slotRanges(answer)
		}
		if err == nil && len(ranges) == 0 {
			err = errors.New("no slot is assigned")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", l, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		t := new(table)
		for _, r := range ranges {
			if r.first < 0 || r.last >= slotCount || r.first > r.last {
				continue
			}
			to := n.at(complete(r.master, l.addr))
			for s := r.first; s <= r.last; s++ {
				t.slots[s] = to
			}
		}
		n.table.Store(t)
		n.stale.Store(false)
		return nil
	}
	return errors.Join(errs...)
}

// A slotRange is one entry of CLUSTER SLOTS.
type slotRange struct {
	first, last int64
	master      string // host:port; the host may be empty
}

// slotRanges reads the reply to CLUSTER SLOTS: first and last slot, then the
// nodes, the master first, each beginning with host and port.
func slotRanges(m rueidis.RedisMessage) ([]slotRange, error) {
	list, err := m.ToArray()
	if err != nil {
		return nil, err
	}
	ranges := make([]slotRange, 0, len(list))
	for i := range list {
		entry, err := list[i].ToArray()
		if err != nil || len(entry) < 3 {
			continue // nobody serves it
		}
		first, err1 := entry[0].ToInt64()
		last, err2 := entry[1].ToInt64()
		node, err3 := entry[2].ToArray()
		if errors.Join(err1, err2, err3) != nil || len(node) < 2 {
			return nil, errors.New("CLUSTER SLOTS cannot be read")
		}
		host, _ := node[0].ToString() // null: the node does not know its own
		port, err := node[1].ToInt64()
		if err != nil {
			return nil, errors.New("CLUSTER SLOTS cannot be read")
		}
		ranges = append(ranges, slotRange{first, last, net.JoinHostPort(host, strconv.FormatInt(port, 10))})
	}
	return ranges, nil
}

// redirect reads a MOVED or ASK reply: the lane to send the row to, and whether
// it needs ASKING. For any other error the lane is nil.
func (n *nodes) redirect(err error) (to *lane, ask bool) {
	text, ok := reply(err)
	if n.only != nil || !ok {
		return nil, false
	}
	word, rest, _ := strings.Cut(text, " ")
	number, addr, _ := strings.Cut(rest, " ")
	switch word {
	case "MOVED":
		n.stale.Store(true)
	case "ASK":
		ask = true
	default:
		return nil, false
	}
	var at int
	if _, err := fmt.Sscanf(number, "%d", &at); err != nil || at < 0 || at >= slotCount {
		return nil, false
	}
	from := ""
	if t := n.table.Load(); t != nil && t.slots[at] != nil {
		from = t.slots[at].addr
	}
	to = n.at(complete(addr, from))
	if to != nil && !ask {
		n.move(at, to)
	}
	return to, ask
}

// move points one slot to its new master until the next look.
func (n *nodes) move(at int, to *lane) {
	for {
		old := n.table.Load()
		if old == nil || old.slots[at] == to {
			return
		}
		t := *old
		t.slots[at] = to
		if n.table.CompareAndSwap(old, &t) {
			return
		}
	}
}

// failed takes note of a row's error: when a node refuses or is gone, another
// may have become the master.
func (n *nodes) failed(err error) {
	if text, ok := reply(err); ok {
		switch word, _, _ := strings.Cut(text, " "); word {
		case "READONLY", "CLUSTERDOWN", "MASTERDOWN", "LOADING":
		default:
			return
		}
	}
	n.suspect()
}

// suspect asks for a look at the topology before the next batch.
func (n *nodes) suspect() { n.stale.Store(true) }

// complete fills in the host that a cluster node leaves out when it does not
// know its own: the one by which it was reached.
func complete(addr, from string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" && host != "?" {
		return addr
	}
	host, _, err = net.SplitHostPort(from)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}

// masters returns the lanes that serve slots, or the only one.
func (n *nodes) masters() []*lane {
	if n.only != nil {
		return []*lane{n.only}
	}
	var list []*lane
	seen := make(map[*lane]bool)
	if t := n.table.Load(); t != nil {
		for _, l := range t.slots {
			if l != nil && !seen[l] {
				seen[l] = true
				list = append(list, l)
			}
		}
	}
	return list
}
