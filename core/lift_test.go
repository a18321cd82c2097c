package core

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

const checkEvery = 30 * time.Second

// pair is two instances over one store.
func pair(t *testing.T, p Policy) (a, b *rig) {
	t.Helper()
	a = newRig(t, p, Options{Control: checkEvery})
	b = newRig(t, p, Options{Control: checkEvery, Store: a.store})
	b.store = a.store
	return a, b
}

func lift(t *testing.T, r *rig, k Key, at time.Time) {
	t.Helper()
	if err := r.Lift(context.Background(), k, time.Time{}, at); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, what string, d Decision, o Outcome, reason Reason) {
	t.Helper()
	if d.Outcome != o || d.Reason != reason {
		t.Errorf("%s: %s (%s), want %s (%s)", what, d.Outcome, d.Reason, o, reason)
	}
}

// TestLiftHoldsEverywhere: the instance that lifts admits at once, the other one
// within the stated time, and it pays one read for that time.
func TestLiftHoldsEverywhere(t *testing.T) {
	t.Parallel()
	a, b := pair(t, Policy{Buckets: []Bucket{hourBucket(3), dayBucket(5)}})
	k := addressKey("203.0.113.9")
	for range 3 {
		a.hit("203.0.113.9", noon)
	}
	want(t, "fourth on a", a.hit("203.0.113.9", noon), Refuse, ReasonOver)
	want(t, "fourth on b", b.hit("203.0.113.9", noon), Refuse, ReasonOver)
	trips := a.store.trips
	for range 50 {
		want(t, "repeat", b.hit("203.0.113.9", noon.Add(10*time.Second)), Refuse, ReasonRemembered)
	}
	if a.store.trips != trips {
		t.Errorf("repeats within %v cost %d trips, want 0", checkEvery, a.store.trips-trips)
	}
	lift(t, a, k, noon.Add(11*time.Second))
	if n := a.store.total(k); n != 0 {
		t.Errorf("%d left in the counters", n)
	}
	want(t, "a, at once", a.hit("203.0.113.9", noon.Add(11*time.Second)), Admit, ReasonWithin)
	want(t, "b, not yet", b.hit("203.0.113.9", noon.Add(29*time.Second)), Refuse, ReasonRemembered)
	want(t, "b, in time", b.hit("203.0.113.9", noon.Add(checkEvery)), Admit, ReasonWithin)
	trips = a.store.trips
	want(t, "third of the new budget", b.hit("203.0.113.9", noon.Add(checkEvery)), Admit, ReasonWithin)
	want(t, "fourth of the new budget", b.hit("203.0.113.9", noon.Add(checkEvery)), Refuse, ReasonOver)
	if n := a.store.trips - trips; n != 3 {
		t.Errorf("an admitted page, a refusal and its refund: %d trips, want 3", n)
	}
}

// TestAdmittedNeverPays: whoever is admitted costs what he cost before.
func TestAdmittedNeverPays(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(1000)}}, Options{Control: time.Microsecond})
	for i := range 100 {
		r.hit("203.0.113.9", noon.Add(time.Duration(i)*time.Second))
	}
	if r.store.trips != 100 || r.store.rows != 100 {
		t.Errorf("100 pages: %d trips, %d rows", r.store.trips, r.store.rows)
	}
}

// TestControlCost: one read per period, whatever is refused meanwhile, and none
// when nobody is told anything.
func TestControlCost(t *testing.T) {
	t.Parallel()
	for every, reads := range map[time.Duration]int{0: 0, checkEvery: 4, time.Hour: 1} {
		r := newRig(t, Policy{Buckets: []Bucket{dayBucket(1)}}, Options{Control: every})
		r.hit("203.0.113.9", noon)
		for i := range 100 {
			r.hit("203.0.113.9", noon.Add(time.Duration(i)*time.Second))
		}
		if n := r.store.trips - 3; n != reads { // charge; charge and refund
			t.Errorf("every %v: %d reads in 100 s of refusals, want %d", every, n, reads)
		}
	}
}

