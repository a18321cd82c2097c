package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers"
	"github.com/stilehq/stile/sizing/accesslog"
)

type reportCmd struct {
	Since        string `placeholder:"TIME" help:"When the limit came into force, as 2026-11-30T12:00:00Z or 2026-11-30; default: the first refusal."`
	DNS          bool   `name:"dns" help:"Prove crawlers by reverse DNS too: asks your resolver about addresses that claim to be one."`
	Pseudonymise bool   `help:"Replace client addresses by names, for a report that leaves the house."`
	JSON         bool   `help:"Write the result as JSON."`

	Hitlog []string `arg:"" help:"Hit logs: files, patterns, - for standard input; plain, .gz or .zst."`
}

// Help is shown by --help.
func (reportCmd) Help() string {
	return "Reads the hit log: who is limited now and why, which people were hit, and whether abusers slowed down, left or spread. " +
		"Lines of other programs are passed over, and so is what a platform writes before ours. " +
		"For what a changed policy would do, feed the same log to \"stile replay\".\n\n" +
		"Exit status 1: somebody who looks like a person, or a verified crawler, was limited (or would be, observing).\n\n" +
		"Examples:\n" +
		"  stile report hits.jsonl\n" +
		"  journalctl -u stile -o cat --since -7d | stile report -\n" +
		"  stile report --since 2026-11-24 --json 'hits-*.jsonl.gz' | jq .abusers"
}

// Run reports.
func (c *reportCmd) Run(ctx context.Context, t *terminal) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	since, err := moment(c.Since)
	if err != nil {
		return misuse(fmt.Errorf("--since: %w", err))
	}
	var key []byte
	if c.Pseudonymise {
		if key, err = t.pseudonymKey(); err != nil {
			return err
		}
	}
	inputs, err := accesslog.Files(t.stdin, c.Hitlog...)
	if err != nil {
		return err
	}
	known, err := crawlerProof(ctx, crawlers.Config{Logger: slog.New(slog.DiscardHandler), Now: t.now}, c.DNS)
	if err != nil {
		return err
	}
	h := newHitCollector()
	shown := t.progress("reading")
	h.r.Log, err = readHits(ctx, inputs, t.now(), shown.show, h.take)
	shown.done()
	if err != nil {
		return interrupted(err)
	}
	if err := nothingRead(int64(h.r.Log.Inputs), h.r.Log.Lines, h.r.Log.Errors); err != nil {
		return err
	}
	if h.r.Log.Entries == 0 && h.r.Log.Lines > 0 {
		return fmt.Errorf("none of %d lines is of a hit log; access logs are for \"stile size\"", h.r.Log.Lines)
	}
	r := h.finish(known, since)
	r.Notes = append(r.Notes, known.notes()...)
	if key != nil {
		r.pseudonymise(key)
	}
	if c.JSON {
		err = writeJSON(t.stdout, r)
	} else {
		err = r.print(t.stdout)
	}
	if err == nil && r.badNews() {
		return badNews(nil)
	}
	return err
}

// moment reads a date or a time; "" is the zero time.
func moment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, errors.New("want a time such as 2026-11-30T12:00:00Z, or a date")
}

// pseudonymise names clients as "stile size" does with the same key, and drops
// what visitors wrote.
func (r *hitReport) pseudonymise(key []byte) {
	hide := func(l *hitLimited) {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(l.Client))
		l.Client, l.Agent = "client-"+hex.EncodeToString(m.Sum(nil)[:6]), ""
	}
	for _, list := range [][]hitLimited{r.Now, r.People, r.Crawlers} {
		for i := range list {
			hide(&list[i])
		}
	}
	for i := range r.Abusers {
		hide(&r.Abusers[i].hitLimited)
	}
}

const hitsShown = 15

