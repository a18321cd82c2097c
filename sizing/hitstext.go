package sizing

import (
	"fmt"
	"io"
)

// BadNews reports whether an engaged visitor was refused.
func (r *HitReport) BadNews() bool { return r.Engaged > 0 }

// WriteText writes the report for people.
func (r *HitReport) WriteText(w io.Writer) error {
	t := &textWriter{w: w}
	t.line("%d hits, %d refused, %d would have been, %s to %s", r.Hits, r.Limited, r.WouldLimit, r.From.Format("2006-01-02 15:04"), r.To.Format("2006-01-02 15:04"))
	if len(r.Reasons) > 0 {
		t.line("reasons: %s", safeText(countsText(r.Reasons)))
		t.line("keys: %s", safeText(countsText(r.Keys)))
	}
	t.line("%d clients met the limit, %d of them engaged visitors", r.Refused, r.Engaged)
	if len(r.Clients) > 0 {
		t.line("")
		t.table([]string{"refused", "class", "hits", "refusals", "per hour before", "after", "reaction", "first", "last"}, func(row func(...any)) {
			for _, c := range r.Clients[:min(len(r.Clients), listed)] {
				row(c.Address, c.Class, c.Hits, c.Refusals, fmt.Sprintf("%.1f", c.Before), fmt.Sprintf("%.1f", c.After), string(c.Reaction), when(c.First), when(c.Last))
			}
		})
	}
	if skipped := r.Log.Skipped; len(skipped) > 0 {
		t.line("")
		t.line("no events: %s", countsText(skipped))
	}
	for _, n := range r.Notes {
		t.line("- %s", n)
	}
	return t.err
}

// Pseudonymise replaces addresses by names made with the key; see
// Report.Pseudonymise.
func (r *HitReport) Pseudonymise(key []byte) {
	p := newPseudonyms(key)
	for i := range r.Clients {
		r.Clients[i].Address, r.Clients[i].Agent = p.name(r.Clients[i].Address), ""
	}
	r.Log.Example = nil
}