// TestLiftEveryAlgorithm leaves a key as if it had never come.
func TestLiftEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for k := FixedWindow; k <= GCRA; k++ {
		b := Bucket{Name: "b", Key: rows.Address, Algorithm: k, Limit: 4, Window: time.Hour}
		r := newRig(t, Policy{Buckets: []Bucket{b, {Name: "wide", Key: rows.Network, Algorithm: FixedWindow, Limit: 1000, Window: day}}}, Options{})
		fresh, err := r.Peek(context.Background(), addressKey("203.0.113.9"), time.Time{}, noon)
		if err != nil {
			t.Fatal(err)
		}
		// In two windows, so that the sliding ones have a past.
		for i := range 20 {
			r.hit("203.0.113.9", noon.Add(-40*time.Minute+time.Duration(i)*2*time.Minute))
		}
		lift(t, r, addressKey("203.0.113.9"), noon)
		after, err := r.Peek(context.Background(), addressKey("203.0.113.9"), time.Time{}, noon)
		if err != nil || after[0].Count != fresh[0].Count || after[0].Remaining != fresh[0].Remaining || after[0].RetryAfter != 0 {
			t.Errorf("%s: %+v after a lift, %+v when new (%v)", k, after, fresh, err)
		}
		network, err := r.Peek(context.Background(), Key{Kind: rows.Network, Net: (&ClientSource{}).client(mustAddr("203.0.113.9"), ClientOK, 0).Network}, time.Time{}, noon)
		if err != nil || network[0].Count < 2 {
			t.Errorf("%s: another key's counter was lifted too: %+v, %v", k, network, err)
		}
	}
}

// TestLiftKeepsWhatArrives: a hit between reading and taking back stays counted.
func TestLiftKeepsWhatArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{dayBucket(10)}}, Options{})
	for range 5 {
		r.hit("203.0.113.9", noon)
	}
	trips := 0
	r.store.fail = func(b *Batch) error {
		if trips++; trips == 2 { // the taking back
			for c, v := range r.store.cells {
				r.store.cells[c] = v + 1
			}
		}
		return nil
	}
	lift(t, r, addressKey("203.0.113.9"), noon)
	if n := r.store.total(addressKey("203.0.113.9")); n != 1 || trips != 3 {
		t.Errorf("%d counted after %d trips, want 1 after 3", n, trips)
	}
}

// TestLiftDuringARefusal: a lift between a refusal and its being remembered is
// not lost, whenever the other instance looks.
func TestLiftDuringARefusal(t *testing.T) {
	t.Parallel()
	a, b := pair(t, Policy{Buckets: []Bucket{dayBucket(1)}})
	a.hit("203.0.113.9", noon)
	lifted := false
	a.store.fail = func(batch *Batch) error {
		if !lifted && batch.Rows[0].Writes() && !batch.Rows[0].Creates() { // b's refund: it is about to remember
			lifted = true
			a.store.mu.Unlock()
			lift(t, a, addressKey("203.0.113.9"), noon)
			a.store.mu.Lock()
		}
		return nil
	}
	d := b.hit("203.0.113.9", noon)
	if !lifted {
		t.Fatal("the refusal was never met")
	}
	want(t, "the page that met the lift", d, Admit, ReasonWithin)
}