// print writes the report for people.
func (r *hitReport) print(w io.Writer) error {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	table := func(head string, rows func(row func(string, ...any))) {
		line("")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, head)
		rows(func(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) })
		t.Flush()
	}
	if r.Log.Entries == 0 {
		line("The log is empty: nothing was counted, nobody was refused.")
		_, err := w.Write(b.Bytes())
		return err
	}
	line("%s to %s UTC: %s of %s, %d refused, %d would have been; %s limited",
		stamp(r.From), stamp(r.To), count(int(r.Asked), "page"), count(r.Clients, "client"), r.Refused, r.WouldRefuse, count(r.Limited, "client"))
	for _, e := range r.Log.Errors {
		line("not read to its end: %s", plain(e))
	}
	table("CLIENTS THAT LOOK LIKE\tCLIENTS\tLIMITED\tPAGES ASKED\tREFUSED", func(row func(string, ...any)) {
		for _, k := range r.Kinds {
			row("%s\t%d\t%d\t%d\t%d", k.Name, k.Clients, k.Limited, k.Asked, k.Refused)
		}
	})
	if len(r.Reasons) > 0 {
		table("WHY\tREFUSED", func(row func(string, ...any)) {
			for _, c := range r.Reasons {
				row("%s\t%d", plain(reasonText(c.Name)), c.Refused)
			}
		})
		table("BY WHICH LIMIT\tREFUSED\tCLIENTS", func(row func(string, ...any)) {
			for _, c := range r.Buckets {
				row("%s\t%d\t%d", plain(c.Name), c.Refused, c.Clients)
			}
		})
	}
	r.printLimited(line, table, "LIMITED IN THE LAST HOUR", r.Now)
	r.printLimited(line, table, "PEOPLE WHO MET A LIMIT", r.People)
	r.printLimited(line, table, "VERIFIED CRAWLERS THAT MET A LIMIT", r.Crawlers)
	if len(r.Abusers) > 0 {
		table("ABUSER\tASKED/H BEFORE\tAFTER\tREFUSED\tOUTCOME", func(row func(string, ...any)) {
			for _, s := range r.Abusers {
				row("%s\t%.1f\t%.1f\t%d\t%s", plain(s.Client), s.Before, s.After, s.Refused, s.Outcome)
			}
		})
		for _, s := range r.Abusers {
			line("  %s: %s", plain(s.Client), s.Detail)
		}
	}
	r.printPeriods(line, table)
	line("")
	for _, n := range r.Notes {
		line("- %s", n)
	}
	if len(r.People) > 0 {
		line("! People met a limit. Raise it, exempt a shared address, or count by cookie; \"stile replay\" shows what a change would do.")
	}
	if len(r.Crawlers) > 0 {
		line("! A verified crawler met a limit. exempt.crawlers in the policy lets its class through.")
	}
	_, err := w.Write(b.Bytes())
	return err
}

type lineFunc = func(string, ...any)
type tableFunc = func(string, func(func(string, ...any)))

func (r *hitReport) printLimited(line lineFunc, table tableFunc, title string, list []hitLimited) {
	if len(list) == 0 {
		return
	}
	table(title+"\tASKED\tREFUSED\tLIMIT\tUNTIL\tAGENTS\tLOOKS LIKE", func(row func(string, ...any)) {
		for _, l := range list[:min(len(list), hitsShown)] {
			until := "-"
			if l.Until.After(r.To) {
				until = stamp(l.Until)
			}
			row("%s\t%d\t%d\t%s\t%s\t%d\t%s: %s", plain(l.Client), l.Asked, l.Refused, plain(l.Bucket), until, l.Agents, l.Kind, plain(l.Why))
		}
	})
	if more := len(list) - hitsShown; more > 0 {
		line("  and %d more, with --json", more)
	}
}

func (r *hitReport) printPeriods(line lineFunc, table tableFunc) {
	if r.Before == nil || r.After == nil {
		return
	}
	table("PAGES AN HOUR\tASKED BEFORE\tASKED AFTER\tSERVED BEFORE\tSERVED AFTER\tCLIENTS BEFORE\tAFTER", func(row func(string, ...any)) {
		for _, k := range r.Kinds {
			row("%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%d", k.Name, r.Before.Asked[k.Name], r.After.Asked[k.Name],
				r.Before.Served[k.Name], r.After.Served[k.Name], r.Before.Clients[k.Name], r.After.Clients[k.Name])
		}
	})
	line("  The limit is in force since %s; %.0f hours before it, %.0f after.", stamp(r.Boundary), r.Before.Hours, r.After.Hours)
}

// reasonText words why a client was refused; other reasons stand as they are.
func reasonText(reason string) string {
	switch core.Reason(reason) {
	case core.ReasonOver:
		return "over a limit"
	case core.ReasonRemembered:
		return "over a limit, asked again before its time"
	case core.ReasonSpeculating:
		return "a prefetch while limited"
	case core.ReasonClaims:
		return "too many requests that say they are no page"
	case core.ReasonSuspended:
		return "suspended by you"
	case core.ReasonLocalOver:
		return "over a limit, counted locally while the store failed"
	}
	return reason
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }
