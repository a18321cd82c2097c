package sizing

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// result joins tallies with what the clients turned out to be.
func (rp *replayer) result(m *measurement) *Replayed {
	out := &Replayed{Lines: m.log.Lines, Observe: rp.opts.Policy.Observe}
	if m.traffic.requests > 0 {
		out.From, out.To = time.Unix(m.traffic.from, 0).UTC(), time.Unix(m.traffic.to, 0).UTC()
	}
	classes := map[string]*ReplayClass{}
	exceptions := map[string]*ReplayException{}
	perBucket := make([]int64, len(rp.opts.Policy.Buckets))
	for _, cl := range m.clients {
		t := rp.tallies[cl.key]
		if t == nil {
			continue
		}
		name := m.class(cl)
		c := classes[name]
		if c == nil {
			c = &ReplayClass{Name: name, ByBucket: map[string]int64{}}
			classes[name] = c
		}
		c.add(t, rp.opts.Policy.Buckets)
		out.Pages += t.pages
		out.Refused += t.refused
		for i, n := range t.byBucket {
			perBucket[i] += n
		}
		if t.exempt > 0 || t.saved > 0 {
			e := exceptions[t.exception]
			if e == nil {
				e = &ReplayException{Name: t.exception}
				exceptions[t.exception] = e
			}
			e.Pages += t.pages
			e.Saved += t.saved
		}
		if t.refused > 0 {
			out.Limited = append(out.Limited, rp.limited(m, cl, t, name))
		}
	}
	for _, c := range classes {
		out.Classes = append(out.Classes, *c)
	}
	slices.SortFunc(out.Classes, func(a, b ReplayClass) int { return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Name, b.Name)) })
	for _, e := range exceptions {
		out.Exceptions = append(out.Exceptions, *e)
	}
	slices.SortFunc(out.Exceptions, func(a, b ReplayException) int {
		return cmp.Or(cmp.Compare(b.Saved, a.Saved), cmp.Compare(a.Name, b.Name))
	})
	for i, b := range rp.opts.Policy.Buckets {
		out.Buckets = append(out.Buckets, ReplayBucket{Name: b.Name, Key: b.Key.String(), Limit: b.Limit, Window: b.Window.String(), Refused: perBucket[i], Never: perBucket[i] == 0})
	}
	slices.SortStableFunc(out.Limited, func(a, b ReplayClient) int { return cmp.Compare(b.Refused, a.Refused) })
	out.LimitedAddresses = len(out.Limited)
	out.Limited = out.Limited[:min(len(out.Limited), 100)]
	out.notes(rp, m)
	return out
}

func (rp *replayer) limited(m *measurement, cl *client, t *tally, class string) ReplayClient {
	rc := ReplayClient{Address: m.name(cl), Class: class, Agent: cl.agent.text, Agents: len(cl.agents), Pages: t.pages, Refused: t.refused,
		First: time.Unix(t.first, 0).UTC(), Last: time.Unix(t.last, 0).UTC(), ByBucket: map[string]int64{}}
	for i, n := range t.byBucket {
		if n > 0 {
			rc.ByBucket[rp.opts.Policy.Buckets[i].Name] = n
		}
	}
	return rc
}

// class names what a client is for a replay.
func (m *measurement) class(cl *client) string {
	f := m.facts[cl]
	switch {
	case cl.key.group == crawlers && f.crawler.Verified:
		return ClassVerified
	case cl.key.group == crawlers:
		return ClassClaimed
	case cl.key.group != visitors:
		return cl.key.group.String()
	}
	return f.kind.String()
}

func (r *Replayed) notes(rp *replayer, m *measurement) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	for _, b := range r.Buckets {
		if b.Never {
			add("%s (%d per %s) never fires on this log.", b.Name, b.Limit, b.Window)
		}
	}
	if rp.late > 0 {
		add("%d pages were more than two minutes out of order and were decided late.", rp.late)
	}
	if rp.noAddress > 0 {
		add("%d pages have no client address and were not replayed.", rp.noAddress)
	}
	if rp.storeErrors > 0 {
		add("%d decisions met an error of the store.", rp.storeErrors)
	}
	if m.norms.embedded > 0 {
		add("%d page-like requests were parts of a page by their referrers; a live Stile tells them by their headers, this replay counted them.", m.norms.embedded)
	}
}
