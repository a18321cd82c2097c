package sizing

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// A pathSketch says what a heavy client asked for: its most common patterns, and
// about how many different URLs. It is a bounded summary: sixteen patterns by
// the space-saving rule, and 1,024 registers that estimate distinct values to some
// three per cent.
type pathSketch struct {
	total     int64
	patterns  []patternCount
	registers [1024]uint8
}

type patternCount struct {
	pattern string
	count   int64
	example string
}

const maxPatterns = 16

func (s *pathSketch) add(path, query string, hash uint32) {
	s.total++
	x := uint64(hash) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	reg, rank := x>>54, uint8(bits.LeadingZeros64(x<<10|1<<9))+1
	s.registers[reg] = max(s.registers[reg], rank)
	p := pattern(path, query)
	least := 0
	for i := range s.patterns {
		if s.patterns[i].pattern == p {
			s.patterns[i].count++
			return
		}
		if s.patterns[i].count < s.patterns[least].count {
			least = i
		}
	}
	example := path
	if query != "" {
		example += "?" + query
	}
	n := patternCount{p, 1, strings.Clone(example[:min(len(example), 120)])}
	if len(s.patterns) < maxPatterns {
		s.patterns = append(s.patterns, n)
		return
	}
	n.count += s.patterns[least].count
	s.patterns[least] = n
}

func (s *pathSketch) merge(o *pathSketch) {
	s.total += o.total
	for i, r := range o.registers {
		s.registers[i] = max(s.registers[i], r)
	}
next:
	for _, p := range o.patterns {
		for i := range s.patterns {
			if s.patterns[i].pattern == p.pattern {
				s.patterns[i].count += p.count
				continue next
			}
		}
		s.patterns = append(s.patterns, p)
	}
	slices.SortFunc(s.patterns, func(a, b patternCount) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.pattern, b.pattern))
	})
	s.patterns = s.patterns[:min(len(s.patterns), maxPatterns)]
}

// distinct estimates the number of different URLs (HyperLogLog with linear
// counting where few registers are set).
func (s *pathSketch) distinct() int64 {
	const m = 1024.0
	sum, zero := 0.0, 0
	for _, r := range s.registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zero++
		}
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && zero > 0 {
		e = m * math.Log(m/float64(zero))
	}
	return min(int64(e+0.5), s.total)
}

// pattern replaces what varies in a target: numbers, ids and long slugs become
// marks, and of a query only the names stay.
func pattern(path, query string) string {
	var b strings.Builder
	segments := 0
	for seg := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if segments++; segments > 6 {
			b.WriteString("/…")
			break
		}
		b.WriteByte('/')
		b.WriteString(patternSegment(seg))
	}
	if query != "" {
		sep := byte('?')
		n := 0
		for pair := range strings.SplitSeq(query, "&") {
			if n++; n > 4 {
				b.WriteString("&…")
				break
			}
			key, _, has := strings.Cut(pair, "=")
			b.WriteByte(sep)
			b.WriteString(patternSegment(key))
			if has {
				b.WriteString("=*")
			}
			sep = '&'
		}
	}
	return b.String()
}

func patternSegment(s string) string {
	if s == "" {
		return ""
	}
	digit, letter, dash := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digit++
		case c == '-' || c == '_' || c == '%' || c == '+':
			dash++
		default:
			letter++
		}
	}
	switch {
	case digit > 0 && letter == 0:
		return "N"
	case len(s) > 24, dash >= 2 && letter > 0 && digit+letter > 8:
		return "TEXT"
	case digit > 0 && dash > 0:
		return "TEXT-N"
	case digit >= 4:
		return "ID"
	}
	return strings.Clone(s)
}
