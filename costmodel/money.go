package costmodel

import (
	"github.com/shopspring/decimal"
)

// Money is an amount in US dollars, or unknown. The zero Money is nothing, known.
// Arithmetic with something unknown is unknown.
type Money struct {
	amount  decimal.Decimal
	unknown bool
}

// Unknown is an amount that nobody can tell. It is never 0.
var Unknown = Money{unknown: true}

// Dollars returns a known amount.
func Dollars(d decimal.Decimal) Money { return Money{amount: d} }

// Known reports whether m is a number.
func (m Money) Known() bool { return !m.unknown }

// Amount returns the number; 0 when it is unknown, so ask Known first.
func (m Money) Amount() decimal.Decimal { return m.amount }

// Plus adds.
func (m Money) Plus(o Money) Money {
	if m.unknown || o.unknown {
		return Unknown
	}
	return Money{amount: m.amount.Add(o.amount)}
}

// Times multiplies.
func (m Money) Times(d decimal.Decimal) Money {
	if m.unknown {
		return Unknown
	}
	return Money{amount: m.amount.Mul(d)}
}

// Per divides; by nothing it is unknown.
func (m Money) Per(d decimal.Decimal) Money {
	if m.unknown || d.IsZero() {
		return Unknown
	}
	return Money{amount: m.amount.DivRound(d, 12)}
}

// Less orders amounts; unknown is more than everything.
func (m Money) Less(o Money) bool {
	if m.unknown || o.unknown {
		return !m.unknown && o.unknown
	}
	return m.amount.LessThan(o.amount)
}

// Equal reports whether both are the same amount, or both unknown.
func (m Money) Equal(o Money) bool {
	return m.unknown == o.unknown && (m.unknown || m.amount.Equal(o.amount))
}

// String writes cents, more digits below a dollar, or "unknown".
func (m Money) String() string {
	switch abs := m.amount.Abs(); {
	case m.unknown:
		return "unknown"
	case m.amount.IsZero():
		return "$0"
	case abs.LessThan(decimal.New(1, -4)):
		return "< $0.0001"
	case abs.LessThan(decimal.New(1, 0)):
		return "$" + m.amount.Round(4).String()
	case abs.LessThan(decimal.New(10000, 0)):
		return "$" + m.amount.StringFixed(2)
	default:
		return "$" + thousands(m.amount.StringFixed(0))
	}
}

// MarshalJSON writes a string with all digits, or "unknown": a number would be
// read back as a float.
func (m Money) MarshalJSON() ([]byte, error) {
	if m.unknown {
		return []byte(`"unknown"`), nil
	}
	return []byte(`"` + m.amount.Round(10).String() + `"`), nil
}

// thousands groups the digits of a whole number.
func thousands(digits string) string {
	sign := ""
	if digits != "" && digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}
