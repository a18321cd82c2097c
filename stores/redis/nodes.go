package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

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
// The client library's own cluster client is not used: its pipelines are sent
// again after a lost reply, as its redirection loop does not tell a refusal from
// a broken connection, and a count sent twice is counted twice. Here only MOVED
// and ASK, which prove that nothing was applied, send a row on, once.
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
	l := &lane{client: goredis.NewClient(options(n.cfg, addr)), limit: n.cfg.Pool, timeout: n.cfg.Timeout, stats: n.stats}
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
		//lint:ignore SA1019 CLUSTER SHARDS needs Redis 7; CLUSTER SLOTS is served by every version of Redis and Valkey
		ranges, err := l.client.ClusterSlots(ctx).Result()
		if err == nil && len(ranges) == 0 {
			err = errors.New("no slot is assigned")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", l.client.Options().Addr, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		t := new(table)
		for _, r := range ranges {
			if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slotCount || r.Start > r.End {
				continue
			}
			to := n.at(complete(r.Nodes[0].Addr, l.client.Options().Addr))
			for s := r.Start; s <= r.End; s++ {
				t.slots[s] = to
			}
		}
		n.table.Store(t)
		n.stale.Store(false)
		return nil
	}
	return errors.Join(errs...)
}

// redirect reads a MOVED or ASK reply: the lane to send the row to, and whether
// it needs ASKING. For any other error the lane is nil.
func (n *nodes) redirect(err error) (to *lane, ask bool) {
	var reply goredis.Error
	if n.only != nil || !errors.As(err, &reply) {
		return nil, false
	}
	word, rest, _ := strings.Cut(reply.Error(), " ")
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
		from = t.slots[at].client.Options().Addr
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
	var reply goredis.Error
	if errors.As(err, &reply) {
		switch word, _, _ := strings.Cut(reply.Error(), " "); word {
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
