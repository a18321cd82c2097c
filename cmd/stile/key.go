package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/wire"
)

type keyCmd struct {
	Show    keyShowCmd    `cmd:"" help:"Show what is counted of a key, and whether it is refused."`
	Lift    keyLiftCmd    `cmd:"" help:"End a refusal or a suspension at once; with --all, refuse nobody for a while."`
	Suspend keySuspendCmd `cmd:"" help:"Refuse every page of a key for a while, on every instance."`
}

// keyTarget is which key of which counters is meant.
type keyTarget struct {
	Policy string   `placeholder:"FILE" help:"Policy file; default: the example policy."`
	Store  string   `placeholder:"URL" help:"Store that the instances share."`
	Issued string   `placeholder:"TIME" help:"When a cookie was issued, as 2026-10-05T12:00:00Z: needed where the policy counts the visitor's days."`
	JSON   bool     `help:"Write the result as JSON."`
	Key    []string `arg:"" optional:"" help:"The key as the hit log has it, kind and id: address 203.0.113.9, network 203.0.113.0/24, user alice, api-key partner, cookie ID, asn 64500, global."`
}

type keyShowCmd struct {
	keyTarget
	All bool `help:"Show what holds for all keys."`
}

// Help is shown by --help.
func (keyShowCmd) Help() string {
	return "Reads the counters and charges nothing.\n\n" +
		"Examples:\n  stile key show --store redis://10.0.0.5 address 203.0.113.9\n  stile key show --store redis://10.0.0.5 --all"
}

type keyLiftCmd struct {
	keyTarget
	All bool           `help:"Refuse nobody, on every instance, for the time of --for. Pages are counted and logged as ever."`
	For *time.Duration `placeholder:"TIME" help:"With --all: for how long; 0s ends it."`
}

// Help is shown by --help.
func (keyLiftCmd) Help() string {
	return "Sets the counters of the windows that hold now back to nothing, and ends a suspension. Instances that remember the refusal hear of it within store.control (30 s), whenever they refuse somebody.\n\n" +
		"Examples:\n  stile key lift --store redis://10.0.0.5 user alice\n" +
		"  stile key lift --store redis://10.0.0.5 --all --for 2h      (the kill switch: nobody is refused for two hours)\n" +
		"  stile key lift --store redis://10.0.0.5 --all --for 0s      (limits hold again)"
}

type keySuspendCmd struct {
	keyTarget
	For time.Duration `placeholder:"TIME" default:"24h" help:"For how long, at most 2160h (90 days); default: 24h."`
}

// Help is shown by --help.
func (keySuspendCmd) Help() string {
	return "Holds from the key's next page on, on every instance, and costs nothing per page: the mark is in the key's own counter. " +
		"What is exempt is not counted, so it is not refused; a policy that observes refuses nobody.\n\n" +
		"Examples:\n  stile key suspend --store redis://10.0.0.5 --for 72h address 203.0.113.9\n" +
		"  stile key lift --store redis://10.0.0.5 address 203.0.113.9      (ends it)"
}

// keyResult is what the commands answer.
type keyResult struct {
	Key       string         `json:"key,omitempty"`
	Done      string         `json:"done,omitempty"` // lifted, suspended
	Refused   bool           `json:"refused"`        // would the next page be, by these counters
	Suspended string         `json:"suspended_until,omitempty"`
	WithinS   int64          `json:"within_s"` // until it holds on every instance; -1 = when what they remember ends
	OpenUntil string         `json:"nobody_refused_until,omitempty"`
	Buckets   []bucketResult `json:"buckets"`
}

// Run shows one key.
func (c *keyShowCmd) Run(ctx context.Context, t *terminal) error {
	return c.with(ctx, t, c.All, func(d *desk) (*keyResult, error) {
		if c.All {
			return d.general(ctx)
		}
		return d.show(ctx)
	})
}

