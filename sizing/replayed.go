package sizing

import (
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// The classes of a replay beside the kinds of visitors (single, engaged, shared,
// robotic) and the declared groups (monitoring, previews, feed-readers).
const (
	ClassVerified = "verified-crawlers"
	ClassClaimed  = "claimed-crawlers"
)

// Replayed is what a policy would have done.
type Replayed struct {
	From             time.Time         `json:"from"`
	To               time.Time         `json:"to"`
	Lines            int64             `json:"lines"`
	Records          int64             `json:"records"` // lines that were requests
	Observe          bool              `json:"observe"`
	Pages            int64             `json:"pages"`
	Refused          int64             `json:"refused"`
	LimitedAddresses int               `json:"limited_addresses"`
	Classes          []ReplayClass     `json:"classes"`
	Buckets          []ReplayBucket    `json:"buckets"`
	Limited          []ReplayClient    `json:"limited"` // the hundred with the most refusals
	Exceptions       []ReplayException `json:"exceptions,omitempty"`
	Notes            []string          `json:"notes,omitempty"`
}

// ReplayClass is one class of visitors.
type ReplayClass struct {
	Name      string           `json:"name"`
	Addresses int              `json:"addresses"`
	Limited   int              `json:"limited_addresses"`
	Pages     int64            `json:"pages"`
	Refused   int64            `json:"refused"`
	ByBucket  map[string]int64 `json:"by_bucket"`
	First     time.Time        `json:"first_denial,omitzero"`
	Last      time.Time        `json:"last_denial,omitzero"`
}

// ReplayBucket is one limit. Never means that it refused nobody.
type ReplayBucket struct {
	Name    string `json:"name"`
	Key     string `json:"key"`
	Limit   int64  `json:"limit"`
	Window  string `json:"window"`
	Refused int64  `json:"refused"`
	Never   bool   `json:"never_fires"`
}

// ReplayClient is one limited address. Agents above a handful are the innocent
// beside the culprit.
type ReplayClient struct {
	Address  string           `json:"address"`
	Class    string           `json:"class"`
	Agent    string           `json:"user_agent"`
	Agents   int              `json:"user_agents"`
	Pages    int64            `json:"pages"`
	Refused  int64            `json:"refused"`
	ByBucket map[string]int64 `json:"by_bucket"`
	First    time.Time        `json:"first_denial"`
	Last     time.Time        `json:"last_denial"`
}

// ReplayException is an exempt network or crawler class, with the pages that it
// saved from refusal.
type ReplayException struct {
	Name  string `json:"name"`
	Pages int64  `json:"pages"`
	Saved int64  `json:"saved"`
}

func (c *ReplayClass) add(t *tally, buckets []core.Bucket) {
	c.Addresses++
	c.Pages += t.pages
	c.Refused += t.refused
	for i, n := range t.byBucket {
		if n > 0 {
			c.ByBucket[buckets[i].Name] += n
		}
	}
	if t.refused == 0 {
		return
	}
	c.Limited++
	first, last := time.Unix(t.first, 0).UTC(), time.Unix(t.last, 0).UTC()
	if c.First.IsZero() || first.Before(c.First) {
		c.First = first
	}
	if last.After(c.Last) {
		c.Last = last
	}
}

// BadNews reports whether the policy would hit whom it must not: an engaged
// visitor or a verified crawler. The command line's exit code follows it.
func (r *Replayed) BadNews() bool {
	for _, c := range r.Classes {
		if c.Refused > 0 && (c.Name == engaged.String() || c.Name == ClassVerified) {
			return true
		}
	}
	return false
}

// WriteText writes the result for people.
func (r *Replayed) WriteText(w io.Writer) error {
	t := &textWriter{w: w}
	t.line("%d pages, %s to %s; %d refused to %d addresses", r.Pages, r.From.Format("2006-01-02 15:04"), r.To.Format("2006-01-02 15:04"), r.Refused, r.LimitedAddresses)
	t.line("")
	t.table([]string{"class", "addresses", "limited", "pages", "refused", "share", "first", "last"}, func(row func(...any)) {
		for _, c := range r.Classes {
			row(c.Name, c.Addresses, c.Limited, c.Pages, c.Refused, percent(share(c.Refused, c.Pages)), when(c.First), when(c.Last))
		}
	})
	t.line("")
	t.table([]string{"bucket", "key", "limit", "window", "refused"}, func(row func(...any)) {
		for _, b := range r.Buckets {
			row(b.Name, b.Key, b.Limit, b.Window, b.Refused)
		}
	})
	if len(r.Limited) > 0 {
		t.line("")
		t.table([]string{"limited", "class", "pages", "refused", "agents", "first", "last"}, func(row func(...any)) {
			for _, c := range r.Limited[:min(len(r.Limited), listed)] {
				row(c.Address, c.Class, c.Pages, c.Refused, c.Agents, when(c.First), when(c.Last))
			}
		})
	}
	if len(r.Exceptions) > 0 {
		t.line("")
		t.table([]string{"exception", "pages", "saved from refusal"}, func(row func(...any)) {
			for _, e := range r.Exceptions {
				row(safeText(e.Name), e.Pages, e.Saved)
			}
		})
	}
	if len(r.Notes) > 0 || r.BadNews() {
		t.line("")
	}
	for _, n := range r.Notes {
		t.line("- %s", n)
	}
	if r.BadNews() {
		t.line("! This policy would refuse pages to engaged visitors or to a verified crawler.")
	}
	return t.err
}

// WriteComparison writes two replays of one log side by side.
func WriteComparison(w io.Writer, nameA string, a *Replayed, nameB string, b *Replayed) error {
	t := &textWriter{w: w}
	t.table([]string{"class", "pages", nameA + " refuses", "share", nameB + " refuses", "share", "limited", "limited"}, func(row func(...any)) {
		for _, ca := range a.Classes {
			cb := ReplayClass{}
			for _, c := range b.Classes {
				if c.Name == ca.Name {
					cb = c
				}
			}
			row(ca.Name, ca.Pages, ca.Refused, percent(share(ca.Refused, ca.Pages)), cb.Refused, percent(share(cb.Refused, cb.Pages)), ca.Limited, cb.Limited)
		}
		row("all", a.Pages, a.Refused, percent(share(a.Refused, a.Pages)), b.Refused, percent(share(b.Refused, b.Pages)), a.LimitedAddresses, b.LimitedAddresses)
	})
	for _, x := range []struct {
		name string
		r    *Replayed
	}{{nameA, a}, {nameB, b}} {
		for _, n := range x.r.Notes {
			t.line("- %s: %s", x.name, n)
		}
	}
	return t.err
}

func share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format("2 Jan 15:04:05")
}

// addressLimit is the lowest limit by address with that window; 0 = none.
func (r *Replayed) addressLimit(window time.Duration) int {
	least := int64(0)
	for _, b := range r.Buckets {
		if d, err := time.ParseDuration(b.Window); err == nil && d == window && b.Key == rows.Address.String() && (least == 0 || b.Limit < least) {
			least = b.Limit
		}
	}
	return int(least)
}

// plot draws who is cut by which limit.
func (r *Replayed) plot() template.HTML {
	var names []string
	for _, b := range r.Buckets {
		names = append(names, b.Name)
	}
	var bars []cutBar
	for _, c := range r.Classes {
		bar := cutBar{Name: c.Name, Passed: c.Pages - c.Refused, Cut: c.ByBucket}
		bars = append(bars, bar)
	}
	return cutPlot(bars, names)
}

// String says it in one line.
func (c ReplayClass) String() string {
	return fmt.Sprintf("%s: %d of %d pages refused to %d of %d addresses", c.Name, c.Refused, c.Pages, c.Limited, c.Addresses)
}
