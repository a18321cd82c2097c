package answer

import "crypto/rand"

// refLen is 12 base32 characters: 60 bits. An id is looked up in one site's log
// by someone who holds it, so it only has to be unguessable and unique there.
const refLen = 12

// NewRef returns a new reference id: 12 characters of A-Z and 2-7. It stands in
// the answer and in the log line, and nowhere else.
func NewRef() string { return rand.Text()[:refLen] }

// ValidRef reports whether s has the form of a reference id. What comes back
// from a proxy's header is shown only when it has.
func ValidRef(s string) bool {
	if len(s) != refLen {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'A' && c <= 'Z' || c >= '2' && c <= '7') {
			return false
		}
	}
	return true
}

func cleanRef(s string) string {
	if ValidRef(s) {
		return s
	}
	return "-"
}
