package sizing

import (
	"container/heap"
	"context"
	"errors"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/sizing/accesslog"
)

// ReplayOptions say what is replayed.
type ReplayOptions struct {
	Options // how the log is read, and who its visitors are
	// Policy is decided by core itself, with the log's clock. Its client source is
	// not used: the log's reader has found the client already.
	Policy core.Policy
	// NewStore makes the stores of one replay: empty, and of this process only.
	NewStore func() core.Store
}

// ErrNoStore means that ReplayOptions.NewStore is missing.
var ErrNoStore = errors.New("sizing: a replay needs a store")

// Replay plays the policy over the logs and says who would have been limited. It
// reads the logs once, in the order of time as far as the lines are at most two
// minutes out of it. Observing and enforcing policies give the same numbers.
func Replay(ctx context.Context, inputs []accesslog.Input, o ReplayOptions) (*Replayed, error) {
	if o.NewStore == nil {
		return nil, ErrNoStore
	}
	rp, err := newReplayer(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer rp.close()
	logOptions := o.Log
	logOptions.Workers = 1 // order
	if o.Progress != nil {
		logOptions.Progress = o.Progress
	}
	stats, err := accesslog.Scan(ctx, inputs, logOptions, func(int) accesslog.Sink { return rp })
	if err != nil {
		return nil, err
	}
	rp.drain(0)
	m := &measurement{opts: &o.Options, log: stats, traffic: rp.people.traffic, overflow: rp.people.overflow}
	for _, cl := range rp.people.clients {
		m.clients = append(m.clients, cl)
	}
	m.finish()
	return rp.result(m), nil
}

// A replayer decides and measures in one pass.
type replayer struct {
	ctx     context.Context
	opts    *ReplayOptions
	people  *collector
	limiter *core.Limiter
	bare    *core.Limiter // the policy without its exceptions; nil when it has none
	stores  []core.Store
	tallies map[clientKey]*tally
	queue   recordQueue
	newest  int64
	header  recordHeader
	req     core.Request
	buckets map[string]int

	late, noAddress, storeErrors int64
}

// A tally is what the policy did to one client.
type tally struct {
	pages, refused, exempt int64
	saved                  int64 // refused without the exception
	exception              string
	byBucket               []int64
	first, last            int64
}

const (
	reorderSpan = 120      // seconds by which lines may be out of order
	reorderMax  = 64 << 10 // lines held at most
)

func newReplayer(ctx context.Context, o *ReplayOptions) (*replayer, error) {
	rp := &replayer{ctx: ctx, opts: o, tallies: make(map[clientKey]*tally), buckets: make(map[string]int)}
	o.Count = o.Policy.Count
	var err error
	if rp.people, err = newCollector(&o.Options, 1); err != nil {
		return nil, err
	}
	p := o.Policy
	p.Client = core.ClientSource{From: core.FromRemote, IPv6Prefix: p.Client.IPv6Prefix}
	newLimiter := func(p core.Policy) (*core.Limiter, error) {
		store, local := o.NewStore(), o.NewStore()
		rp.stores = append(rp.stores, store, local)
		return core.New(p, core.Options{Store: store, Local: local, Crawlers: o.Crawlers})
	}
	if rp.limiter, err = newLimiter(p); err != nil {
		rp.close()
		return nil, err
	}
	if p.Networks != nil || len(p.Crawlers) > 0 {
		q := p
		q.Networks, q.Crawlers = nil, nil
		if rp.bare, err = newLimiter(q); err != nil {
			rp.close()
			return nil, err
		}
	}
	for i, b := range p.Buckets {
		rp.buckets[b.Name] = i
	}
	return rp, nil
}

func (rp *replayer) close() {
	for _, s := range rp.stores {
		s.Close()
	}
}

// Record measures a request and queues what a limiter would decide about.
func (rp *replayer) Record(r *accesslog.Record) {
	rp.people.Record(r)
	switch rp.people.pages.sort(r) {
	case page, speculative:
	default:
		return
	}
	if _, ok := rp.people.address(r); !ok {
		rp.noAddress++
		return
	}
	heap.Push(&rp.queue, *r)
	rp.newest = max(rp.newest, r.Time.Unix())
	if r.Time.Unix() < rp.newest-reorderSpan {
		rp.late++
	}
	rp.drain(rp.newest - reorderSpan)
}

// drain decides what is older than a time; 0 = everything.
func (rp *replayer) drain(before int64) {
	for rp.queue.Len() > 0 && (before == 0 || rp.queue.Len() > reorderMax || rp.queue[0].Time.Unix() < before) {
		r := heap.Pop(&rp.queue).(accesslog.Record)
		for range 1 + r.LeftOut {
			rp.decide(&r)
		}
	}
}

func (rp *replayer) decide(r *accesslog.Record) {
	key, _ := rp.people.address(r)
	addr := key
	if r.Client.IsValid() {
		addr = r.Client // the limiter masks IPv6 itself
	}
	if r.Format == accesslog.FormatStile && core.Reason(r.Reason) != core.ReasonSpeculating {
		r.SecFetchDest = "" // what it was counted as is known, whatever it called itself
	}
	rp.header.r = r
	rp.req = core.Request{Method: r.Method, Host: r.Host, Path: decodePath(r.Path), RawQuery: r.Query, Header: &rp.header, Peer: addr, Time: r.Time}
	d := rp.limiter.Decide(rp.ctx, &rp.req)
	if d.Err != nil {
		rp.storeErrors++
	}
	if d.Class != core.Counted {
		return
	}
	a := rp.people.agents.lookup(r.UserAgent)
	t := rp.tally(clientKey{key, rp.people.groupOf(a, key)})
	t.pages++
	refused := d.Outcome == core.Refuse // observing or not
	if d.Reason == core.ReasonNetwork || d.Reason == core.ReasonCrawler {
		t.exempt++
		t.exception = exceptionName(&d)
	}
	if rp.bare != nil {
		b := rp.bare.Decide(rp.ctx, &rp.req)
		if !refused && b.Outcome == core.Refuse {
			t.saved++
			if t.exception == "" {
				t.exception = exceptionName(&d)
			}
		}
	}
	if !refused {
		return
	}
	t.refused++
	now := r.Time.Unix()
	if t.first == 0 || now < t.first {
		t.first = now
	}
	t.last = max(t.last, now)
	if d.Binding >= 0 && d.Binding < len(d.States) {
		if i, ok := rp.buckets[d.States[d.Binding].Bucket]; ok {
			t.byBucket[i]++
		}
	}
}

func exceptionName(d *core.Decision) string {
	switch {
	case d.Network.Prefix.IsValid():
		name := d.Network.Prefix.String()
		if d.Network.Reason != "" {
			name += " (" + d.Network.Reason + ")"
		}
		return name
	case d.Crawler.Verified:
		return d.Crawler.Name + " (verified crawler)"
	}
	return "other"
}

func (rp *replayer) tally(k clientKey) *tally {
	t := rp.tallies[k]
	if t == nil {
		t = &tally{byBucket: make([]int64, len(rp.buckets))}
		rp.tallies[k] = t
	}
	return t
}

// recordQueue is a heap of records by time.
type recordQueue []accesslog.Record

func (q recordQueue) Len() int           { return len(q) }
func (q recordQueue) Less(i, j int) bool { return q[i].Time.Before(q[j].Time) }
func (q recordQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push and Pop are for container/heap.
func (q *recordQueue) Push(x any) { *q = append(*q, x.(accesslog.Record)) }

// Pop takes the last element.
func (q *recordQueue) Pop() any {
	old := *q
	r := old[len(old)-1]
	old[len(old)-1] = accesslog.Record{}
	*q = old[:len(old)-1]
	return r
}
