package crawlers

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// mask is a set of indexes below maxEntries: agents, lists or patterns.
type mask [maxEntries / 64]uint64

func (m *mask) set(i int)     { m[i/64] |= 1 << (i % 64) }
func (m mask) has(i int) bool { return i >= 0 && m[i/64]&(1<<(i%64)) != 0 }
func (m mask) empty() bool    { return m == mask{} }
func (m mask) and(o mask) mask {
	for i := range m {
		m[i] &= o[i]
	}
	return m
}
func (m mask) or(o mask) mask {
	for i := range m {
		m[i] |= o[i]
	}
	return m
}

// lowest returns the least index in m, or -1.
func (m mask) lowest() int {
	for i, w := range m {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// maxUserAgent bounds how much of a User-Agent is read: real crawlers name
// themselves in the first 300 bytes, and the header is hostile.
const maxUserAgent = 1024

type token struct {
	text  string // lower case
	agent int
}

// claims finds the agents that a User-Agent names, in one pass and without
// allocation: tokens are tried only where a word begins, by their first byte.
type claims struct{ byFirst [256][]token }

func newClaims(agents []Agent) *claims {
	x := &claims{}
	for i, a := range agents {
		for _, t := range a.Tokens {
			t = strings.ToLower(t)
			x.byFirst[t[0]] = append(x.byFirst[t[0]], token{t, i})
		}
	}
	for i := range x.byFirst { // the longest first: Googlebot-Image before Googlebot
		slices.SortStableFunc(x.byFirst[i], func(a, b token) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return x
}

// find returns the claimed agents and the one that ua names first, or -1.
func (x *claims) find(ua string) (set mask, first int) {
	first = -1
	if len(ua) > maxUserAgent {
		ua = ua[:maxUserAgent]
	}
	word := false // whether the byte before belongs to a word
	for i := 0; i < len(ua); {
		c := lower(ua[i])
		if word || !isWord(c) {
			word = isWord(c)
			i++
			continue
		}
		word = true
		step := 1
		for _, t := range x.byFirst[c] {
			if !hasPrefixFold(ua[i:], t.text) || (i+len(t.text) < len(ua) && isWord(ua[i+len(t.text)])) {
				continue
			}
			set.set(t.agent)
			if first < 0 {
				first = t.agent
			}
			step = len(t.text)
			break
		}
		i += step
	}
	return set, first
}

// hasPrefixFold reports whether s begins with p, a lower-case ASCII string.
func hasPrefixFold(s, p string) bool {
	if len(s) < len(p) {
		return false
	}
	for i := 0; i < len(p); i++ {
		if lower(s[i]) != p[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isWord(c byte) bool {
	c = lower(c)
	return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9')
}
