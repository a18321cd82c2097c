package core

import (
	"context"
	"sync/atomic"
	"time"
)

// The control record: what an operator tells all instances. Instances read it
// only while they refuse somebody, since it can do nothing but end refusals. A
// navigation that is admitted never pays for it.
const (
	controlPlan = 0x5711e001 // another meaning of the slots, another number

	slotLifts = 0 // counts lifts: when it changes, what is remembered is forgotten
	slotOpen  = 1 // Unix seconds until which nobody is refused
)

// Control is what the control record says.
type Control struct {
	Lifts     int64     // how often a refusal was lifted
	OpenUntil time.Time // nobody is refused until then; zero or past = not in force
}

// control is one instance's view of the record.
type control struct {
	every      int64        // microseconds between reads
	due        atomic.Int64 // Unix microseconds of the next read; 0 = at once
	lifts      atomic.Int64 // as last read
	generation atomic.Int64 // of lifts seen
	open       atomic.Int64 // Unix microseconds
}

func controlRow(t time.Time) Row {
	const day = 24 * 3600
	// Far off, in steps of a day, so that a store sets it seldom.
	return Row{Key: controlKey, Plan: controlPlan, Until: (t.Unix()/day + 400) * day}
}

// Control reads the control record: one operation. The error is the store's.
func (l *Limiter) Control(ctx context.Context, t time.Time) (Control, error) {
	r := controlRow(t)
	r.Cells = []Cell{{Slot: slotLifts, Until: r.Until}, {Slot: slotOpen, Until: r.Until}}
	b := Batch{Now: t, Rows: []Row{r}}
	if err := l.store.Apply(ctx, &b); err != nil {
		return Control{}, err
	}
	c := Control{Lifts: b.Rows[0].Cells[0].Value}
	if open := b.Rows[0].Cells[1].Value; open > 0 {
		c.OpenUntil = time.Unix(open, 0)
	}
	return c, nil
}

// announceLift makes the instances forget what they remember of refused keys,
// all of them: each such key costs one more refusal by the store.
func (l *Limiter) announceLift(ctx context.Context, t time.Time) error {
	return l.writeControl(ctx, t, Cell{Slot: slotLifts, Add: 1})
}

func (l *Limiter) writeControl(ctx context.Context, t time.Time, c Cell) error {
	r := controlRow(t)
	c.Until = r.Until
	r.Cells = []Cell{c}
	return l.store.Apply(ctx, &Batch{Now: t, Rows: []Row{r}})
}

// LiftAll lets nobody be refused until then, on every instance, within
// [Options].Control of theirs: pages are counted and logged as ever, as under a
// policy that observes. It ends by itself; an until that is not after t ends it
// now. It costs two trips. Requests that fail closed with the store are not
// refusals: they stay 503. The error is the store's; the call may be repeated.
func (l *Limiter) LiftAll(ctx context.Context, t, until time.Time) error {
	was, err := l.Control(ctx, t)
	if err != nil {
		return err
	}
	// Raised by a floor and lowered by its whole value, two operators at once
	// cannot add up to a time that neither meant.
	if was.OpenUntil.After(until) {
		if err := l.writeControl(ctx, t, Cell{Slot: slotOpen, Add: -was.OpenUntil.Unix()}); err != nil {
			return err
		}
	}
	if !until.After(t) {
		return nil
	}
	return l.writeControl(ctx, t, Cell{Slot: slotOpen, Floor: until.Unix()})
}

// review looks at a refusal in the light of the control record. Generation is
// that of when the decision began.
func (l *Limiter) review(ctx context.Context, r *Request, d *Decision, who *party, generation int64) {
	l.consult(ctx, r.Time)
	c := l.control
	if c.generation.Load() != generation {
		// Something was lifted since this decision began. What it put into the
		// memory may be older than the lift, and it may have come from there.
		l.memory.forgetAll()
		d.Class, d.Reason = l.policy.Count.classify(r)
		d.Outcome, d.States, d.Binding, d.RetryAfter = Pass, nil, -1, 0
		d.Err, d.StoreTime, d.Observe = nil, 0, l.policy.Observe
		l.charges(ctx, r, d, who)
	}
	if d.Outcome == Refuse && r.Time.UnixMicro() < c.open.Load() {
		d.Observe = true
	}
}

// consult reads the control record if that is due; of requests at the same time
// one does. A failure changes nothing, and is not repeated before the next time.
func (l *Limiter) consult(ctx context.Context, t time.Time) {
	c, now := l.control, t.UnixMicro()
	due := c.due.Load()
	ahead := due - now // more than a period when the clock was set back
	if ahead > 0 && ahead <= c.every || !c.due.CompareAndSwap(due, now+c.every) {
		return
	}
	is, err := l.Control(ctx, t)
	if err != nil {
		return
	}
	open := int64(0)
	if !is.OpenUntil.IsZero() {
		open = is.OpenUntil.UnixMicro()
	}
	c.open.Store(open)
	// The first look counts as a change unless nothing was ever lifted: a lift
	// may have come between the refusal and this look.
	if c.lifts.Swap(is.Lifts) != is.Lifts {
		c.generation.Add(1)
		l.memory.forgetAll()
	}
}
