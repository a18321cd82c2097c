package crawlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/crawlers/internal/fetch"
)

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
	if state.held.Source == l.URL { // the validators are this URL's own
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

// apply takes finished fetches over and returns how many brought an answer, if
// only a bad one, and which lists failed. A fetch that failed because the caller's
// time was up stays due, behind the others that are.
func (v *Verifier) apply(ctx context.Context, results []result) (answered int, failed []string) {
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
			v.cfg.Logger.Debug("crawler ranges not refreshed", "list", id, "error", r.err, "failures", s.failures, "retry_in", wait)
			failed = append(failed, id)
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
	return answered, failed
}

// warnStale warns once a day, in one line, of the lists whose content was last
// confirmed longer ago than MaxAge. The caller holds mu.
func (v *Verifier) warnStale(now time.Time) {
	var old []string
	oldest := time.Duration(0)
	for i := range v.lists {
		s := &v.lists[i]
		if s.origin == "" || v.cat.Lists[i].URL == "" || s.age(now) <= v.cfg.MaxAge || now.Sub(s.warned) < 24*time.Hour {
			continue
		}
		s.warned = now
		old, oldest = append(old, v.cat.Lists[i].ID), max(oldest, s.age(now))
	}
	if len(old) > 0 {
		v.cfg.Logger.Warn("crawler ranges are old: real crawlers may be limited, released addresses may be exempt",
			"lists", strings.Join(old, ","), "oldest", oldest.Round(time.Hour), "max_age", v.cfg.MaxAge)
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
