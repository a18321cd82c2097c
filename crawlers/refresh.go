package crawlers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stilehq/stile/crawlers/internal/fetch"
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
				errs = append(errs, r.err)
			}
		}
		if v.apply(ctx, results) == 0 {
			break
		}
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

// dueLists returns up to fetches lists that are due, the longest overdue first.
func (v *Verifier) dueLists() []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Now()
	var due []int
	for range fetches {
		best := -1
		for i := range v.lists {
			if v.cat.Lists[i].URL == "" || v.lists[i].due.After(now) || slices.Contains(due, i) {
				continue
			}
			if best < 0 || v.lists[i].due.Before(v.lists[best].due) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		due = append(due, best)
	}
	return due
}

// result is one finished fetch.
type result struct {
	list     int
	held     Held
	modified string
	same     bool // 304
	err      error
}

func (v *Verifier) fetchList(ctx context.Context, i int) result {
	l := v.cat.Lists[i]
	v.mu.Lock()
	state := v.lists[i]
	v.mu.Unlock()
	want := fetch.Want{URL: l.URL, Accept: "application/json, text/plain, text/csv;q=0.9, */*;q=0.1", MaxBytes: MaxListBytes}
	if !state.held.Partial { // an excerpt has no validator of its own
		want.ETag, want.LastModified = state.held.ETag, state.modified
	}
	now := v.cfg.Now()
	doc, err := v.fetcher.Get(ctx, want)
	if err != nil {
		return result{list: i, err: fmt.Errorf("crawlers: list %s: %w", l.ID, err)}
	}
	if doc.NotModified {
		return result{list: i, same: true}
	}
	prefixes, created, err := ParseList(l.Format, doc.Body, l.MaxPrefixes)
	switch {
	case err != nil:
	case created.After(now.Add(futureSlip)):
		// Taken over, it would refuse every later list as older.
		err = refuse("created in the future, %s", created.Format(time.DateOnly))
	case !created.IsZero() && created.Before(state.held.Created):
		err = refuse("created %s, older than the held one of %s", created.Format(time.RFC3339), state.held.Created.Format(time.RFC3339))
	}
	if err != nil {
		return result{list: i, err: fmt.Errorf("crawlers: list %s: %w", l.ID, err)}
	}
	return result{list: i, modified: doc.LastModified,
		held: Held{Prefixes: prefixes, Created: created, Fetched: now, ETag: doc.ETag, Source: l.URL}}
}

// apply takes finished fetches over and returns how many brought an answer. A
// fetch that failed because the caller's time was up stays due, behind the
// others that are.
func (v *Verifier) apply(ctx context.Context, results []result) (answered int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Now()
	changed := false
	for _, r := range results {
		s := &v.lists[r.list]
		id := v.cat.Lists[r.list].ID
		if r.err != nil {
			if ctx.Err() != nil && !errors.Is(r.err, ErrList) && !errors.Is(r.err, fetch.ErrRefused) {
				s.due = now
				continue
			}
			answered++
			s.failures++
			s.lastErr = r.err
			wait := min(retryAfter<<min(s.failures-1, 8), retryMost)
			s.due = now.Add(jitter(wait))
			v.cfg.Logger.Warn("crawler ranges not refreshed, the held ones serve on", "list", id, "error", r.err, "failures", s.failures, "retry_in", wait)
			continue
		}
		answered++
		s.failures, s.lastErr, s.checked = 0, nil, now
		s.due = now.Add(jitter(v.cfg.Interval))
		if r.same {
			continue
		}
		before := len(s.held.Prefixes)
		s.held, s.modified, s.origin = r.held, r.modified, "fetched"
		changed = true
		v.cfg.Logger.Info("crawler ranges refreshed", "list", id, "prefixes", len(r.held.Prefixes), "before", before, "created", r.held.Created)
	}
	v.warnStale(now)
	if changed {
		v.table.Store(v.build())
	}
	v.schedule()
	return answered
}

// warnStale warns once a day of each list whose content was last confirmed
// longer ago than MaxAge. The caller holds mu.
func (v *Verifier) warnStale(now time.Time) {
	for i := range v.lists {
		s := &v.lists[i]
		if s.origin == "" || v.cat.Lists[i].URL == "" || s.age(now) <= v.cfg.MaxAge || now.Sub(s.warned) < 24*time.Hour {
			continue
		}
		s.warned = now
		v.cfg.Logger.Warn("crawler ranges are old: real crawlers may be limited, released addresses may be exempt",
			"list", v.cat.Lists[i].ID, "age", s.age(now).Round(time.Hour), "max_age", v.cfg.MaxAge)
	}
}

// age is the time since the source last confirmed the content.
func (s *listState) age(now time.Time) time.Duration {
	last := s.held.Fetched
	if s.checked.After(last) {
		last = s.checked
	}
	return max(0, now.Sub(last))
}

// jitter spreads instances that started together: 90 to 110 per cent of d.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}
