package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stilehq/stile/core"
)

// holder is a coalescing wrapper in its plainest form, one caller at a time,
// with a switch for each fault that the suite must notice.
type holder struct {
	core.Store
	fault string

	mu   sync.Mutex
	held map[core.Key]*heldRow
}

type heldRow struct {
	row    core.Row // as last hit
	value  int64    // as the store last said
	unsent int64
	since  int64 // Unix seconds of the oldest unsent hit
}

func newHolder(inner core.Store, fault string) *holder {
	return &holder{Store: inner, fault: fault, held: map[core.Key]*heldRow{}}
}

func (s *holder) Features() core.Features { return FeaturesOf(s.Store) }

func (s *holder) Apply(ctx context.Context, b *core.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b.Rows) != 1 || b.Rows[0].MaxAge == 0 {
		if s.fault != "never tells what is old" {
			for _, h := range s.held {
				if h.unsent != 0 && b.Now.Unix()-h.since >= int64(outerAge.Seconds()) {
					_ = s.report(ctx, h)
				}
			}
		}
		return s.Store.Apply(ctx, b)
	}
	r := &b.Rows[0]
	c := &r.Cells[0]
	if h := s.held[r.Key]; h != nil && ctx.Err() == nil && s.mayHold(h, c, b) {
		h.unsent += c.Add
		if s.fault == "loses refunds" && c.Add < 0 {
			h.unsent -= c.Add
		}
		if h.since == 0 {
			h.since = b.Now.Unix()
		}
		c.Value = h.value + h.unsent
		if s.fault == "shows the record's value" {
			c.Value = h.value
		}
		r.Err = nil
		return nil
	}
	h := s.held[r.Key]
	if h == nil {
		h = &heldRow{}
	}
	h.row = *r
	sent := &core.Batch{Now: b.Now, Rows: []core.Row{*r}}
	sent.Rows[0].Cells = slices.Clone(r.Cells)
	sent.Rows[0].Cells[0].Add += h.unsent
	err := s.Store.Apply(ctx, sent)
	r.Err, c.Value = sent.Rows[0].Err, sent.Rows[0].Cells[0].Value
	s.settled(h, err, c.Value)
	if err == nil {
		s.held[r.Key] = h
	}
	return err
}

// mayHold is the share rule.
func (s *holder) mayHold(h *heldRow, c *core.Cell, b *core.Batch) bool {
	if c.Add <= 0 {
		return true
	}
	if h.unsent != 0 && b.Now.Unix()-h.since >= int64(outerAge.Seconds()) {
		return false
	}
	if s.fault == "holds more than its share" {
		return h.unsent < 20 && h.value+h.unsent < c.Ceiling
	}
	if s.fault == "holds in the last stretch" {
		return (h.unsent+c.Add)*heldShare <= max(c.Ceiling-h.value-h.unsent, heldShare)
	}
	return (h.unsent+c.Add)*heldShare <= c.Ceiling-h.value-h.unsent
}

func (s *holder) report(ctx context.Context, h *heldRow) error {
	row := h.row
	row.Cells = []core.Cell{{Slot: row.Cells[0].Slot, Until: row.Cells[0].Until, Add: h.unsent}}
	b := &core.Batch{Rows: []core.Row{row}}
	err := s.Store.Apply(ctx, b)
	s.settled(h, err, b.Rows[0].Cells[0].Value)
	return err
}

func (s *holder) settled(h *heldRow, err error, value int64) {
	switch {
	case err == nil:
		h.value = value
	case errors.Is(err, core.ErrNotApplied) && s.fault != "forgets what was not sent":
		return // and keeps what it holds
	case s.fault == "reports again after an unknown outcome":
		return
	}
	if s.fault != "reports twice" || h.unsent < 0 {
		h.unsent = 0
	}
	h.since = 0
}

func (s *holder) flush(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, h := range s.held {
		if h.unsent != 0 && s.fault != "tells nothing at a flush" {
			errs = append(errs, s.report(ctx, h))
		}
	}
	return errors.Join(errs...)
}

// holding puts a holder around a harness's stores, with the faults in those that
// the cases watch.
func holding(h Harness, fault string) Harness {
	w := h.With(func(inner core.Store) core.Store { return newHolder(inner, fault) })
	if fault != "does not say that it holds" {
		w.Flush = func(ctx context.Context, st core.Store) error { return st.(*holder).flush(ctx) }
	}
	return w
}

func TestHoldingStorePasses(t *testing.T) {
	t.Parallel()
	Run(t, holding(referenceHarness(""), ""))
}

func TestHoldingNetworkStorePasses(t *testing.T) {
	t.Parallel()
	h := holding(remoteHarness(t, ""), "")
	for _, c := range slices.Concat(outerCases, outerFaultCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newEnv(t, h))
		})
	}
}

// Every way of holding too much, of losing or of telling twice is noticed.
func TestHoldingFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		"does not say that it holds", "holds more than its share", "holds in the last stretch", "shows the record's value",
		"loses refunds", "never tells what is old", "tells nothing at a flush", "reports twice",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			h := holding(referenceHarness(""), fault)
			if failed := failuresOf(h, outerCases); len(failed) == 0 {
				t.Fatalf("no case notices a store that %s", fault)
			}
		})
	}
	for fault, by := range map[string]string{
		"reports again after an unknown outcome": "outer fault/report's reply lost",
		"forgets what was not sent":              "outer fault/report not sent",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(outerFaultCases, func(c testCase) bool { return c.name == by })
			if failed := failuresOf(holding(remoteHarness(t, ""), fault), outerFaultCases[i:i+1]); len(failed) == 0 {
				t.Fatalf("a store that %s passes %q", fault, by)
			}
		})
	}
}
