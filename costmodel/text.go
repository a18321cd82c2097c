package costmodel

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shopspring/decimal"
)

// Count writes a whole number with thousands' commas.
func Count(n int64) string { return thousands(decimal.New(n, 0).String()) }

// Text writes the report for people: the recommendation and the verdict, then what
// they rest on.
func (r *Report) Text(out io.Writer) error {
	w := &errWriter{w: out}
	t := &r.Traffic
	w.printf("What counting %s navigations a month costs\n\n", Count(t.Navigations))
	if r.Choice != nil {
		w.printf("Recommended: %s. %s.%s\n", r.Choice.Title, capital(r.Choice.Reason), r.oldChoice())
	} else {
		w.printf("Recommended: none. %s.\n", capital(r.NoChoice))
	}
	w.printf("Verdict: %s.\n", r.Verdict.Text)
	w.printf("\n")
	w.printf("traffic      %s navigations per client and day, %s %% go over a limit, %s %% are refused from memory, busiest second %s\n",
		t.PerClientDay.Round(2), t.Denied.Mul(decimal.New(100, 0)).Round(2), t.Repeats.Mul(decimal.New(100, 0)).Round(2), rate(t.PeakPerSecond))
	w.printf("             from %s\n", t.From)
	w.printf("regions      Google %s, AWS %s; US dollars before tax; month = %s hours\n", r.GCPRegion, r.AWSRegion, Hours)

	w.printf("\nStores, without what runs Stile\n")
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "store\toperations\t$/million\ta month\twith free\tdominates\tsteady p50\tmeasured on")
	for _, s := range r.Stores {
		p50, where := "unknown", "-"
		if m := s.Measured; m != nil {
			p50, where = time.Duration(m.P50*1000).Round(100*time.Nanosecond).String(), m.Kind
			if m.Loopback {
				where += ", loopback*"
			}
		}
		fmt.Fprintf(tw, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Title, mark(s.Weakest), s.Operations, s.PerMillion, withAge(s.Month, s.Old), s.WithFree, s.Dominates, p50, where)
	}
	w.flush(tw)
	w.printf("* no network in it, and often not the real server: such times rank nothing here.\n")
	if r.marked() {
		w.printf("%s holds a figure from memory: check it before you rely on it.\n", strings.TrimSpace(mark(Memory)))
	}
	if r.old() {
		w.printf("(old) rests on a price of more than %d days ago, see Sources: check it before you rely on it.\n", int(StaleAfter.Hours()/24))
	}
	for _, s := range r.Stores {
		for _, why := range s.Impossible {
			w.printf("  %s cannot be taken: %s\n", s.Title, why)
		}
	}

	w.printf("\nWhat runs Stile, without the store\n")
	tw = tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "placement\twhere\t$/million\ta month\twith free\tdominates")
	for _, p := range r.Placements {
		fmt.Fprintf(tw, "%s%s\t%s\t%s\t%s\t%s\t%s\n", p.Title, mark(weakest(p.Lines)), p.Provider, p.PerMillion, withAge(p.Month, p.Old), p.WithFree, p.Dominates)
	}
	w.flush(tw)
	a := r.Assumptions
	w.printf("assumed: origin %d ms, authorizer %d ms, page %s bytes, log line %d bytes, %d request(s) per navigation, %d instances\n",
		a.HoldMillis, a.DecideMillis, Count(a.PageBytes), a.LogBytes, a.Requests, a.Instances)

	w.printf("\nTogether, a month with free quantities (without)\n")
	tw = tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, s := range r.Stores {
		if len(s.Impossible) > 0 {
			continue
		}
		for _, p := range s.Placed {
			fmt.Fprintf(tw, "%s\t%s\t%s\t(%s)\t%s\n", s.Title, p.Placement, p.WithFree, p.Month, p.Dominates)
		}
	}
	w.flush(tw)

	w.printf("\nHot keys\n")
	if len(t.Keys) == 0 {
		w.printf("  unknown: give --hot SCOPE=PEAK or --size-report\n")
	}
	for _, s := range r.Stores {
		for _, h := range s.Hot {
			w.printf("  %s: %s\n", s.Title, h.Text)
		}
	}

	w.printf("\nCheapest store by volume, without free quantities%s\n", on(r.On))
	for _, x := range r.Winners {
		w.printf("  from %s a month: %s\n", Count(x.From), x.Title)
	}

	w.printf("\nInstead of Stile\n")
	tw = tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "product\ta month\tcounts\tlongest window\tdaily cap for each visitor\texact")
	for _, x := range r.Instead {
		fmt.Fprintf(tw, "%s%s\t%s\t%s\t%s\t%s\t%s\n", x.Name, mark(x.Confidence), x.Month, x.Counts, Window(x.Longest), x.Daily, x.Exact)
	}
	w.flush(tw)
	w.printf("They bill all requests: with R requests per page, R times the navigations (--requests).\n")

	w.printf("\nSources\n")
	for _, m := range r.Measured {
		w.printf("  measured: %s of %s, %s (%s), %s\n", m.File, m.Date.Format(time.DateOnly), m.Server, m.Kind, m.Machine)
	}
	for _, f := range r.Figures {
		w.printf("  price: %s\n", r.cite(f))
	}

	return w.err
}