func TestSuspend(t *testing.T) {
	t.Parallel()
	hour, days := hourBucket(60), dayBucket(200)
	log := Bucket{Name: "log", Key: rows.Address, Algorithm: SlidingWindowLog, Limit: 60, Window: time.Hour}
	for name, buckets := range map[string][]Bucket{
		"hour and day": {hour, days},
		"hour only":    {hour},
		"log only":     {log},
		"split rows":   {{Name: "minute", Key: rows.Address, Algorithm: FixedWindow, Limit: 20, Window: time.Minute}, days},
	} {
		a, b := pair(t, Policy{Buckets: buckets})
		k, end := addressKey("203.0.113.9"), noon.Add(36*time.Hour)
		for range 3 {
			a.hit("203.0.113.9", noon)
		}
		if err := a.Suspend(context.Background(), k, time.Time{}, noon, end); err != nil {
			t.Fatal(name, err)
		}
		for _, at := range []time.Time{noon, noon.Add(time.Minute), noon.Add(11 * time.Hour), noon.Add(13 * time.Hour), end.Add(-time.Second)} {
			// A new instance each time: nothing is owed to what one remembers.
			c := newRig(t, Policy{Buckets: buckets}, Options{Store: a.store})
			trips := a.store.trips
			d := c.hit("203.0.113.9", at)
			want(t, name, d, Refuse, ReasonSuspended)
			if left := end.Sub(at); d.RetryAfter != left {
				t.Errorf("%s: at %v may come back in %v, want %v", name, at, d.RetryAfter, left)
			}
			want(t, name+", repeated", c.hit("203.0.113.9", at), Refuse, ReasonSuspended)
			if n := a.store.trips - trips; n != 2 && name != "split rows" {
				t.Errorf("%s: a refused page and its repeat cost %d trips, want 2", name, n)
			}
			want(t, name+", another client", c.hit("203.0.113.10", at), Admit, ReasonWithin)
		}
		want(t, name+", on the instance that counted before", b.hit("203.0.113.9", noon), Refuse, ReasonSuspended)
		want(t, name+", at its end", b.hit("203.0.113.9", end), Admit, ReasonWithin)
	}
}

// TestSuspensionIsReplacedAndLifted: no mark stays, now or in any later window.
func TestSuspensionIsReplacedAndLifted(t *testing.T) {
	t.Parallel()
	a, b := pair(t, Policy{Buckets: []Bucket{hourBucket(60), dayBucket(200)}})
	k := addressKey("203.0.113.9")
	for range 3 {
		a.hit("203.0.113.9", noon)
	}
	for _, length := range []time.Duration{72 * time.Hour, time.Hour} {
		if err := a.Suspend(context.Background(), k, time.Time{}, noon, noon.Add(length)); err != nil {
			t.Fatal(err)
		}
	}
	d := b.hit("203.0.113.9", noon)
	want(t, "shortened", d, Refuse, ReasonSuspended)
	if d.RetryAfter != time.Hour {
		t.Errorf("shortened to an hour, but %v are left", d.RetryAfter)
	}
	states, err := a.Peek(context.Background(), k, time.Time{}, noon)
	if err != nil || states[1].Count != 4 || !states[1].Suspended {
		t.Errorf("the pages before are not counted any more: %+v, %v", states, err)
	}
	lift(t, a, k, noon.Add(time.Minute))
	for c, v := range a.store.cells {
		if c.key == k && v != 0 {
			t.Errorf("%d left in slot %d of epoch %d", v, c.slot, c.epoch)
		}
	}
	want(t, "lifted", b.hit("203.0.113.9", noon.Add(checkEvery)), Admit, ReasonWithin)
}

func TestSuspendRefuses(t *testing.T) {
	t.Parallel()
	narrow := dayBucket(5)
	narrow.Paths, _ = CompilePatterns("/search/**")
	r := newRig(t, Policy{Buckets: []Bucket{narrow, {Name: "clock", Key: rows.User, Algorithm: GCRA, Limit: 5, Window: time.Hour}}}, Options{})
	for _, k := range []Key{addressKey("203.0.113.9"), {Kind: rows.User, ID: "x"}, {Kind: rows.Cookie, ID: "x"}, {}} {
		if err := r.Suspend(context.Background(), k, time.Time{}, noon, noon.Add(time.Hour)); !errors.Is(err, ErrCannotSuspend) {
			t.Errorf("%v: %v, want ErrCannotSuspend", k, err)
		}
	}
	for _, length := range []time.Duration{0, -time.Hour, MaxSuspension + time.Second} {
		if err := r.Suspend(context.Background(), addressKey("203.0.113.9"), time.Time{}, noon, noon.Add(length)); err == nil {
			t.Errorf("%v was accepted", length)
		}
	}
	if r.store.trips != 0 {
		t.Errorf("%d trips for what was refused", r.store.trips)
	}
}