// Run lifts one refusal, or all.
func (c *keyLiftCmd) Run(ctx context.Context, t *terminal) error {
	if c.All && c.For == nil && len(c.Key) == 0 {
		return misuse(errors.New("--all: say for how long, as in --for 2h; --for 0s ends it"))
	}
	if c.All && c.For != nil && (*c.For < 0 || *c.For > core.MaxSuspension) {
		return misuse(fmt.Errorf("--for: want a time up to %s", short(core.MaxSuspension)))
	}
	if !c.All && c.For != nil {
		return misuse(errors.New("--for goes with --all: a lifted key is counted from nothing"))
	}
	return c.with(ctx, t, c.All, func(d *desk) (*keyResult, error) {
		if c.All {
			if err := d.limiter.LiftAll(ctx, d.now, d.now.Add(*c.For)); err != nil {
				return nil, err
			}
			return d.general(ctx)
		}
		if err := d.limiter.Lift(ctx, d.key, d.issued, d.now); err != nil {
			return nil, err
		}
		r, err := d.show(ctx)
		if err == nil {
			r.Done = "lifted"
		}
		return r, err
	})
}

// Run suspends one key.
func (c *keySuspendCmd) Run(ctx context.Context, t *terminal) error {
	if c.For <= 0 || c.For > core.MaxSuspension {
		return misuse(fmt.Errorf("--for: want a time up to %s", short(core.MaxSuspension)))
	}
	return c.with(ctx, t, false, func(d *desk) (*keyResult, error) {
		err := d.limiter.Suspend(ctx, d.key, d.issued, d.now, d.now.Add(c.For))
		if errors.Is(err, core.ErrCannotSuspend) {
			return nil, misuse(fmt.Errorf("%s: %w", plain(d.key.String()), err))
		}
		if err != nil {
			return nil, err
		}
		r, err := d.show(ctx)
		if err == nil {
			r.Done, r.WithinS = "suspended", d.flushS()
		}
		return r, err
	})
}

// A desk is where one key is dealt with.
type desk struct {
	key     core.Key
	issued  time.Time
	now     time.Time
	limiter *core.Limiter
	file    *policy.File
}

// with opens the counters, does one thing and prints its result.
func (c *keyTarget) with(ctx context.Context, t *terminal, all bool, do func(*desk) (*keyResult, error)) error {
	f, _, err := t.loadPolicy(c.Policy)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	d := &desk{now: t.now(), file: f}
	if err := c.parse(d, all); err != nil {
		return misuse(err)
	}
	ready, err := t.counters(ctx, f, c.Store)
	if err != nil {
		return wiringFailure(c.Policy, err)
	}
	defer ready.Close(context.WithoutCancel(ctx))
	switch {
	case ready.StoreProblem != nil:
		return fmt.Errorf("the store: %w", ready.StoreProblem)
	case !ready.Features().Shared:
		return misuse(errors.New("--store: want the store that the instances share; counts in a process's own memory are out of reach from here"))
	}
	d.limiter = ready.Parts().Limiter
	r, err := do(d)
	if err == nil {
		err = ready.Settle(ctx)
	}
	var s *status
	switch {
	case errors.As(err, &s):
		return err
	case err != nil:
		return fmt.Errorf("the store: %w", err)
	case c.JSON:
		return writeJSON(t.stdout, r)
	}
	return r.print(t, f)
}

func (c *keyTarget) parse(d *desk, all bool) (err error) {
	if c.Issued != "" {
		if d.issued, err = time.Parse(time.RFC3339, c.Issued); err != nil {
			return fmt.Errorf("--issued %q: want a time such as 2026-10-05T12:00:00Z", plain(c.Issued))
		}
	}
	text := strings.Join(c.Key, " ")
	if all {
		if text != "" {
			return errors.New("--all is for all keys: name none")
		}
		return nil
	}
	if d.key, err = core.ParseKey(text, d.file.Client.IPv6Prefix); err != nil {
		return errors.New(plain(err.Error()))
	}
	for i := range d.file.Buckets {
		if b := &d.file.Buckets[i]; b.Day == policy.DayVisitor && b.Key.Kind() == d.key.Kind && d.issued.IsZero() {
			return errors.New("--issued: the policy counts this visitor's days from the cookie's issue, so its record cannot be found without it")
		}
	}
	return nil
}

// counters opens what a policy counts in, for a command that looks at single
// keys.
func (t *terminal) counters(ctx context.Context, f *policy.File, url string) (*wire.Ready, error) {
	registry, err := all.Registry()
	if err != nil {
		return nil, err
	}
	return wire.New(ctx, wire.Config{Policy: f, Stores: registry, StoreURL: url, Getenv: t.getenv, HitLog: slog.DiscardHandler, Now: t.now})
}

