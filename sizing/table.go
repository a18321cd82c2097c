package sizing

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteText writes the report for people at a terminal of 100 columns.
func (r *Report) WriteText(w io.Writer) error {
	t := &textWriter{w: w}
	t.line("%d lines, %d requests, %s to %s (%s)", r.Log.Lines, r.Log.Records, r.From.Format("2006-01-02 15:04"), r.To.Format("2006-01-02 15:04"), "UTC")
	t.line("read as %s", countsText(r.Log.Formats))
	if len(r.Log.Skipped) > 0 {
		t.line("no requests: %s", countsText(r.Log.Skipped))
	}
	for _, e := range r.Log.Errors {
		t.line("not read to its end: %s", safeText(e))
	}
	t.line("")
	t.table([]string{"who", "addresses", "requests", "pages", "bytes"}, func(row func(...any)) {
		for _, g := range r.Groups {
			row(g.Name, g.Addresses, g.Requests, g.Pages, bytesText(g.Bytes))
		}
	})
	t.line("")
	t.table([]string{"pages per address", "p50", "p90", "p99", "p99.9", "most", "of"}, func(row func(...any)) {
		for _, h := range []struct {
			name string
			d    Distribution
		}{
			{"engaged people, hour", r.Humans.PerHour}, {"engaged people, day", r.Humans.PerDay},
			{"all visitors, hour", r.Everyone.PerHour}, {"all visitors, day", r.Everyone.PerDay},
		} {
			row(h.name, h.d.P50, h.d.P90, h.d.P99, h.d.P999, h.d.Max, h.d.Count)
		}
	})
	t.heavy("shared addresses", r.Shared)
	t.heavy("abusers", r.Abusers)
	if len(r.Crawlers) > 0 {
		t.line("")
		t.table([]string{"declared robots", "kind", "addresses", "pages", "peak hour", "proven"}, func(row func(...any)) {
			for _, c := range r.Crawlers[:min(len(r.Crawlers), listed)] {
				proven := "not asked"
				if c.Asked && c.Group == crawlers.String() {
					proven = fmt.Sprintf("%d of %d", c.Verified, c.Pages)
				}
				row(safeText(c.Name), c.Group, c.Addresses, c.Pages, c.PeakHour, proven)
			}
		})
	}
	if len(r.Networks) > 0 {
		t.line("")
		t.table([]string{"a day's limit by", "keys", "engaged peak", "robotic peak", "limit", "stops"}, func(row func(...any)) {
			for _, n := range r.Networks {
				row(n.Key, n.Keys, n.PeakHuman, n.PeakRobot, n.Limit, percent(n.Stopped))
			}
		})
	}
	t.line("")
	for _, s := range r.Proposal.Text {
		t.line("> %s", s)
	}
	if len(r.Notes) > 0 {
		t.line("")
	}
	for _, s := range r.Notes {
		t.line("- %s", s)
	}
	return t.err
}

// textWriter keeps the first error.
type textWriter struct {
	w   io.Writer
	err error
}

func (t *textWriter) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

func (t *textWriter) heavy(title string, list []Heavy) {
	if len(list) == 0 {
		return
	}
	t.line("")
	t.table([]string{title, "pages", "hour", "day", "minute", "gap", "assets", "4xx", "agents"}, func(row func(...any)) {
		for _, h := range list {
			row(h.Address, h.Pages, h.PeakHour, h.PeakDay, h.PeakMinute, fmt.Sprintf("%.0f s", h.MedianGap), fmt.Sprintf("%.1f", h.AssetsPerPage), percent(h.Errors), h.Agents)
		}
	})
	for _, h := range list {
		t.line("  %s: %s", h.Address, safeText(h.Verdict))
		if h.Infinite {
			t.line("    ever-new URLs of one pattern, an infinite space: %s", safeText(h.Patterns[0].Pattern))
		} else if len(h.Patterns) > 0 {
			t.line("    mostly %s", safeText(h.Patterns[0].Pattern))
		}
	}
}

// table aligns columns: the first to the left, the others to the right.
func (t *textWriter) table(head []string, fill func(row func(...any))) {
	rows := [][]string{head}
	fill(func(cells ...any) {
		row := make([]string, len(cells))
		for i, c := range cells {
			row[i] = fmt.Sprint(c)
		}
		rows = append(rows, row)
	})
	width := make([]int, len(head))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			switch {
			case i == 0:
				b.WriteString(c + pad)
			default:
				b.WriteString("  " + pad + c)
			}
		}
		t.line("%s", strings.TrimRight(b.String(), " "))
	}
}

func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

// countsText lists counts from many to few.
func countsText(m map[string]int64) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if m[a] != m[b] {
			if m[a] > m[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	return strings.Join(keys, ", ")
}

// safeText takes control characters out of what visitors wrote: a terminal
// obeys them.
func safeText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, s)
}
