package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/stilehq/stile/crawlers"
	"github.com/stilehq/stile/sizing"
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
		"Exit status 1: an engaged visitor or a verified crawler was limited (or would be, observing).\n\n" +
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
	shown := t.progress("reading")
	r, err := sizing.Hits(ctx, inputs, sizing.HitOptions{Since: since, Now: t.now(), Crawlers: known, Progress: shown.show})
	shown.done()
	if err != nil {
		return interrupted(err)
	}
	if err := nothingRead(int64(r.Log.Inputs), r.Log.Lines, r.Log.Errors); err != nil {
		return err
	}
	if r.Log.Entries == 0 && r.Log.Lines > 0 {
		return fmt.Errorf("none of %d lines is of a hit log; access logs are for \"stile size\"", r.Log.Lines)
	}
	r.Notes = append(r.Notes, known.notes()...)
	if key != nil {
		r.Pseudonymise(key)
	}
	if c.JSON {
		err = writeJSON(t.stdout, r)
	} else {
		err = r.WriteText(t.stdout)
	}
	if err == nil && r.BadNews() {
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
