package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/sizing"
	"github.com/stilehq/stile/sizing/accesslog"
)

type replayCmd struct {
	Policy  string `placeholder:"FILE" required:"" help:"The policy that is played."`
	Compare string `placeholder:"FILE" help:"A second policy to play over the same logs, for a table of both."`
	HTML    string `name:"html" placeholder:"FILE" help:"Write one page with plots."`
	JSON    bool   `help:"Write the result as JSON."`

	Logs logFlags `embed:""`
}

// Help is shown by --help.
func (replayCmd) Help() string {
	return "Runs the limiter itself with the log's clock: who would have been limited, when, and by which bucket. " +
		"The log's own client field stands for the policy's client source; where it is a proxy, use --xff-hops and the like. " +
		"Observing and enforcing policies give the same numbers.\n\n" +
		"Exit status 1: --policy would limit a verified crawler or an engaged visitor.\n\n" +
		"Examples:\n" +
		"  stile replay --policy stile.yaml /var/log/nginx/access.log*\n" +
		"  stile replay --policy strict.yaml --compare stile.yaml --html replay.html access.log.gz\n" +
		"  stile replay --policy next.yaml hits.jsonl           (the hit log of stile serve)"
}

// A replayResult is one policy's outcome in JSON.
type replayResult struct {
	Policy  string `json:"policy"`
	BadNews bool   `json:"bad_news"` // an engaged visitor or a verified crawler would be limited
	*sizing.Replayed
	Compare *replayResult `json:"compare,omitempty"`
}

// Run replays one policy or two.
func (c *replayCmd) Run(ctx context.Context, t *terminal) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	if c.Policy == "-" && c.Compare == "-" {
		return misuse(errors.New("--policy and --compare cannot both be standard input"))
	}
	o, known, err := c.Logs.options(ctx, t)
	if err != nil {
		return err
	}
	p, err := c.load(t, c.Policy)
	if err != nil {
		return err
	}
	var other core.Policy
	if c.Compare != "" {
		if other, err = c.load(t, c.Compare); err != nil {
			return err
		}
	}
	inputs, err := c.Logs.inputs(t)
	if err != nil {
		return err
	}
	if c.Compare != "" || c.HTML != "" {
		var done func()
		if inputs, done, err = rereadable(inputs); err != nil {
			return err
		}
		defer done()
	}
	first, err := c.play(ctx, t, inputs, o, c.Policy, p)
	if err != nil {
		return err
	}
	if c.Compare != "" {
		if first.Compare, err = c.play(ctx, t, inputs, o, c.Compare, other); err != nil {
			return err
		}
	}
	first.Notes = append(first.Notes, known.notes()...)
	if c.HTML != "" {
		if err := c.page(ctx, t, inputs, o, p, first); err != nil {
			return err
		}
	}
	if c.Logs.Pseudonymise && c.HTML == "" { // with a page it has been done
		if err := c.pseudonymise(t, first, nil); err != nil {
			return err
		}
	}
	if err := c.write(t, first); err != nil {
		return err
	}
	if first.BadNews {
		return badNews(nil)
	}
	return readable(first.Lines, first.Records)
}

func (c *replayCmd) load(t *terminal, path string) (core.Policy, error) {
	f, _, err := t.loadPolicy(path)
	if err != nil {
		return core.Policy{}, policyFailure(path, err)
	}
	return f.Core(t.now())
}

// play replays one policy. What its buckets count by and no log tells is said,
// lest "never fires" be taken for a finding.
func (c *replayCmd) play(ctx context.Context, t *terminal, inputs []accesslog.Input, o sizing.Options, path string, p core.Policy) (*replayResult, error) {
	o.IPv6Prefix = p.Client.IPv6Prefix
	r, err := play(ctx, t, inputs, o, p)
	if err != nil {
		return nil, err
	}
	for _, b := range p.Buckets {
		switch b.Key {
		case rows.Address, rows.Network, rows.Global:
		default:
			r.Notes = append(r.Notes, fmt.Sprintf("%s counts by %s, which no log tells: it was not replayed, and the visitors whom it would count are counted by their addresses.", b.Name, b.Key))
		}
	}
	for _, class := range r.Classes {
		if class.Refused == 0 {
			continue
		}
		switch class.Name {
		case "monitoring":
			r.Notes = append(r.Notes, fmt.Sprintf("Monitoring would lose %d of %d pages and report outages that are none: put its addresses into exempt.networks.", class.Refused, class.Pages))
		case "shared":
			r.Notes = append(r.Notes, fmt.Sprintf("%s, many people each, would lose %d of %d pages: exempt them, or count their people by a signed cookie.",
				count2(class.Limited, "shared address", "shared addresses"), class.Refused, class.Pages))
		}
	}
	return &replayResult{Policy: path, BadNews: r.BadNews(), Replayed: r}, nil
}

// page measures the log as well, since the plots show the limits within what
// visitors do.
func (c *replayCmd) page(ctx context.Context, t *terminal, inputs []accesslog.Input, o sizing.Options, p core.Policy, r *replayResult) error {
	o.Count, o.IPv6Prefix = p.Count, p.Client.IPv6Prefix
	m, err := measure(ctx, t, inputs, o)
	if err != nil {
		return err
	}
	if c.Logs.Pseudonymise {
		if err := c.pseudonymise(t, r, m); err != nil {
			return err
		}
	}
	return createFile(c.HTML, func(w io.Writer) error { return m.WriteHTML(w, r.Replayed) })
}

func (c *replayCmd) pseudonymise(t *terminal, r *replayResult, m *sizing.Report) error {
	key, err := t.pseudonymKey()
	if err != nil {
		return err
	}
	r.Replayed.Pseudonymise(key)
	if r.Compare != nil {
		r.Compare.Replayed.Pseudonymise(key)
	}
	if m != nil {
		m.Pseudonymise(key)
	}
	return nil
}

func (c *replayCmd) write(t *terminal, r *replayResult) error {
	if c.JSON {
		return writeJSON(t.stdout, r)
	}
	if r.Pages == 0 {
		_, err := fmt.Fprintf(t.stdout, "Nothing in %s is a page by this policy: nobody would be limited.\n", count(int(r.Lines), "line"))
		return err
	}
	if r.Compare == nil {
		return r.Replayed.WriteText(t.stdout)
	}
	a, b := shortNames(c.Policy, c.Compare)
	return sizing.WriteComparison(t.stdout, plain(a), r.Replayed, plain(b), r.Compare.Replayed)
}

// shortNames are the files' names without folders, unless those are the same.
func shortNames(a, b string) (string, string) {
	if x, y := filepath.Base(a), filepath.Base(b); x != y {
		return x, y
	}
	return a, b
}
