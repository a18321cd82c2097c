package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/bench"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/stores/open"
)

type benchCmd struct {
	Store    []string      `placeholder:"URL" sep:"none" help:"Store to measure; may be repeated; default: this process's memory."`
	Out      string        `placeholder:"DIR" help:"Write one result file for each store into this folder; default: none."`
	Duration time.Duration `placeholder:"TIME" default:"2s" help:"How long each of the four loads lasts; default: 2s."`
	Server   string        `placeholder:"TEXT" help:"What the server is, for the result, if it does not say so itself."`
	JSON     bool          `name:"json" help:"Print the results as JSON."`
}

// Help is shown by --help.
func (benchCmd) Help() string {
	return "Measures what a navigation costs each store in each state, and how fast decisions are. `stile cost` multiplies the operations by prices.\n\n" +
		"A store that bills by operation bills this: some thousand operations, and as many as it can do for four times the duration. " +
		"The records have a site name of their own and expire by themselves.\n\n" +
		"Examples:\n" +
		"  stile bench --store redis://127.0.0.1:6379 --out results\n" +
		"  FIRESTORE_EMULATOR_HOST=127.0.0.1:8282 stile bench --store firestore://demo --store memory: --duration 500ms"
}

// Run measures one store after the other. A store that could not be measured does
// not keep the others from it.
func (c *benchCmd) Run(ctx context.Context, t *terminal) error {
	registry, err := all.Registry()
	if err != nil {
		return err
	}
	if len(c.Store) == 0 {
		c.Store = []string{"memory:"}
	}
	if c.Duration < time.Millisecond || c.Duration > time.Hour {
		return misuse(fmt.Errorf("--duration: want a time from 1ms to 1h"))
	}
	for _, url := range c.Store {
		if err := open.Validate(url, registry, open.Options{Getenv: t.getenv}); err != nil {
			return misuse(err)
		}
	}
	var results []*bench.Result
	var errs []error
	for _, url := range c.Store {
		fmt.Fprintln(t.stderr, "measuring", plain(open.Redact(url)), "...")
		r, err := bench.Measure(ctx, bench.Config{
			URL: url, Registry: registry, Getenv: t.getenv, Duration: c.Duration, Server: c.Server, Now: t.now,
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", open.Redact(url), err))
			continue
		}
		if c.Out != "" {
			name, err := r.Write(c.Out)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			fmt.Fprintln(t.stderr, "wrote", plain(name))
		}
		results = append(results, r)
	}
	if c.JSON {
		if results == nil {
			results = []*bench.Result{}
		}
		errs = append(errs, writeJSON(t.stdout, results))
	} else {
		for i, r := range results {
			if i > 0 {
				fmt.Fprintln(t.stdout)
			}
			errs = append(errs, benchTable(t.stdout, r))
		}
	}
	return errors.Join(errs...)
}

// benchTable prints a result for people.
func benchTable(out io.Writer, r *bench.Result) error {
	where := "over the network"
	if r.Store.Loopback {
		where = "on this machine: the network is missing from the times"
	}
	fmt.Fprintf(out, "%s (%s, %s), %s\n", r.Store.Name, plain(r.Store.Server), r.Store.Kind, where)
	fmt.Fprintf(out, "%d cores, %s, %s/%s, %s\n", r.Machine.Cores, r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Date.Format(time.DateOnly))
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "state\t%ss\ttrips\tbytes out\tbytes in\tp50\tp90\tp99\t\n", r.Store.Unit)
	for _, s := range r.States {
		per := func(n int64) string { return fmt.Sprintf("%.4g", float64(n)/float64(s.Navigations)) }
		bytes := func(n *int64) string {
			if n == nil {
				return "unknown"
			}
			return fmt.Sprintf("%.0f", float64(*n)/float64(s.Navigations))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, per(s.Operations()), per(s.Trips), bytes(s.BytesOut), bytes(s.BytesIn), latency(s.Latency))
	}
	if r.Floor != nil {
		fmt.Fprintf(w, "%s\t\t\t\t\t%s\t\n", r.Floor.What, latency(r.Floor.Latency))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "load\tways\tdecisions/s\terrors\tp50\tp90\tp99\t")
	for _, l := range r.Loads {
		fmt.Fprintf(w, "%s (%d keys)\t%d\t%.0f\t%d\t%s\t\n", l.Keys, l.Distinct, l.Ways, l.PerSecond, l.Errors, latency(l.Latency))
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note: "+plain(n))
	}
	return w.Flush()
}

func latency(l bench.Latency) string {
	us := func(v float64) string {
		return time.Duration(v * float64(time.Microsecond)).String()
	}
	return us(l.P50) + "\t" + us(l.P90) + "\t" + us(l.P99)
}
