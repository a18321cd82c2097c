package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers"
)

type crawlersCmd struct {
	Update crawlersUpdateCmd `cmd:"" help:"Fetch the published ranges and write them to a file."`
	List   crawlersListCmd   `cmd:"" help:"Show the ranges that are known, how old they are and where they are from."`
	Verify crawlersVerifyCmd `cmd:"" help:"Say whether an address is a crawler's, and by what proof."`
}

type crawlersUpdateCmd struct {
	File string `arg:"" optional:"" default:"crawler-ranges.txt" help:"File to write; default: crawler-ranges.txt."`
	JSON bool   `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (crawlersUpdateCmd) Help() string {
	return "Asks every operator for its list and writes what is held afterwards: a dated text that shows in a diff what changed. " +
		"Name it in the policy as crawlers.file, and put it into the image. A list that cannot be had, or that is absurd, keeps the ranges that are in the file already, or those built in.\n\n" +
		"Exit status 0: every list was had. 1: the file was written, but some list was not had. 3: none was, and the file is as it was.\n\n" +
		"Examples:\n  stile crawlers update\n  stile crawlers update deploy/crawler-ranges.txt"
}

// Run fetches all lists.
func (c *crawlersUpdateCmd) Run(ctx context.Context, t *terminal) error {
	v, err := t.verifier(c.File, true)
	if err != nil {
		return err
	}
	changes, err := v.Update(ctx, c.File)
	var failed int
	for _, change := range changes {
		if change.Error != "" {
			failed++
		}
	}
	if c.JSON {
		if werr := writeJSON(t.stdout, struct {
			File    string            `json:"file"`
			Written bool              `json:"written"`
			Lists   []crawlers.Change `json:"lists"`
		}{c.File, err == nil, changes}); werr != nil {
			return werr
		}
	} else if werr := c.print(t, changes, err == nil); werr != nil {
		return werr
	}
	switch {
	case err != nil:
		return err
	case failed > 0:
		return badNews(nil)
	}
	return nil
}

func (c *crawlersUpdateCmd) print(t *terminal, changes []crawlers.Change, written bool) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "LIST\tBEFORE\tAFTER\tNOTE\n")
	for _, change := range changes {
		note := ""
		if change.Error != "" {
			note = "kept: " + plain(change.Error)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", change.List, change.Before, change.After, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if written {
		fmt.Fprintf(&b, "\nwritten to %s; name it in the policy: crawlers: {file: %s}\n", plain(c.File), plain(c.File))
	}
	_, err := t.stdout.Write(b.Bytes())
	return err
}

type crawlersListCmd struct {
	File string `arg:"" optional:"" help:"File of ranges to show; default: the built-in ones."`
	JSON bool   `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (crawlersListCmd) Help() string {
	return "Examples:\n  stile crawlers list\n  stile crawlers list crawler-ranges.txt --json"
}

// Run shows every list.
func (c *crawlersListCmd) Run(t *terminal) error {
	v, err := t.verifier(c.File, false)
	if err != nil {
		return err
	}
	lists := v.List()
	if c.JSON {
		return writeJSON(t.stdout, lists)
	}
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "LIST\tCLASSES\tPREFIXES\tFROM\tAGE\tNOTE\n")
	for _, l := range lists {
		classes := make([]string, len(l.Classes))
		for i, class := range l.Classes {
			classes[i] = string(class)
		}
		age, note := "-", ""
		switch {
		case l.Origin == "":
			note = "nothing held"
		case l.Stale:
			age, note = days(l.Age), "old"
		default:
			age = days(l.Age)
		}
		if l.Partial {
			note = strings.TrimPrefix(note+", an excerpt", ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", l.ID, strings.Join(classes, ","), l.Prefixes, l.Origin, age, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = t.stdout.Write(b.Bytes())
	return err
}

func days(d time.Duration) string { return fmt.Sprintf("%dd", d/(24*time.Hour)) }

type crawlersVerifyCmd struct {
	Addr      string `arg:"" help:"Address of the client."`
	UserAgent string `placeholder:"UA" help:"What it calls itself; a User-Agent line or a crawler's name."`
	File      string `placeholder:"FILE" help:"File of ranges; default: the built-in ones."`
	Offline   bool   `help:"Ask no DNS: ranges only."`
	JSON      bool   `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (crawlersVerifyCmd) Help() string {
	return "Where a crawler's proof is reverse DNS, the DNS is asked now. Nothing is remembered.\n\n" +
		"Exit status 0: it is verified. 1: it is not; it is then an ordinary client, limited like any other and not blocked.\n\n" +
		"Examples:\n  stile crawlers verify 66.249.66.1\n  stile crawlers verify 203.0.113.9 --user-agent 'Mozilla/5.0 (compatible; Googlebot/2.1)'"
}

// Run explains one proof.
func (c *crawlersVerifyCmd) Run(ctx context.Context, t *terminal) error {
	addr, ok := core.ParseClient(c.Addr)
	if !ok {
		return misuse(fmt.Errorf("%q: want an IP address", plain(c.Addr)))
	}
	v, err := t.verifier(c.File, false)
	if err != nil {
		return err
	}
	e := v.Explain(ctx, addr, c.UserAgent, c.Offline)
	if c.JSON {
		err = writeJSON(t.stdout, e)
	} else {
		err = printProof(t, &e)
	}
	switch {
	case err != nil:
		return err
	case !e.Match.Verified:
		return badNews(nil)
	}
	return nil
}

func printProof(t *terminal, e *crawlers.Explanation) error {
	var b bytes.Buffer
	line := func(topic, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", topic, plain(fmt.Sprintf(format, args...)))
	}
	verdict := "not verified"
	if e.Match.Verified {
		verdict = fmt.Sprintf("verified: %s (%s), by %s", e.Match.Name, e.Match.Class, e.Match.Proof)
	}
	fmt.Fprintf(&b, "%s  %s\n\n", e.Client, plain(verdict))
	if len(e.Claims) > 0 {
		line("claims", "%s", strings.Join(e.Claims, ", "))
	}
	for _, r := range e.Ranges {
		line("range", "%s in %s, of %s; %s old, from %s", r.Prefix, r.List, strings.Join(r.Agents, ", "), days(r.Age), r.Source)
	}
	for _, n := range e.Names {
		proof := "confirmed"
		if !n.Confirmed {
			proof = n.Note
		}
		line("name", "%s: %s", n.Name, proof)
	}
	if e.Reverse != "" {
		line("dns", "%s", e.Reverse)
	}
	line("result", "%s", e.Reason)
	_, err := t.stdout.Write(b.Bytes())
	return err
}

// verifier returns one over all that is known of every class, with the ranges of
// a file merged over the built-in ones. A file that is to be written need not be
// there yet.
func (t *terminal) verifier(file string, mayBeAbsent bool) (*crawlers.Verifier, error) {
	c := crawlers.Config{Logger: slog.New(slog.DiscardHandler), Now: t.now, Transport: t.transport, Resolver: t.resolver}
	if file != "" {
		data, err := os.ReadFile(file)
		switch {
		case mayBeAbsent && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			held, err := crawlers.ReadSnapshot(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			c.Snapshots = []crawlers.Snapshot{held}
		}
	}
	return crawlers.New(c)
}
