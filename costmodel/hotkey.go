package costmodel

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"
)

// A HotKey is the busiest key of one scope, and the bucket that counts it.
type HotKey struct {
	Scope string          `json:"scope"`           // "address", "network", "global", ...
	Peak  decimal.Decimal `json:"peak_per_second"` // navigations that were observed

	Limit      int64         `json:"limit,omitempty"` // of its bucket; 0 = unknown
	Window     time.Duration `json:"window_ns,omitempty"`
	FlushEvery time.Duration `json:"flush_every_ns,omitempty"` // 0 = not coalesced
}

// own scopes are refused from memory once over their limit.
func (k *HotKey) own() bool {
	switch k.Scope {
	case "address", "cookie", "user", "api-key":
		return true
	}
	return false
}

// share is the part of an outer bucket's room that an instance may leave
// unreported; see stores/wrap.
const share = 128

// writes is how many writes a second to its record the key really makes.
func (k *HotKey) writes(instances int64) (rate decimal.Decimal, why string) {
	switch {
	case k.own() && k.Limit > 0 && k.Window > 0:
		sustained := decimal.New(k.Limit, 0).DivRound(decimal.NewFromFloat(k.Window.Seconds()), 6)
		if sustained.LessThan(k.Peak) {
			return sustained, fmt.Sprintf("its limit of %d in %s lets no more through, and refusals cost nothing", k.Limit, k.Window)
		}
	case !k.own() && k.FlushEvery > 0:
		// Each instance reports when it holds 1/128 of the room, or by age.
		held := max(1, k.Limit/share)
		rate = k.Peak.DivRound(decimal.New(held, 0), 6).Add(decimal.New(instances, 0).DivRound(decimal.NewFromFloat(k.FlushEvery.Seconds()), 6))
		if rate.LessThan(k.Peak) {
			return rate, fmt.Sprintf("coalesced: %d instances report up to %d at once, or after %s", instances, held, k.FlushEvery)
		}
	}
	if k.own() && k.Limit == 0 {
		return k.Peak, "its limit is not known: give --policy"
	}
	return k.Peak, "every navigation is a write"
}

// A Warning compares a hot key with what a store's record takes.
type Warning struct {
	Scope   string          `json:"scope"`
	Peak    decimal.Decimal `json:"peak_per_second"`
	Writes  decimal.Decimal `json:"writes_per_second"` // after limits and coalescing
	Ceiling Money           `json:"-"`
	Most    string          `json:"ceiling_per_second"` // a number, or "unknown"
	Breaks  bool            `json:"breaks"`
	Text    string          `json:"text"`
}

// heat checks the hot keys against an offer, and the whole traffic where the
// ceiling is the database's.
func (o *offer) heat(b *bill, q *Quantity, t *Traffic, a *Assumptions) []Warning {
	if !o.shared {
		return nil
	}
	var out []Warning
	most := b.limit(o.ceiling)
	warn := func(w Warning, why string) {
		w.Most = "unknown"
		if most != nil {
			w.Most = most.Value.String()
			w.Breaks = w.Writes.GreaterThan(most.Value)
		}
		switch {
		case most == nil:
			w.Text = fmt.Sprintf("%s: %s writes a second to one record (%s); no ceiling is published", w.Scope, rate(w.Writes), why)
		case w.Breaks:
			w.Text = fmt.Sprintf("%s: BREAKS: %s writes a second (%s), and the store takes %s", w.Scope, rate(w.Writes), why, w.Most)
		default:
			w.Text = fmt.Sprintf("%s: %s a second observed, %s writes (%s); the store takes %s", w.Scope, rate(w.Peak), rate(w.Writes), why, w.Most)
		}
		out = append(out, w)
	}
	if o.wholeDatabase {
		n := perNavigation(q, t).Mul(t.PeakPerSecond)
		warn(Warning{Scope: "all keys together", Peak: t.PeakPerSecond, Writes: n}, "the busiest second's operations")
		return out
	}
	for _, k := range t.Keys {
		writes, why := k.writes(a.Instances)
		warn(Warning{Scope: k.Scope, Peak: k.Peak, Writes: writes}, why)
	}
	return out
}

func rate(d decimal.Decimal) string {
	if d.IsPositive() && d.LessThan(one) {
		return d.Round(3).String()
	}
	return thousands(d.StringFixed(0))
}