func (d *desk) show(ctx context.Context) (*keyResult, error) {
	states, err := d.limiter.Peek(ctx, d.key, d.issued, d.now)
	if err != nil {
		return nil, err
	}
	r := &keyResult{Key: d.key.String(), Buckets: []bucketResult{}, WithinS: d.controlS()}
	for _, s := range states {
		// A look is not a page: take back the one that Peek imagines.
		if s.RetryAfter > 0 {
			r.Refused = true
		}
		if s.Suspended {
			r.Suspended = d.now.Add(s.RetryAfter).UTC().Format(time.RFC3339)
		}
		r.Buckets = append(r.Buckets, bucketResult{
			Name: s.Bucket, KeyType: s.Key.String(), Count: max(0, s.Count-1), Limit: s.Limit, Remaining: roomBefore(s),
			WindowS: int64(s.Window / time.Second), ResetS: secondsUp(s.Reset),
		})
	}
	return r, nil
}

// roomBefore is the room before the page that Peek imagines.
func roomBefore(s core.State) int64 {
	if s.RetryAfter > 0 {
		return 0
	}
	return min(s.Limit, s.Remaining+1)
}

// general tells what holds for all keys.
func (d *desk) general(ctx context.Context) (*keyResult, error) {
	is, err := d.limiter.Control(ctx, d.now)
	if err != nil {
		return nil, err
	}
	r := &keyResult{Buckets: []bucketResult{}, WithinS: d.controlS()}
	if is.OpenUntil.After(d.now) {
		r.OpenUntil = is.OpenUntil.UTC().Format(time.RFC3339)
	}
	return r, nil
}

// controlS is within how many seconds instances hear of a lift; -1 = never.
func (d *desk) controlS() int64 {
	if d.file.Store.Control <= 0 {
		return -1
	}
	return secondsUp(d.file.Store.Control)
}

// flushS is how long an instance may go on admitting a suspended key on what it
// has in memory: only keys whose hits are coalesced.
func (d *desk) flushS() (s int64) {
	for i := range d.file.Buckets {
		if b := &d.file.Buckets[i]; b.Key.Kind() == d.key.Kind {
			s = max(s, secondsUp(b.FlushEvery))
		}
	}
	return s
}

// print writes the result for people.
func (r *keyResult) print(t *terminal, f *policy.File) error {
	var b bytes.Buffer
	within := fmt.Sprintf("within %d s on every instance, as soon as it refuses somebody", r.WithinS)
	if r.WithinS < 0 {
		within = "where it is remembered, only when that ends by itself (store.control: 0)"
	}
	switch {
	case r.Key == "" && r.OpenUntil != "":
		fmt.Fprintf(&b, "nobody is refused until %s; in force %s\n", r.OpenUntil, within)
	case r.Key == "":
		fmt.Fprintf(&b, "limits hold (mode: %s); a change is in force %s\n", f.Mode, within)
	case r.Done == "lifted":
		fmt.Fprintf(&b, "%s: lifted; in force %s\n", plain(r.Key), within)
	case r.Done == "suspended" && r.WithinS == 0:
		fmt.Fprintf(&b, "%s: suspended until %s; in force from its next page on\n", plain(r.Key), r.Suspended)
	case r.Done == "suspended":
		fmt.Fprintf(&b, "%s: suspended until %s; in force within %d s, as its pages are counted together (flush_every)\n", plain(r.Key), r.Suspended, r.WithinS)
	case r.Suspended != "":
		fmt.Fprintf(&b, "%s: suspended until %s\n", plain(r.Key), r.Suspended)
	case r.Refused:
		fmt.Fprintf(&b, "%s: refused\n", plain(r.Key))
	default:
		fmt.Fprintf(&b, "%s: admitted\n", plain(r.Key))
	}
	if r.Key != "" && f.Mode != policy.ModeEnforce {
		fmt.Fprintf(&b, "The policy's mode is %s: nobody is refused.\n", f.Mode)
	}
	switch {
	case len(r.Buckets) > 0:
		b.WriteString("\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "  BUCKET\tKEY\tWINDOW\tCOUNT\tLIMIT\tLEFT\tRESET\n")
		for _, s := range r.Buckets {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%d\t%d s\n", plain(s.Name), s.KeyType, short(time.Duration(s.WindowS)*time.Second), s.Count, s.Limit, s.Remaining, s.ResetS)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	case r.Key != "":
		b.WriteString("No bucket of the policy counts this key.\n")
	}
	_, err := t.stdout.Write(b.Bytes())
	return err
}
