package identity

import (
	"strings"

	"github.com/stilehq/stile/core"
)

// maxCookieBytes bounds how much of the Cookie field is looked at. Browsers send
// less than half of it for one site.
const maxCookieBytes = 32 << 10

// cookieValue returns the value of the one cookie of that name. A cookie sent
// twice is none: which of the two is meant, server and origin might not agree
// on. The value is a part of the field, unquoted and undecoded, and hostile.
func cookieValue(h core.Header, name string) (string, bool) {
	if h == nil {
		return "", false
	}
	value, found, left := "", false, maxCookieBytes
	for _, line := range h.Values("Cookie") {
		if len(line) > left {
			line = line[:left]
		}
		left -= len(line)
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			n, v, ok := strings.Cut(pair, "=")
			if !ok || trimSpace(n) != name {
				continue
			}
			if found {
				return "", false
			}
			value, found = trimSpace(v), true
		}
	}
	return value, found
}

// trimSpace drops what may stand around a cookie's name and value.
func trimSpace(s string) string { return strings.Trim(s, " \t") }