// TestSuspendOuterAndVisitor: keys of networks and of cookies with days of their
// own are suspended as well.
func TestSuspendOuterAndVisitor(t *testing.T) {
	t.Parallel()
	network := Bucket{Name: "network", Key: rows.Network, Algorithm: FixedWindow, Limit: 2000, Window: day}
	visitor := Bucket{Name: "visitor", Key: rows.Cookie, Algorithm: FixedWindow, Limit: 100, Window: day, Visitor: true}
	issued := noon.Add(-30 * time.Hour)
	cookie := fixedIdentity{Identity{Kind: rows.Cookie, ID: "c1", Anchor: issued}}
	r := newRig(t, Policy{Buckets: []Bucket{dayBucket(200), network, visitor}}, Options{Identifiers: []Identifier{cookie}})
	end := noon.Add(48 * time.Hour)
	if err := r.Suspend(context.Background(), Key{Kind: rows.Cookie, ID: "c1"}, issued, noon, end); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{noon, noon.Add(19 * time.Hour), end.Add(-time.Minute)} {
		want(t, "cookie", r.hit("203.0.113.9", at), Refuse, ReasonSuspended)
		r.Forget(Key{Kind: rows.Cookie, ID: "c1"})
	}
	plain := newRig(t, Policy{Buckets: []Bucket{dayBucket(200), network}}, Options{Store: r.store})
	k := Key{Kind: rows.Network, Net: (&ClientSource{}).client(mustAddr("203.0.113.9"), ClientOK, 0).Network}
	if err := plain.Suspend(context.Background(), k, time.Time{}, noon, end); err != nil {
		t.Fatal(err)
	}
	want(t, "network", plain.hit("203.0.113.77", noon), Refuse, ReasonSuspended)
	if n := r.store.total(addressKey("203.0.113.77")); n != 0 {
		t.Errorf("the refused page left %d in the address's counter", n)
	}
	want(t, "another network", plain.hit("203.0.114.77", noon), Admit, ReasonWithin)
}

// TestLiftAll is the kill switch: nobody is refused, everything is counted, and
// it ends by itself.
func TestLiftAll(t *testing.T) {
	t.Parallel()
	a, b := pair(t, Policy{Buckets: []Bucket{dayBucket(1)}})
	ctx := context.Background()
	b.hit("203.0.113.9", noon)
	want(t, "before", b.hit("203.0.113.9", noon), Refuse, ReasonOver)
	if err := a.LiftAll(ctx, noon, noon.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	d := b.hit("203.0.113.9", noon.Add(checkEvery))
	if d.Outcome != Refuse || !d.Observe || d.Refused() {
		t.Errorf("in force after %v: %+v", checkEvery, d)
	}
	if e := b.Explain(ctx, page("203.0.113.9", noon.Add(checkEvery))); !e.Decision.Observe {
		t.Errorf("Explain does not know: %+v", e)
	}
	c, err := a.Control(ctx, noon)
	if err != nil || !c.OpenUntil.Equal(noon.Add(2*time.Hour)) || c.Lifts != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	// Two operators at once cannot add up.
	if err := errors.Join(a.LiftAll(ctx, noon, noon.Add(time.Hour)), b.LiftAll(ctx, noon, noon.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	if d := b.hit("203.0.113.9", noon.Add(59*time.Minute)); d.Refused() {
		t.Errorf("within the hour: %+v", d)
	}
	if d := b.hit("203.0.113.9", noon.Add(61*time.Minute)); !d.Refused() {
		t.Errorf("after the hour: %+v", d)
	}
	if err := errors.Join(a.LiftAll(ctx, noon, noon.Add(3*time.Hour)), a.LiftAll(ctx, noon, noon)); err != nil {
		t.Fatal(err)
	}
	if d := b.hit("203.0.113.9", noon.Add(62*time.Minute)); !d.Refused() {
		t.Errorf("after it was ended: %+v", d)
	}
}

// TestControlFails: a store that does not answer changes nothing, and is not
// asked at every refusal.
func TestControlFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{dayBucket(1)}}, Options{Control: checkEvery})
	r.hit("203.0.113.9", noon)
	r.hit("203.0.113.9", noon)
	r.store.fail = func(*Batch) error { return errStore }
	trips := r.store.trips
	for i := range 60 {
		want(t, "while the store is down", r.hit("203.0.113.9", noon.Add(checkEvery+time.Duration(i)*time.Second/4)), Refuse, ReasonRemembered)
	}
	if n := r.store.trips - trips; n != 1 {
		t.Errorf("%d trips to a store that is down in 15 s, want 1", n)
	}
}

