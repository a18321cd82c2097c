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
	word  int    // the length of its first word
	agent int
}

// claims finds the agents that a User-Agent names, in one pass and without
// allocation: word by word, each compared with the tokens whose first word has
// its first byte and its length.
type claims struct {
	byFirst [256][]token
	lengths [256]uint64 // by first byte: the first words' lengths, as bits
}

// fold maps the bytes of words to lower case and all others to 0.
var fold = func() (t [256]byte) {
	for c := range t {
		if isWord(byte(c)) {
			t[c] = lower(byte(c))
		}
	}
	return t
}()

func newClaims(agents []Agent) *claims {
	x := &claims{}
	for i, a := range agents {
		for _, t := range a.Tokens {
			t = strings.ToLower(t)
			word := 0
			for word < len(t) && isWord(t[word]) {
				word++
			}
			x.byFirst[t[0]] = append(x.byFirst[t[0]], token{t, word, i})
			x.lengths[t[0]] |= 1 << (word & 63)
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
	for i := 0; i < len(ua); i++ {
		c := fold[ua[i]]
		if c == 0 {
			continue
		}
		end := i + 1
		for end < len(ua) && fold[ua[end]] != 0 {
			end++
		}
		word := end - i
		if x.lengths[c]&(1<<(word&63)) != 0 {
			if t := x.at(ua[i:], c, word); t != nil {
				set.set(t.agent)
				if first < 0 {
					first = t.agent
				}
				end = i + len(t.text)
			}
		}
		i = end
	}
	return set, first
}

// at returns the longest token that s, whose first word has the given first
// byte and length, begins with; a token ends where a word does.
func (x *claims) at(s string, first byte, word int) *token {
	for k := range x.byFirst[first] {
		t := &x.byFirst[first][k]
		n := len(t.text)
		if t.word != word || n > len(s) || (n > word && s[word] != t.text[word]) {
			continue
		}
		if hasPrefixFold(s, t.text) && (len(s) == n || fold[s[n]] == 0) {
			return t
		}
	}
	return nil
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
