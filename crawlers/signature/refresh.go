package signature

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stilehq/stile/crawlers/internal/fetch"
)

// How long a directory is held. The draft allows five minutes at most for a
// failure to be remembered, which also bounds how often unknown keys make us ask.
const (
	directoryType = "application/http-message-signatures-directory+json"
	usualAge      = time.Hour
	leastAge      = 5 * time.Minute
	mostAge       = 24 * time.Hour
	retryAfter    = leastAge
	pause         = time.Minute
)

// Due reports whether [Verifier.Refresh] would find work now; it costs a few
// atomic reads per agent.
func (v *Verifier) Due() bool {
	now := v.cfg.Now()
	for _, a := range v.agents {
		if a.dueAt(now) {
			return true
		}
	}
	return false
}

// dueAt: past its time, or a request named a key that is not held and the last
// attempt, good or bad, is long enough ago.
func (a *agent) dueAt(now time.Time) bool {
	due := a.due.Load()
	if a.want.Load() {
		due = min(due, a.tried.Load()+int64(leastAge))
	}
	return due <= now.UnixNano()
}

// Refresh fetches the directories that are due, one after the other, until
// budget is spent (0 or less: no bound) or ctx ends. It returns at once when
// nothing is due or another refresh is at work. Held keys stay in force when a
// fetch fails. A spent budget pauses budgeted refreshes for a minute. The error
// joins what failed; it is logged already.
func (v *Verifier) Refresh(ctx context.Context, budget time.Duration) error {
	if !v.Due() || (budget > 0 && v.cfg.Now().UnixNano() < v.pauseAt.Load()) || !v.flight.TryLock() {
		return nil
	}
	defer v.flight.Unlock()
	outer := ctx
	if budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, budget)
		defer cancel()
	}
	var errs []error
	for _, a := range v.agents {
		if !a.dueAt(v.cfg.Now()) || ctx.Err() != nil {
			continue
		}
		err := v.fetch(ctx, a)
		now := v.cfg.Now()
		switch {
		case err == nil:
		case outer.Err() != nil:
			return errors.Join(append(errs, err)...) // the caller left: still due
		default:
			a.failures++
			a.tried.Store(now.UnixNano())
			a.due.Store(now.Add(retryAfter).UnixNano())
			v.cfg.Logger.Warn("signing keys not refreshed, the held ones serve on", "agent", a.Name, "error", err, "failures", a.failures)
			errs = append(errs, err)
		}
	}
	if budget > 0 && outer.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		v.pauseAt.Store(v.cfg.Now().Add(pause).UnixNano())
	}
	return errors.Join(errs...)
}

func (v *Verifier) fetch(ctx context.Context, a *agent) error {
	held := a.keys.Load()
	want := fetch.Want{URL: a.Directory, Accept: directoryType, MaxBytes: maxDirectory}
	if held != nil {
		want.ETag = held.etag
	}
	doc, err := v.fetcher.Get(ctx, want)
	if err != nil {
		return fmt.Errorf("signature: agent %s: %w", a.Name, err)
	}
	now := v.cfg.Now()
	next := &keySet{confirmed: now, etag: doc.ETag}
	if doc.NotModified {
		next.byID, next.etag = held.byID, held.etag
	} else {
		switch doc.MediaType {
		case directoryType, "application/jwk-set+json", "application/json":
		default:
			return fmt.Errorf("signature: agent %s: %w: media type %q", a.Name, ErrDirectory, doc.MediaType)
		}
		if next.byID, err = parseDirectory(doc.Body, v.cfg.AllowTestKey); err != nil {
			return fmt.Errorf("signature: agent %s: %w", a.Name, err)
		}
	}
	age := doc.MaxAge
	if age == 0 {
		age = usualAge
	}
	a.failures = 0
	a.want.Store(false)
	a.tried.Store(now.UnixNano())
	a.due.Store(now.Add(min(max(age, leastAge), mostAge)).UnixNano())
	a.keys.Store(next)
	return nil
}

// A Status describes one agent's keys.
type Status struct {
	Agent     string    `json:"agent"`
	Class     string    `json:"class"`
	Directory string    `json:"directory"`
	Keys      int       `json:"keys"`
	Confirmed time.Time `json:"confirmed,omitzero"` // when the directory last answered
}

// List describes every agent of the allow-list, in its order.
func (v *Verifier) List() []Status {
	out := make([]Status, 0, len(v.agents))
	for _, a := range v.agents {
		s := Status{Agent: a.Name, Class: a.Class, Directory: a.Directory}
		if k := a.keys.Load(); k != nil {
			s.Keys, s.Confirmed = len(k.byID), k.confirmed
		}
		out = append(out, s)
	}
	return out
}
