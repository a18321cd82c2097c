package hitlog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// cleanText replaces what a log must not hold by U+FFFD and bounds the length,
// without cutting a character. It allocates only when there is something to do.
func cleanText(s string, limit int) string {
	if len(s) > limit {
		cut := limit - len(ellipsis)
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + ellipsis
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return cleanRunes(s, limit)
		}
	}
	return s
}

// cleanRunes may find more to do than the bytes showed, and its replacements
// may be longer than what they replace.
func cleanRunes(s string, limit int) string {
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				b.WriteRune(utf8.RuneError)
				continue
			}
		}
		if unsafeRune(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	if b.Len() > limit {
		return cleanText(b.String(), limit)
	}
	return b.String()
}

// unsafeRune reports control characters (C0, DEL, C1), the two line ends that
// only some readers know, and marks that turn the direction of the text.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}
