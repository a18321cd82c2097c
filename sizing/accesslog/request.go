package accesslog

import (
	"strconv"
	"strings"
)

// setRequest reads a request line: method, target, protocol. The target may hold
// blanks, and the protocol may be missing where the server cut a long line.
func (r *Record) setRequest(s string) Kind {
	if s == "" || s == "-" || s == "- - -" || s == "- - - " {
		return NoRequest
	}
	sp := strings.IndexByte(s, ' ')
	if sp <= 0 || !isMethod(s[:sp]) {
		return NotHTTP
	}
	r.Method = s[:sp]
	r.Has |= HasMethod
	target := strings.TrimLeft(s[sp+1:], " ")
	if i := strings.LastIndexByte(target, ' '); i >= 0 && strings.HasPrefix(target[i+1:], "HTTP/") {
		target = target[:i]
	} else if !knownMethod(r.Method) || strings.HasPrefix(target, "HTTP/") {
		return NotHTTP // "t3 12.1.2", "MGLNDD …": another protocol's greeting
	}
	return r.setTarget(target)
}

// setTarget splits a request target of any form.
func (r *Record) setTarget(t string) Kind {
	t = strings.TrimRight(t, " ")
	if t == "" || t == "-" {
		return NoRequest
	}
	r.Has |= HasQuery
	switch {
	case t[0] == '/':
	case r.Method == "CONNECT":
		r.Host, r.Path = hostOnly(t), ""
		return Parsed
	case t == "*":
	case r.setURL(t):
		return Parsed
	case r.Method != "":
		return NotHTTP
	}
	if i := strings.IndexByte(t, '?'); i >= 0 {
		r.Path, r.Query = t[:i], t[i+1:]
	} else {
		r.Path = t
	}
	return Parsed
}

// setURL reads an absolute URL (open-proxy probes, and the balancers' way of
// writing every request). It reports false when t is none.
func (r *Record) setURL(t string) bool {
	i := strings.Index(t, "://")
	if i < 2 || i > 8 {
		return false
	}
	rest := t[i+3:]
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if r.Host == "" {
		r.Host = hostOnly(rest[:end])
		r.Has |= HasHost
	}
	r.Has |= HasQuery
	rest = rest[end:]
	if q := strings.IndexByte(rest, '?'); q >= 0 {
		r.Path, r.Query = rest[:q], rest[q+1:]
	} else {
		r.Path = rest
	}
	if r.Path == "" {
		r.Path = "/"
	}
	return true
}

// hostOnly drops a port.
func hostOnly(s string) string {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || !digits(s[i+1:]) {
		return s
	}
	if strings.IndexByte(s[:i], ':') >= 0 && s[0] != '[' {
		return s // a bare IPv6 address
	}
	return s[:i]
}

// isMethod accepts the upper-case tokens that methods are made of.
func isMethod(s string) bool {
	if len(s) < 2 || len(s) > 32 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'A' || c > 'Z') && (i == 0 || (c != '_' && c != '-')) {
			return false
		}
	}
	return true
}

func knownMethod(s string) bool {
	switch s {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PROPFIND", "REPORT":
		return true
	}
	return false
}

// setStatus reads a status; "-", "000" and "" are none.
func (r *Record) setStatus(s string) bool {
	r.Has |= HasStatus
	if s == "" || s == "-" || s == "null" {
		return true
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 999 {
		return false
	}
	r.Status = n
	return true
}

// setBytes reads a size; anything else leaves it 0.
func (r *Record) setBytes(s string) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
		r.Bytes = n
	}
}

func (r *Record) setAgent(s string) {
	r.Has |= HasUserAgent
	r.UserAgent = none(s)
}

func (r *Record) setReferer(s string) {
	r.Has |= HasReferer
	r.Referer = none(s)
}

func (r *Record) setHost(s string) {
	if s = none(s); s != "" {
		r.Host = hostOnly(s)
		r.Has |= HasHost
	}
}

func (r *Record) setCache(s string) {
	r.Has |= HasCache
	r.Cache = cacheOf(s)
}

// none turns the log's dash into nothing.
func none(s string) string {
	if s == "-" || s == "null" {
		return ""
	}
	return s
}

// plusSpaces undoes the W3C writers' way of keeping values free of blanks.
func plusSpaces(s string) string {
	if strings.IndexByte(s, '+') < 0 || strings.IndexByte(s, ' ') >= 0 {
		return s
	}
	return strings.ReplaceAll(s, "+", " ")
}

// unescapeAgent undoes percent encoding once, and again where the writer had
// encoded twice (%2520). What does not decode stays as it is.
func unescapeAgent(s string) string {
	for range 2 {
		if strings.IndexByte(s, '%') < 0 {
			return s
		}
		s = unpercent(s)
	}
	return s
}

func unpercent(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if h, l := unhex(s[i+1]), unhex(s[i+2]); h >= 0 && l >= 0 {
				b = append(b, byte(h<<4|l))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