// TestControlUnderLoad is for the race detector: lifts while many are refused.
func TestControlUnderLoad(t *testing.T) {
	t.Parallel()
	a, b := pair(t, Policy{Buckets: []Bucket{dayBucket(5)}})
	var wg sync.WaitGroup
	for _, r := range []*rig{a, b} {
		for w := range 4 {
			wg.Go(func() {
				for i := range 300 {
					r.hit("203.0.113.9", noon.Add(time.Duration(w*300+i)*time.Second))
				}
			})
		}
	}
	wg.Go(func() {
		for i := range 50 {
			if err := a.Lift(context.Background(), addressKey("203.0.113.9"), time.Time{}, noon.Add(time.Duration(i)*time.Second)); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	lift(t, a, addressKey("203.0.113.9"), noon)
	want(t, "b, at the next look", b.hit("203.0.113.9", noon.Add(2*time.Hour)), Admit, ReasonWithin)
}

func TestModeOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Off: true, OnError: FailClosed, Buckets: []Bucket{dayBucket(1)}}, Options{})
	for range 5 {
		want(t, "off", r.hit("203.0.113.9", noon), Pass, ReasonOff)
	}
	if r.store.trips != 0 {
		t.Errorf("%d trips", r.store.trips)
	}
	if e := r.Explain(context.Background(), page("203.0.113.9", noon)); e.Decision.Reason != ReasonOff {
		t.Errorf("%+v", e)
	}
}

// TestExplainFollowsOnError: what a store that cannot be read means is what
// Decide makes of it.
func TestExplainFollowsOnError(t *testing.T) {
	t.Parallel()
	for _, mode := range []FailureMode{FailOpen, FailClosed, FailLocal} {
		r := newRig(t, Policy{OnError: mode, Buckets: []Bucket{dayBucket(1)}}, Options{})
		r.store.fail = func(*Batch) error { return errStore }
		for range 2 {
			e := r.Explain(context.Background(), page("203.0.113.9", noon)).Decision
			d := r.hit("203.0.113.9", noon)
			if e.Outcome != d.Outcome || e.Reason != d.Reason || !errors.Is(e.Err, errStore) {
				t.Errorf("on_error %d: explained as %s (%s, %v), decided %s (%s)", mode, e.Outcome, e.Reason, e.Err, d.Outcome, d.Reason)
			}
		}
	}
}

func TestSuspensionMark(t *testing.T) {
	t.Parallel()
	for _, until := range []time.Time{noon, noon.Add(90 * 24 * time.Hour), time.Date(2083, 1, 1, 0, 0, 0, 0, time.UTC)} {
		for _, n := range []int64{0, 1, 200, suspendedHits} {
			hits, end := suspended(suspension(until) + n)
			if hits != n || end != until.UnixMicro() || suspension(until)+n > 1<<62 {
				t.Errorf("%d hits until %v read as %d, %v", n, until, hits, time.UnixMicro(end))
			}
		}
	}
	if hits, until := suspended(suspendedBit - 1); hits != suspendedBit-1 || until != 0 {
		t.Error("a count was taken for a suspension")
	}
}
