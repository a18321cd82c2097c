package costmodel

import (
	"strings"
	"testing"
	"time"
)

// TestShipped: every figure is sourced and dated, and offers and placements name
// figures that exist.
func TestShipped(t *testing.T) {
	t.Parallel()
	b := shippedBook(t)
	for _, f := range b.Figures() {
		if f.Source == "" || f.Date == "" || !f.Confidence.valid() || f.Override {
			t.Errorf("%+v", f)
		}
	}
	if len(b.Alternatives) < 10 {
		t.Errorf("%d alternatives", len(b.Alternatives))
	}
	r := estimate(t, Input{})
	for _, s := range r.Stores {
		for _, l := range s.Lines {
			if l.Figure == nil {
				t.Errorf("%s: %s has no figure", s.ID, l.What)
			}
		}
	}
	for _, p := range r.Placements {
		for _, l := range p.Lines {
			if l.Figure == nil {
				t.Errorf("%s: %s has no figure", p.ID, l.What)
			}
		}
	}
	for _, o := range offers() {
		if o.ceiling != "" && b.Find(o.ceiling, o.provider, "any") == nil {
			t.Errorf("%s: no limit %s", o.id, o.ceiling)
		}
	}
}

const override = `prices:
- {id: dynamodb.ondemand.write, value: "1.00", per: 1000000, unit: write, region: us-east-1, source: "our contract", date: 2026-11, confidence: read}
- {id: dynamodb.ondemand.write, value: unknown, unit: write, region: mars-1, source: "nobody", date: unknown, confidence: memory}
`

func TestOverride(t *testing.T) {
	t.Parallel()
	b := shippedBook(t)
	mine, err := b.Override([]byte(override))
	if err != nil {
		t.Fatal(err)
	}
	f := mine.Find("dynamodb.ondemand.write", AWS, "us-east-1")
	if got := f.Cost(million, true); !f.Override || !got.Equal(Dollars(one)) {
		t.Errorf("%+v costs %s", f, got)
	}
	if got := b.Find("dynamodb.ondemand.write", AWS, "us-east-1").Cost(million, true); !got.Equal(Dollars(dec("0.625"))) {
		t.Errorf("the shipped book was changed: %s", got)
	}
	if got := mine.Find("dynamodb.ondemand.write", AWS, "mars-1").Cost(million, true); got.Known() {
		t.Errorf("a price that is said to be unknown is %s", got)
	}
	if f := mine.Find("dynamodb.ondemand.write", AWS, "pluto-1"); f != nil || f.Cost(one, true).Known() {
		t.Errorf("a region without a price has %+v", f)
	}
	const good = `- {id: dynamodb.ondemand.write, value: "1", unit: u, region: r, source: s, date: "2026", confidence: read}`
	if _, err := b.Override([]byte("prices:\n" + good)); err != nil {
		t.Errorf("the good one: %v", err)
	}
	for name, change := range map[string][2]string{
		"no such figure":    {"dynamodb.ondemand.write", "dynamodb.ondemand.frob"},
		"not a number":      {`"1"`, `"one"`},
		"negative":          {`"1"`, `"-1"`},
		"huge":              {`"1"`, `"1e999999999"`},
		"tiny":              {`"1"`, `"1e-999999999"`},
		"no source":         {"source: s", `source: ""`},
		"no unit":           {"unit: u, ", ""},
		"date":              {`"2026"`, "yesterday"},
		"confidence":        {"confidence: read", "confidence: sure"},
		"unknown key":       {"unit: u", "unit: u, frob: 1"},
		"per":               {"unit: u", "unit: u, per: -1"},
		"value and tiers":   {"unit: u", `unit: u, tiers: [{value: "1"}]`},
		"neither":           {`value: "1", `, ""},
		"falling tiers":     {`value: "1"`, `tiers: [{up_to: 5, value: "1"}, {up_to: 4, value: "1"}, {value: "1"}]`},
		"no last tier":      {`value: "1"`, `tiers: [{up_to: 5, value: "1"}]`},
		"free of what":      {"unit: u", "unit: u, free: {quantity: 5, per: year}"},
		"free of how much":  {"unit: u", "unit: u, free: {quantity: many, per: day}"},
		"an endless tier 1": {`value: "1"`, `tiers: [{value: "1"}, {value: "1"}]`},
	} {
		text := strings.Replace("prices:\n"+good, change[0], change[1], 1)
		if _, err := b.Override([]byte(text)); err == nil {
			t.Errorf("%s was accepted: %s", name, text)
		}
	}
	if _, err := b.Override(make([]byte, MaxPriceFile+1)); err == nil {
		t.Error("a file without bound was accepted")
	}
	if _, err := b.Override(nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for date, stale := range map[string]bool{
		"2026-11-30": false, "2026-06-04": false, "2026-06-03": true, "2026-06-02": true, "2026-07": false, "2026-06": true, "2026": true, "unknown": true, "2024-07-01": true,
	} {
		f := Figure{Date: date}
		if got := f.Stale(now); got != stale {
			age, _ := f.Age(now)
			t.Errorf("%s is %v old: stale %v, want %v", date, age, got, stale)
		}
	}
}
