package costmodel

import "github.com/shopspring/decimal"

// A Tier is a price up to a monthly quantity.
type Tier struct {
	UpTo  decimal.Decimal // inclusive; zero = without end, only in the last tier
	Price decimal.Decimal // of one unit
}

// Charge is what a month's quantity costs: the free part first, then each tier by
// what falls into it. It is the only place where tiers and free quantities are
// reckoned. The tiers' ends count all units, free ones included, as the providers'
// price lists do. A negative quantity costs nothing.
func Charge(quantity, free decimal.Decimal, tiers []Tier) decimal.Decimal {
	total, from := decimal.Zero, decimal.Max(decimal.Zero, free)
	for _, t := range tiers {
		end := quantity
		if !t.UpTo.IsZero() {
			end = decimal.Min(quantity, t.UpTo)
		}
		if end.GreaterThan(from) {
			total = total.Add(end.Sub(from).Mul(t.Price))
			from = end
		}
	}
	return total
}
