package sizing

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/core"
)

// Pseudonymise names clients as Report.Pseudonymise does with the same key, and
// drops what visitors wrote.
func (r *HitReport) Pseudonymise(key []byte) {
	p := newPseudonyms(key)
	hide := func(l *HitLimited) { l.Client, l.Agent = p.name(l.Client), "" }
	for _, list := range [][]HitLimited{r.Now, r.People, r.Crawlers} {
		for i := range list {
			hide(&list[i])
		}
	}
	for i := range r.Abusers {
		hide(&r.Abusers[i].HitLimited)
	}
}

const hitsShown = 15

// WriteText writes the report for people.
func (r *HitReport) WriteText(w io.Writer) error {
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
		hitStamp(r.From), hitStamp(r.To), numbered(r.Asked, "page"), numbered(int64(r.Clients), "client"), r.Refused, r.WouldRefuse, numbered(int64(r.Limited), "client"))
	for _, e := range r.Log.Errors {
		line("not read to its end: %s", safeText(e))
	}
	table("CLIENTS THAT LOOK LIKE\tCLIENTS\tLIMITED\tPAGES ASKED\tREFUSED", func(row func(string, ...any)) {
		for _, k := range r.Kinds {
			row("%s\t%d\t%d\t%d\t%d", k.Name, k.Clients, k.Limited, k.Asked, k.Refused)
		}
	})
	if len(r.Reasons) > 0 {
		table("WHY\tREFUSED", func(row func(string, ...any)) {
			for _, c := range r.Reasons {
				row("%s\t%d", safeText(hitReason(c.Name)), c.Refused)
			}
		})
		table("BY WHICH LIMIT\tREFUSED\tCLIENTS", func(row func(string, ...any)) {
			for _, c := range r.Buckets {
				row("%s\t%d\t%d", safeText(c.Name), c.Refused, c.Clients)
			}
		})
	}
	r.printLimited(line, table, "LIMITED IN THE LAST HOUR", r.Now)
	r.printLimited(line, table, "PEOPLE WHO MET A LIMIT", r.People)
	r.printLimited(line, table, "VERIFIED CRAWLERS THAT MET A LIMIT", r.Crawlers)
	if len(r.Abusers) > 0 {
		table("ABUSER\tASKED/H BEFORE\tAFTER\tREFUSED\tOUTCOME", func(row func(string, ...any)) {
			for _, s := range r.Abusers {
				row("%s\t%.1f\t%.1f\t%d\t%s", safeText(s.Client), s.Before, s.After, s.Refused, s.Outcome)
			}
		})
		for _, s := range r.Abusers {
			line("  %s: %s", safeText(s.Client), s.Detail)
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

func (r *HitReport) printLimited(line lineFunc, table tableFunc, title string, list []HitLimited) {
	if len(list) == 0 {
		return
	}
	table(title+"\tASKED\tREFUSED\tLIMIT\tUNTIL\tAGENTS\tLOOKS LIKE", func(row func(string, ...any)) {
		for _, l := range list[:min(len(list), hitsShown)] {
			until := "-"
			if l.Until.After(r.To) {
				until = hitStamp(l.Until)
			}
			row("%s\t%d\t%d\t%s\t%s\t%d\t%s: %s", safeText(l.Client), l.Asked, l.Refused, safeText(l.Bucket), until, l.Agents, l.Kind, safeText(l.Why))
		}
	})
	if more := len(list) - hitsShown; more > 0 {
		line("  and %d more, with --json", more)
	}
}

func (r *HitReport) printPeriods(line lineFunc, table tableFunc) {
	if r.Before == nil || r.After == nil {
		return
	}
	table("PAGES AN HOUR\tASKED BEFORE\tASKED AFTER\tSERVED BEFORE\tSERVED AFTER\tCLIENTS BEFORE\tAFTER", func(row func(string, ...any)) {
		for _, k := range r.Kinds {
			row("%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%d", k.Name, r.Before.Asked[k.Name], r.After.Asked[k.Name],
				r.Before.Served[k.Name], r.After.Served[k.Name], r.Before.Clients[k.Name], r.After.Clients[k.Name])
		}
	})
	line("  The limit is in force since %s; %.0f hours before it, %.0f after.", hitStamp(r.Boundary), r.Before.Hours, r.After.Hours)
}

// hitReason words why a client was refused; other reasons stand as they are.
func hitReason(reason string) string {
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

func hitStamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// numbered writes a number with its noun.
func numbered(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