// cite writes where a figure comes from, with its age if it is old.
func (r *Report) cite(f *Figure) string {
	price := "unknown"
	if f.Known {
		var parts []string
		for _, t := range f.Tiers {
			parts = append(parts, "$"+t.Price.String())
		}
		price = strings.Join(parts, ", ") + " per " + f.Unit
	}
	text := fmt.Sprintf("%s (%s) %s; %s; dated %s; %s", f.ID, f.Region, price, f.Source, f.Date, f.Confidence)
	if f.Override {
		text += "; from your file"
	}
	switch age, ok := f.Age(r.in.Now); {
	case !ok:
		text += "; OLD: its age is unknown"
	case f.Stale(r.in.Now):
		text += fmt.Sprintf("; OLD: %d days", int(age.Hours()/24))
	}
	return text
}

func (r *Report) marked() bool {
	return slices.ContainsFunc(r.Stores, func(s StoreCost) bool { return s.Weakest == Memory }) ||
		slices.ContainsFunc(r.Placements, func(p PlacementCost) bool { return weakest(p.Lines) == Memory })
}

func (r *Report) old() bool {
	return slices.ContainsFunc(r.Stores, func(s StoreCost) bool { return s.Old }) ||
		slices.ContainsFunc(r.Placements, func(p PlacementCost) bool { return p.Old })
}

// oldChoice warns of old prices of the recommended store.
func (r *Report) oldChoice() string {
	if slices.ContainsFunc(r.Stores, func(s StoreCost) bool { return s.Old && s.Title == r.Choice.Title }) {
		return " Its price is old: check it."
	}
	return ""
}

// withAge marks a sum that rests on an old price.
func withAge(m Money, old bool) string {
	if old {
		return m.String() + " (old)"
	}
	return m.String()
}

func mark(c Confidence) string {
	if c == Memory {
		return " (!)"
	}
	return ""
}

func on(provider string) string {
	switch provider {
	case GCP:
		return ", on Google Cloud"
	case AWS:
		return ", on AWS"
	case Own:
		return ", on a machine of one's own"
	}
	return ""
}

// Window writes the longest window of a product; 0 means any.
func Window(seconds int64) string {
	switch {
	case seconds == 0:
		return "any"
	case seconds%86400 == 0:
		return fmt.Sprintf("%d days", seconds/86400)
	case seconds >= 3600:
		return decimal.New(seconds, 0).DivRound(decimal.New(3600, 0), 1).String() + " h"
	case seconds >= 60:
		return fmt.Sprintf("%d min", seconds/60)
	}
	return fmt.Sprintf("%d s", seconds)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// An errWriter keeps the first error.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

func (w *errWriter) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *errWriter) flush(tw *tabwriter.Writer) {
	if err := tw.Flush(); err != nil && w.err == nil {
		w.err = err
	}
}
