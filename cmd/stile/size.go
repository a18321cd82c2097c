package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/sizing"
	"github.com/stilehq/stile/sizing/accesslog"
	"github.com/stilehq/stile/stores/memory"
)

type sizeCmd struct {
	PolicyOut string `placeholder:"FILE" help:"Write the proposed limits as a policy file; one that exists is replaced."`
	HTML      string `name:"html" placeholder:"FILE" help:"Write one page with plots."`
	Policy    string `placeholder:"FILE" help:"Count as pages what this policy counts; default: what the example policy counts."`
	JSON      bool   `help:"Write the result as JSON."`

	Logs logFlags `embed:""`
}

// Help is shown by --help.
func (sizeCmd) Help() string {
	return "Reads access logs of any common server or platform once, tells people, shared addresses, robots and abusers apart, " +
		"and proposes limits above what people do and below what the abuser does, or says plainly that there are none. " +
		"Crawlers are proven by the built-in snapshot, and by reverse DNS with --dns.\n\n" +
		"With --pseudonymise, STILE_PSEUDONYM_KEY (16 characters or more) gives an address the same name in every report; " +
		"without it the names are this report's own. The file of --policy-out keeps real addresses.\n\n" +
		"Exit status 1: --policy-out was asked for, and no limits can be proposed.\n\n" +
		"Examples:\n" +
		"  stile size /var/log/nginx/access.log*\n" +
		"  stile size --policy-out stile.yaml --html size.html --tz Europe/Berlin 'logs/**/*.gz'\n" +
		"  kubectl logs deploy/front | stile size --xff-hops 1 --own 192.0.2.0/24 -"
}

// Run measures.
func (c *sizeCmd) Run(ctx context.Context, t *terminal) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	o, known, err := c.Logs.options(ctx, t)
	if err != nil {
		return err
	}
	if c.Policy != "" {
		if err := c.countBy(t, &o); err != nil {
			return err
		}
	}
	inputs, err := c.Logs.inputs(t)
	if err != nil {
		return err
	}
	if c.HTML != "" {
		var done func()
		if inputs, done, err = rereadable(inputs); err != nil {
			return err
		}
		defer done()
	}
	r, err := measure(ctx, t, inputs, o)
	if err != nil {
		return err
	}
	r.Notes = append(r.Notes, known.notes()...)
	if c.PolicyOut != "" && r.Proposal.Policy != "" {
		if err := createFile(c.PolicyOut, func(w io.Writer) error { _, err := io.WriteString(w, r.Proposal.Policy); return err }); err != nil {
			return err
		}
	}
	var cut *sizing.Replayed
	if c.HTML != "" && r.Proposal.Policy != "" {
		if cut, err = c.proposed(ctx, t, inputs, o, r); err != nil {
			return err
		}
	}
	if c.Logs.Pseudonymise {
		key, err := t.pseudonymKey()
		if err != nil {
			return err
		}
		r.Pseudonymise(key)
		if cut != nil {
			cut.Pseudonymise(key)
		}
	}
	if c.HTML != "" {
		if err := createFile(c.HTML, func(w io.Writer) error { return r.WriteHTML(w, cut) }); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		err = writeJSON(t.stdout, r)
	case r.Log.Records == 0:
		_, err = io.WriteString(t.stdout, noRequests(r.Log.Lines, r.Log.Skipped))
	default:
		err = r.WriteText(t.stdout)
	}
	if err == nil && c.PolicyOut != "" && r.Proposal.Policy == "" {
		return badNews(fmt.Errorf("%s was not written: no limits can be proposed (%s)", plain(c.PolicyOut), r.Proposal.Finding))
	}
	if err == nil {
		err = readable(r.Log.Lines, r.Log.Records)
	}
	return err
}

// readable refuses to take a file that is no log for one in which nobody was
// limited.
func readable(lines, records int64) error {
	if lines > 0 && records == 0 {
		return errors.New("no line is a request: is it an access log? --format names a layout of your own")
	}
	return nil
}

// noRequests stands for the tables when there is nothing to put into them.
func noRequests(lines int64, skipped map[string]int64) string {
	if lines == 0 {
		return "The log is empty.\n"
	}
	var why []string
	for _, kind := range slices.Sorted(maps.Keys(skipped)) {
		why = append(why, fmt.Sprintf("%s %d", kind, skipped[kind]))
	}
	return fmt.Sprintf("None of %d lines is a request of a visitor: %s. docs/sizing.md says what each means; --format names a layout of your own.\n", lines, strings.Join(why, ", "))
}

// countBy takes the policy's word for what a page is and who is one client.
func (c *sizeCmd) countBy(t *terminal, o *sizing.Options) error {
	f, _, err := t.loadPolicy(c.Policy)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	p, err := f.Core(t.now())
	if err != nil {
		return err
	}
	o.Count, o.IPv6Prefix = p.Count, p.Client.IPv6Prefix
	return nil
}

// measure reads the logs once.
func measure(ctx context.Context, t *terminal, inputs []accesslog.Input, o sizing.Options) (*sizing.Report, error) {
	shown := t.progress("measuring")
	o.Progress = shown.show
	r, err := sizing.Measure(ctx, inputs, o)
	shown.done()
	if err != nil {
		return nil, interrupted(err)
	}
	return r, nothingRead(int64(r.Log.Inputs), r.Log.Lines, r.Log.Errors)
}

// proposed plays the proposal over the log that it came from, for the plot of
// whom it cuts.
func (c *sizeCmd) proposed(ctx context.Context, t *terminal, inputs []accesslog.Input, o sizing.Options, r *sizing.Report) (*sizing.Replayed, error) {
	none := func(string) string { return "" } // the proposal as it is written
	f, _, err := policy.Parse("the proposal", []byte(r.Proposal.Policy), none)
	if err != nil {
		return nil, fmt.Errorf("the proposed policy is not valid: %w", err)
	}
	p, err := f.Core(t.now())
	if err != nil {
		return nil, err
	}
	p.Count = o.Count
	return play(ctx, t, inputs, o, p)
}

// play replays a policy on stores in memory.
func play(ctx context.Context, t *terminal, inputs []accesslog.Input, o sizing.Options, p core.Policy) (*sizing.Replayed, error) {
	shown := t.progress("replaying")
	o.Progress = shown.show
	r, err := sizing.Replay(ctx, inputs, sizing.ReplayOptions{Options: o, Policy: p, NewStore: func() core.Store { return memory.New(memory.Config{}) }})
	shown.done()
	return r, interrupted(err)
}

// dirOf is where a file's temporary twin must be, so that it can be renamed.
func dirOf(name string) string { return filepath.Dir(name) }

func randomBytes(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return nil, errors.New("no randomness")
	}
	return b, nil
}
