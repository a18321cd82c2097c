package costmodel

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/shopspring/decimal"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// A Measurement is what a store was measured to cost, by state of a navigation.
// Package bench makes it; the names of the states are its.
type Measurement struct {
	Store    string    `json:"store"` // "redis", "upstash", "firestore", "dynamodb", "memory"
	File     string    `json:"file"`
	Date     time.Time `json:"date"`
	Machine  string    `json:"machine"`
	Server   string    `json:"server"` // what answered
	Kind     string    `json:"kind"`   // "real", "emulator", ...
	Loopback bool      `json:"loopback"`
	P50      float64   `json:"steady_p50_us"`
	P99      float64   `json:"steady_p99_us"`

	States map[string]Counts `json:"-"`
}

// Counts are totals over a number of navigations in one state.
type Counts struct {
	Navigations             int64
	Writes, Reads, Expiries int64
	BytesOut, BytesIn       int64
	BytesKnown              bool
}

// The states that the model uses.
const (
	first  = "first"
	steady = "steady"
	edge   = "epoch-first-hour"
	denied = "denied"
	repeat = "denied-repeat"
)

// Traffic is what a site's visitors do in a month.
type Traffic struct {
	Navigations int64 `json:"navigations"` // counted, in a month

	// PerClientDay is how many navigations a client makes on a day on which it
	// comes: each day's first one makes a record. 0 = 5.
	PerClientDay decimal.Decimal `json:"navigations_per_client_and_day"`
	// Denied is the share of navigations that go over a limit and ask the store;
	// Repeats is the share that are refused from memory afterwards.
	Denied  decimal.Decimal `json:"denied_share"`
	Repeats decimal.Decimal `json:"repeats_share"`
	// Outer is the bench state of a policy with an outer bucket, "" without one.
	Outer string `json:"outer_state"`
	// PeakPerSecond is the busiest second's navigations; 0 = six times the mean.
	PeakPerSecond decimal.Decimal `json:"peak_per_second"`

	Keys []HotKey `json:"keys"`
	From string   `json:"from"` // where the numbers come from
}

var (
	one   = decimal.New(1, 0)
	edges = one.DivRound(decimal.New(24, 0), 12) // the share of the hour after midnight
)

// MaxNavigations bounds a month's navigations: a million millions.
const MaxNavigations = 1_000_000_000_000

func (t Traffic) withDefaults() (Traffic, error) {
	if t.PerClientDay.IsZero() {
		t.PerClientDay = decimal.New(5, 0)
	}
	if t.PeakPerSecond.IsZero() {
		t.PeakPerSecond = decimal.New(6*t.Navigations, 0).DivRound(Hours.Mul(decimal.New(3600, 0)), 6)
	}
	var errs []error
	if t.Navigations < 0 || t.Navigations > MaxNavigations {
		errs = append(errs, fmt.Errorf("navigations: want 0 to %d", int64(MaxNavigations)))
	}
	if t.PerClientDay.LessThan(one) {
		errs = append(errs, errors.New("navigations per client and day: want 1 or more"))
	}
	if t.Denied.IsNegative() || t.Repeats.IsNegative() || t.Denied.Add(t.Repeats).GreaterThan(one) {
		errs = append(errs, errors.New("denied and repeated shares: want 0 to 1 together"))
	}
	if t.PeakPerSecond.IsNegative() {
		errs = append(errs, errors.New("peak per second: want 0 or more"))
	}
	return t, errors.Join(errs...)
}

// A Quantity is what a month sends to a store.
type Quantity struct {
	Writes   decimal.Decimal `json:"writes"`
	Reads    decimal.Decimal `json:"reads"`
	Expiries decimal.Decimal `json:"expiries"`
	Records  decimal.Decimal `json:"records"` // made, and so deleted by TTL later
	BytesOut decimal.Decimal `json:"bytes_out"`
	BytesIn  decimal.Decimal `json:"bytes_in"`

	BytesKnown bool `json:"bytes_known"`
}

// Operations is the sum of what is sent.
func (q *Quantity) Operations() decimal.Decimal { return q.Writes.Add(q.Reads).Add(q.Expiries) }

// ErrUnmeasured marks a state that no result backs: the model has no count of its
// own to put in its place.
var ErrUnmeasured = errors.New("costmodel: not measured")

// Quantities multiplies what was measured by the traffic. Every count comes from a
// state of the measurement. An admitted navigation is a steady one; a share of
// 1/PerClientDay makes a record as well (what first costs more than steady), 1/24
// falls into the hour after midnight, and an outer bucket adds what its state costs
// more than steady.
func (m *Measurement) Quantities(t Traffic) (Quantity, error) {
	navigations := decimal.New(t.Navigations, 0)
	admitted := navigations.Mul(one.Sub(t.Denied).Sub(t.Repeats))
	records := admitted.DivRound(t.PerClientDay, 6)
	q := Quantity{Records: records, BytesKnown: true}
	add := func(state string, times decimal.Decimal) error {
		c, ok := m.States[state]
		if !ok || c.Navigations <= 0 {
			return fmt.Errorf("%w: %s in state %q", ErrUnmeasured, m.Store, state)
		}
		per := decimal.New(c.Navigations, 0)
		sum := func(to *decimal.Decimal, n int64) {
			*to = to.Add(times.Mul(decimal.New(n, 0)).DivRound(per, 6))
		}
		sum(&q.Writes, c.Writes)
		sum(&q.Reads, c.Reads)
		sum(&q.Expiries, c.Expiries)
		sum(&q.BytesOut, c.BytesOut)
		sum(&q.BytesIn, c.BytesIn)
		q.BytesKnown = q.BytesKnown && c.BytesKnown
		return nil
	}
	more := func(state string, times decimal.Decimal) error { // than steady
		return errors.Join(add(state, times), add(steady, times.Neg()))
	}
	err := errors.Join(
		add(steady, admitted),
		more(first, records),
		more(edge, admitted.Mul(edges)),
		add(denied, navigations.Mul(t.Denied)),
		add(repeat, navigations.Mul(t.Repeats)),
	)
	if t.Outer != "" {
		err = errors.Join(err, more(t.Outer, admitted))
	}
	return q, err
}
