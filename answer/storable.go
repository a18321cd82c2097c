package answer

import (
	"net/http"
	"strconv"
	"strings"
)

// sharedMayStore reports whether a shared cache may keep a response, so that
// another visitor could read its fields (RFC 9111 §3): unless it says private
// or no-store, anything with explicit freshness, `public`, a cache-only field
// (RFC 9213), or something to revalidate by. A response that says nothing at
// all is kept only by a cache that was configured against the origin's word.
func sharedMayStore(status int, h http.Header) bool {
	cc := parseCacheControl(h["Cache-Control"])
	if cc.noStore || cc.private {
		return false
	}
	if status == http.StatusNotModified {
		// It freshens what was stored under the full response's rules, which
		// need not be repeated here.
		return true
	}
	if cc.public || cc.fresh {
		return true
	}
	for _, name := range targeted {
		if parseCacheControl(h[name]).fresh {
			return true
		}
	}
	if expires := first(h, "Expires"); expires != "" && !cc.maxAge {
		if at, err := http.ParseTime(expires); err == nil {
			if date, err := http.ParseTime(first(h, "Date")); err != nil || at.After(date) {
				return true
			}
		}
	}
	if !storableByDefault(status) {
		return false
	}
	// Without explicit freshness a cache may guess it from Last-Modified, or
	// keep the response and revalidate each use (no-cache, max-age=0). The 304
	// of a visitor who is not counted would then hand on these fields.
	revalidates := cc.maxAge || cc.noCache
	return first(h, "Last-Modified") != "" || revalidates && first(h, "Etag") != ""
}

// targeted are the fields that address caches alone: RFC 9213's, one vendor's
// form of it, and their predecessor.
var targeted = [...]string{"Cdn-Cache-Control", "Cloudflare-Cdn-Cache-Control", "Surrogate-Control"}

// storableByDefault lists the statuses of RFC 9110 §15.1 that need no explicit
// freshness to be kept.
func storableByDefault(status int) bool {
	switch status {
	case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

type cacheControl struct {
	private, noStore, public bool
	noCache                  bool
	fresh                    bool // s-maxage or max-age above 0
	maxAge                   bool // either was given, whatever its value
}

func parseCacheControl(lines []string) (cc cacheControl) {
	for _, line := range lines {
		for line != "" {
			var directive string
			directive, line = cutOutsideQuotes(line, ',')
			name, value, hasValue := strings.Cut(strings.Trim(directive, " \t"), "=")
			switch name = strings.ToLower(strings.TrimRight(name, " \t")); name {
			case "private":
				// private="Set-Cookie" speaks of that field only (RFC 9111 §5.2.2.7).
				cc.private = cc.private || !hasValue
			case "no-store":
				cc.noStore = true
			case "no-cache":
				cc.noCache = true
			case "public":
				cc.public = true
			case "max-age", "s-maxage":
				cc.maxAge = true
				n, err := strconv.ParseInt(strings.Trim(value, "\" \t"), 10, 64)
				cc.fresh = cc.fresh || err != nil || n > 0
			}
		}
	}
	return cc
}

// cutOutsideQuotes splits at the first sep that is not in a quoted string.
func cutOutsideQuotes(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
