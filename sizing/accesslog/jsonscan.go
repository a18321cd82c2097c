package accesslog

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A walker passes over one JSON object once and keeps the values of known keys
// in slots. It allocates only for strings that hold escapes. Nested objects are
// entered where they carry something (Caddy's request, Google's httpRequest) and
// skipped elsewhere, without recursion.
type walker struct {
	s      string
	i      int
	out    *slots
	header string // wanted header, lower case
	nginx  string // the same as an nginx variable
	seen   group  // groups that occurred, one bit each
}

// skipSpace moves to the next byte that counts.
func (w *walker) skipSpace() byte {
	for w.i < len(w.s) {
		switch w.s[w.i] {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return w.s[w.i]
		}
	}
	return 0
}

// object reads the object at w.i. It returns Truncated when the text ends
// inside, Malformed when it is no JSON.
func (w *walker) object(g group, depth int) Kind {
	w.i++ // "{"
	w.seen |= g
	if w.skipSpace() == '}' {
		w.i++
		return Parsed
	}
	for {
		if w.skipSpace() != '"' {
			return w.broken()
		}
		key, k := w.str()
		if k != Parsed {
			return k
		}
		if w.skipSpace() != ':' {
			return w.broken()
		}
		w.i++
		to, sub := w.lookup(g, key)
		if k := w.value(to, sub, depth); k != Parsed {
			return k
		}
		switch w.skipSpace() {
		case ',':
			w.i++
		case '}':
			w.i++
			return Parsed
		default:
			return w.broken()
		}
	}
}

func (w *walker) broken() Kind {
	if w.i >= len(w.s) {
		return Truncated
	}
	return Malformed
}

// value reads one value into slot to, or walks into it as group sub.
func (w *walker) value(to slot, sub group, depth int) Kind {
	switch w.skipSpace() {
	case 0:
		return w.broken()
	case '"':
		if to == sNone {
			return w.skipString()
		}
		v, k := w.str()
		w.keep(to, v)
		return k
	case '{':
		if sub != 0 && depth < 6 {
			return w.object(sub, depth+1)
		}
		return w.skipComposite()
	case '[':
		if to == sNone {
			return w.skipComposite()
		}
		// A list of strings, as Caddy and Vercel write headers: the first counts.
		start := w.i
		w.i++
		if w.skipSpace() == '"' {
			v, k := w.str()
			if k != Parsed {
				return k
			}
			w.keep(to, v)
		}
		w.i = start
		return w.skipComposite()
	}
	start := w.i
	for w.i < len(w.s) {
		switch w.s[w.i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			if w.i == start {
				return Malformed
			}
			w.keep(to, w.s[start:w.i])
			return Parsed
		case '"', '{', '[', ':':
			return Malformed
		}
		w.i++
	}
	return Truncated
}

func (w *walker) keep(to slot, v string) {
	if to != sNone && w.out[to] == "" && v != "null" {
		w.out[to] = v
	}
}

// str reads the string at w.i, undoing escapes when there are any.
func (w *walker) str() (string, Kind) {
	start := w.i + 1
	escaped := false
	for i := start; ; {
		j := strings.IndexByte(w.s[i:], '"')
		if j < 0 {
			w.i = len(w.s)
			return "", Truncated
		}
		end := i + j
		if !escaped {
			escaped = strings.IndexByte(w.s[i:end], '\\') >= 0
		}
		b := end
		for b > start && w.s[b-1] == '\\' {
			b--
		}
		if (end-b)%2 == 0 {
			w.i = end + 1
			if escaped {
				return unescapeJSON(w.s[start:end]), Parsed
			}
			return w.s[start:end], Parsed
		}
		i = end + 1
	}
}

func (w *walker) skipString() Kind {
	q := closeQuote(w.s, w.i+1)
	if q < 0 {
		w.i = len(w.s)
		return Truncated
	}
	w.i = q + 1
	return Parsed
}

// skipComposite passes over an object or array of any depth.
func (w *walker) skipComposite() Kind {
	depth := 0
	for w.i < len(w.s) {
		switch w.s[w.i] {
		case '"':
			if k := w.skipString(); k != Parsed {
				return k
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				w.i++
				return Parsed
			}
		}
		w.i++
	}
	return Truncated
}

// unescapeJSON undoes the escapes of a JSON string. What is no escape stays: a
// log is evidence, not a contract (nginx writes \xHH in its default escaping).
func unescapeJSON(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch s[i] {
		case '"', '\\', '/':
			b = append(b, s[i])
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'u':
			r, n := hexRune(s[i+1:])
			if n == 0 {
				b = append(b, '\\', 'u')
				continue
			}
			i += n
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				if lo, m := hexRune(s[i+3:]); m > 0 {
					if full := utf16.DecodeRune(r, lo); full != utf8.RuneError {
						r, i = full, i+2+m
					}
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, '\\', s[i])
		}
	}
	return string(b)
}

func hexRune(s string) (rune, int) {
	if len(s) < 4 {
		return 0, 0
	}
	var r rune
	for i := range 4 {
		h := unhex(s[i])
		if h < 0 {
			return 0, 0
		}
		r = r<<4 | rune(h)
	}
	return r, 4
}
