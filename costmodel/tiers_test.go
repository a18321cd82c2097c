package costmodel

import (
	"testing"

	"github.com/shopspring/decimal"
)

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func TestCharge(t *testing.T) {
	t.Parallel()
	three := []Tier{{dec("100"), dec("3")}, {dec("300"), dec("2")}, {decimal.Zero, dec("1")}}
	one := []Tier{{decimal.Zero, dec("0.5")}}
	for _, c := range []struct {
		name, quantity, free string
		tiers                []Tier
		want                 string
	}{
		{"nothing", "0", "0", three, "0"},
		{"negative", "-5", "0", three, "0"},
		{"within the first", "1", "0", three, "3"},
		{"below the first edge", "99", "0", three, "297"},
		{"at the first edge", "100", "0", three, "300"},
		{"above the first edge", "101", "0", three, "302"},
		{"at the second edge", "300", "0", three, "700"},
		{"above the second edge", "301", "0", three, "701"},
		{"far above", "1000000000000", "0", three, "1000000000400"},
		{"a fraction of a unit", "0.5", "0", three, "1.5"},
		{"below the free quantity", "9", "10", one, "0"},
		{"at the free quantity", "10", "10", one, "0"},
		{"above the free quantity", "11", "10", one, "0.5"},
		{"free ends at an edge", "101", "100", three, "2"},
		{"free reaches into the second tier", "301", "200", three, "201"},
		{"free reaches beyond all edges", "500", "400", three, "100"},
		{"a negative free quantity is none", "10", "-10", one, "5"},
		{"no tiers", "10", "0", nil, "0"},
	} {
		if got := Charge(dec(c.quantity), dec(c.free), c.tiers); !got.Equal(dec(c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestShippedEdges walks over every edge of every shipped price: one unit below
// it, at it and above it differ by that unit's price.
func TestShippedEdges(t *testing.T) {
	t.Parallel()
	book := shippedBook(t)
	edges := 0
	for _, f := range book.Figures() {
		for i, tier := range f.Tiers {
			if tier.UpTo.IsZero() {
				continue
			}
			edges++
			below, at, above := f.Cost(tier.UpTo.Sub(one), false), f.Cost(tier.UpTo, false), f.Cost(tier.UpTo.Add(one), false)
			if got := at.Amount().Sub(below.Amount()); !got.Equal(tier.Price) {
				t.Errorf("%s: the last unit of tier %d costs %s, want %s", f.ID, i, got, tier.Price)
			}
			if got := above.Amount().Sub(at.Amount()); !got.Equal(f.Tiers[i+1].Price) {
				t.Errorf("%s: the first unit of tier %d costs %s, want %s", f.ID, i+1, got, f.Tiers[i+1].Price)
			}
		}
		if f.Free.IsPositive() {
			edges++
			if got := f.Cost(f.Free, true); !got.Equal(Money{}) {
				t.Errorf("%s: the free quantity costs %s", f.ID, got)
			}
			if got := f.Cost(f.Free.Add(one), true); !got.Amount().Equal(f.Tiers[0].Price) {
				t.Errorf("%s: the first unit beyond the free quantity costs %s", f.ID, got.Amount())
			}
		}
	}
	if edges < 20 {
		t.Errorf("only %d edges were seen", edges)
	}
}

func shippedBook(t *testing.T) *Book {
	t.Helper()
	b, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Money{
		"$0": {}, "unknown": Unknown, "< $0.0001": Dollars(dec("0.00001")), "$0.0001": Dollars(dec("0.0001")),
		"$0.5": Dollars(dec("0.5")), "$1.00": Dollars(dec("1")), "$9999.50": Dollars(dec("9999.5")), "$1,234,568": Dollars(dec("1234567.8")), "$10,000": Dollars(dec("10000")),
	} {
		if got := m.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	a := Dollars(dec("2"))
	for _, m := range []Money{a.Plus(Unknown), Unknown.Plus(a), Unknown.Times(decimal.Zero), a.Per(decimal.Zero), Unknown.Per(one)} {
		if m.Known() {
			t.Errorf("%s, want unknown", m)
		}
	}
	if !a.Less(Unknown) || Unknown.Less(a) || Unknown.Less(Unknown) || !Unknown.Equal(Unknown) || a.Equal(Unknown) {
		t.Error("unknown is not more than everything")
	}
	if text, err := Unknown.MarshalJSON(); err != nil || string(text) != `"unknown"` {
		t.Errorf("%s, %v", text, err)
	}
}
