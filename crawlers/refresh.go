package crawlers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// listState is what is known of one list. Guarded by Verifier.mu.
type listState struct {
	held     Held
	origin   string // "shipped", "file", "fetched", or "" when nothing is held
	modified string // Last-Modified of held, where the source gave no ETag
	checked  time.Time
	due      time.Time
	failures int
	lastErr  error
	warned   time.Time
}

// Backoff after a failed fetch, doubled each time, and after a budget ran out.
const (
	retryAfter = 10 * time.Minute
	retryMost  = 6 * time.Hour
	pause      = time.Minute
	lookups    = 8 // reverse proofs in one round, at once
	fetches    = 4 // lists fetched at once
	futureSlip = 24 * time.Hour
)

// start fills the lists from the snapshots, the newest content of each.
func (v *Verifier) start() error {
	v.lists = make([]listState, len(v.cat.Lists))
	take := func(s Snapshot, origin string) {
		for i, l := range v.cat.Lists {
			h, ok := s[l.ID]
			if ok && (v.lists[i].origin == "" || !h.when().Before(v.lists[i].held.when())) {
				v.lists[i].held, v.lists[i].origin = h, origin
			}
		}
	}
	if !v.cfg.NoShipped {
		s, err := Shipped()
		if err != nil {
			return err
		}
		take(s, "shipped")
	}
	for _, s := range v.cfg.Snapshots {
		take(s, "file")
	}
	for i := range v.lists {
		if l := &v.lists[i]; !l.held.Partial && l.origin != "" {
			l.due = l.held.Fetched.Add(v.cfg.Interval)
		}
	}
	v.table.Store(v.build())
	v.schedule()
	return nil
}

// when dates a list's content: its own creation time, else when it was had.
func (h Held) when() time.Time {
	if !h.Created.IsZero() {
		return h.Created
	}
	return h.Fetched
}

// build makes the table from the lists. The caller holds mu, or is alone.
func (v *Verifier) build() *table {
	var sources []source
	for i := range v.lists {
		if p := v.lists[i].held.Prefixes; len(p) > 0 {
			sources = append(sources, source{list: i, prefixes: p, agents: v.listAgents[i], lone: v.listLone[i]})
		}
	}
	return newTable(sources)
}

// schedule sets the time of the next fetch. The caller holds mu, or is alone.
func (v *Verifier) schedule() {
	next := int64(math.MaxInt64) // nothing to fetch, ever
	for i := range v.lists {
		switch due := v.lists[i].due; {
		case v.cat.Lists[i].URL == "":
		case due.IsZero():
			next = math.MinInt64 // since ever; UnixNano of the zero time is undefined
		default:
			next = min(next, due.UnixNano())
		}
	}
	v.nextDue.Store(next)
}

// Due reports whether [Verifier.Refresh] would find work now. It costs a few
// atomic reads.
func (v *Verifier) Due() bool {
	return v.queue.length.Load() > 0 || v.nextDue.Load() <= v.cfg.Now().UnixNano() ||
		(v.cfg.Signatures != nil && v.cfg.Signatures.Due())
}

// Refresh does the work that is due: queued reverse proofs, and beside them the
// key directories of signed agents, then lists, the longest overdue first. It returns when that is done, when budget is spent or
// when ctx ends, whichever is first, and at once when nothing is due or another
// refresh is at work. budget 0 or less means no bound but ctx.
//
// On request-billed instances call it beside the origin call of a request and
// cancel ctx when the answer is complete: no request then waits for it. A
// budget that runs out pauses budgeted refreshes for a minute, so that a
// hanging server costs one request a minute at most; a cancelled ctx does not.
// The error joins what failed; it is logged already, and the held tables serve
// on: the caller may ignore it.
func (v *Verifier) Refresh(ctx context.Context, budget time.Duration) error {
	_, err := v.tryRefresh(ctx, budget)
	return err
}

// tryRefresh also says whether it was its turn.
func (v *Verifier) tryRefresh(ctx context.Context, budget time.Duration) (ran bool, err error) {
	if !v.Due() || (budget > 0 && v.cfg.Now().UnixNano() < v.pauseAt.Load()) || !v.flight.TryLock() {
		return false, nil
	}
	defer v.flight.Unlock()
	if budget > 0 {
		bounded, cancel := context.WithTimeout(ctx, budget)
		defer cancel()
		err := v.refresh(bounded)
		if ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded) {
			v.pauseAt.Store(v.cfg.Now().Add(pause).UnixNano())
		}
		return true, err
	}
	return true, v.refresh(ctx)
}

func (v *Verifier) refresh(ctx context.Context) error {
	// Beside each other: a DNS that hangs must not use the lists' time up.
	var proofs sync.WaitGroup
	proofs.Go(func() { v.lookups(ctx) })
	defer proofs.Wait()
	var errs []error
	var failed []string
	var why error
	if v.cfg.Signatures != nil {
		if err := v.cfg.Signatures.Refresh(ctx, 0); err != nil {
			errs = append(errs, err)
		}
	}
	for ctx.Err() == nil {
		due := v.dueLists()
		if len(due) == 0 {
			break
		}
		results := make([]result, len(due))
		var wg sync.WaitGroup
		for k, i := range due {
			wg.Go(func() { results[k] = v.fetchList(ctx, i) })
		}
		wg.Wait()
		for _, r := range results {
			if r.err != nil {
				if why == nil {
					why = r.err
				}
				errs = append(errs, r.err)
			}
		}
		answered, bad := v.apply(ctx, results)
		failed = append(failed, bad...)
		if answered == 0 {
			break
		}
	}
	if len(failed) > 0 { // one line for all of them: without a network they fail alike
		v.cfg.Logger.Warn("crawler ranges not refreshed, the held ones serve on; they are tried again", "lists", strings.Join(failed, ","), "first_error", why)
	}
	return errors.Join(errs...)
}

// Run refreshes on a timer and as claims arrive, until ctx ends. Start it once,
// in a goroutine, where the process keeps its CPU between requests.
func (v *Verifier) Run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		round, cancel := context.WithTimeout(ctx, v.cfg.FetchTimeout)
		ran, _ := v.tryRefresh(round, 0) // the error is logged there; the held tables serve on
		cancel()
		if ran && v.queue.length.Load() > 0 && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-v.queue.wake:
		}
	}
}

// lookups proves one round of queued addresses and remembers the outcomes.
func (v *Verifier) lookups(outer context.Context) {
	addrs := v.queue.take(lookups)
	if len(addrs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(outer, v.cfg.LookupTimeout)
	defer cancel()
	done := make([]lookup, len(addrs))
	var wg sync.WaitGroup
	for i, a := range addrs {
		wg.Go(func() {
			agents, out, _ := v.reverse(ctx, a)
			done[i] = lookup{a, agents, out}
		})
	}
	wg.Wait()
	if outer.Err() != nil { // cut short by the caller, not by the DNS: the next hit asks again
		done = slices.DeleteFunc(done, func(d lookup) bool { return d.out == undecided })
	}
	v.verdicts.put(done, v.cfg.Now())
}

// jitter spreads instances that started together: 90 to 110 per cent of d.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}
