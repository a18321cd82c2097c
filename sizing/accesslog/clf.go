package accesslog

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// clf reads the common log format and everything that grew out of it: combined,
// a virtual host in front, further fields behind, Traefik's variant, API
// Gateway's. It works from the time stamp outwards, since visitors can write
// blanks, quotes and brackets into the user field in front of it, and from the
// status inwards to find where the request ends.
func (p *Parser) clf(line string, r *Record) Kind {
	lb := clfStamp(line)
	if lb < 2 {
		return notMine
	}
	sec, ok := p.clfTime(line, lb+1)
	if !ok {
		return BadTime
	}
	off, _, ok := offset(line[lb+22:])
	if !ok {
		return BadTime
	}
	r.Time = time.Unix(sec-off, 0).UTC()
	r.Format = FormatCommon
	if !p.clfHead(line[:lb], r) {
		return notMine
	}
	return p.clfTail(line[lb+28:], r)
}

// clfStamp finds the "[dd/Mon/yyyy:hh:mm:ss +zzzz]" that a raw quote follows. A
// stamp forged in the user field is followed by an escaped one, since servers
// escape quotes there.
func clfStamp(line string) int {
	for from := 0; ; {
		i := strings.IndexByte(line[from:], '[')
		if i < 0 {
			return -1
		}
		lb := from + i
		if len(line)-lb < 28 {
			return -1
		}
		if line[lb+27] == ']' && clfShape(line, lb+1) && line[lb+21] == ' ' {
			rest := line[lb+28:]
			if strings.HasPrefix(rest, ` "`) || strings.HasPrefix(rest, `  "`) {
				return lb
			}
			if strings.TrimLeft(rest, " ") == "" {
				return lb // cut right here
			}
		}
		from = lb + 1
	}
}

// clfHead reads what stands before the time: [vhost] client ident user.
func (p *Parser) clfHead(head string, r *Record) bool {
	sp := strings.IndexByte(head, ' ')
	if sp <= 0 {
		return false
	}
	tok := head[:sp]
	if p.hops == 0 {
		if a, ok := parseV4(tok); ok { // the hot path
			r.Client, r.ClientRaw = a, tok
			return true
		}
	}
	if _, ok := parseAddr(tok); ok {
		p.setClient(r, tok, "", "")
		return true
	}
	if tok[len(tok)-1] == ',' { // a list of addresses in the client field
		end := sp
		for end < len(head) && head[end-1] == ',' {
			next := strings.IndexByte(head[end+1:], ' ')
			if next < 0 {
				return false
			}
			end += 1 + next
		}
		p.setClient(r, head[:end], head[:end], "")
		return r.Client.IsValid()
	}
	rest := strings.TrimLeft(head[sp+1:], " ")
	sp2 := strings.IndexByte(rest, ' ')
	if sp2 <= 0 {
		return false
	}
	second := rest[:sp2]
	if _, ok := parseAddr(second); ok && second != "-" {
		p.setClient(r, second, "", "")
		r.setHost(tok)
		return true
	}
	switch strings.Count(strings.TrimRight(rest, " "), " ") {
	case 0, 1: // "host - -": the server resolved the client's name
		if second != "-" || strings.HasSuffix(tok, ":") && tok != "unix:" {
			return false
		}
		r.ClientRaw = tok
	case 2: // "vhost name - -"
		if !strings.HasPrefix(rest[sp2+1:], "- ") {
			return false
		}
		r.setHost(tok)
		r.ClientRaw = second
	default:
		return false
	}
	return true
}

// clfTail reads what stands after the time: "request" status bytes ["referer" "agent" …].
func (p *Parser) clfTail(s string, r *Record) Kind {
	s = strings.TrimLeft(s, " ")
	if s == "" || s[0] != '"' {
		return Truncated
	}
	s = s[1:]
	end, status := requestEnd(s)
	if end < 0 {
		if status == "" && strings.IndexByte(s, '"') < 0 {
			return Truncated
		}
		if strings.Contains(s, `" `) {
			return Malformed
		}
		return Truncated
	}
	k := r.setRequest(s[:end])
	if k != Parsed {
		return k
	}
	r.setStatus(status)
	s = s[end+2+len(status):]
	s = strings.TrimPrefix(s, " ")
	i := strings.IndexByte(s, ' ')
	if i < 0 {
		i = len(s)
	}
	r.setBytes(s[:i])
	if s = s[i:]; s == "" {
		return Parsed
	}
	return p.clfExtra(s, r)
}

// requestEnd finds the quote that ends the request: the first unescaped one that
// a status follows. Old servers did not escape quotes inside.
func requestEnd(s string) (end int, status string) {
	from := 0
	for range 64 {
		q := closeQuote(s, from)
		if q < 0 {
			return -1, ""
		}
		rest := s[q+1:]
		if len(rest) >= 4 && rest[0] == ' ' && digits(rest[1:4]) && (len(rest) == 4 || rest[4] == ' ') {
			return q, rest[1:4]
		}
		if len(rest) >= 2 && rest[0] == ' ' && rest[1] == '-' && (len(rest) == 2 || rest[2] == ' ') {
			return q, "-"
		}
		from = q + 1
	}
	return -1, ""
}

// closeQuote finds the next quote that no odd number of backslashes precedes.
func closeQuote(s string, from int) int {
	for {
		i := strings.IndexByte(s[from:], '"')
		if i < 0 {
			return -1
		}
		i += from
		b := i
		for b > 0 && s[b-1] == '\\' {
			b--
		}
		if (i-b)%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// clfExtra reads referrer, agent and what follows them.
func (p *Parser) clfExtra(s string, r *Record) Kind {
	if len(s) < 2 || s[1] != '"' {
		i := strings.Index(s, ` "`)
		if i < 0 {
			return Parsed // common, with numbers or an id behind
		}
		s = s[i:]
	}
	ref := s[2:]
	q := closeQuote(ref, 0)
	if q < 0 {
		return Truncated
	}
	if q+1 < len(ref) && ref[q+1] != ' ' {
		if q = looseEnd(ref); q < 0 {
			return Malformed
		}
	}
	r.setReferer(ref[:q])
	s = strings.TrimLeft(ref[q+1:], " ")
	if s == "" {
		return Truncated
	}
	if s[0] != '"' {
		return Parsed
	}
	ua := s[1:]
	q = closeQuote(ua, 0)
	if q < 0 {
		return Truncated
	}
	if q+1 < len(ua) && ua[q+1] != ' ' {
		// Quotes inside the agent, or a second record that another process wrote
		// into the middle of this one.
		if strings.Contains(ua[:q], "] ") && clfStampIn(ua) {
			return Spliced
		}
		q = strings.LastIndexByte(ua, '"')
	}
	r.setAgent(ua[:q])
	r.Format = FormatCombined
	if s = ua[q+1:]; s != "" {
		p.clfRest(strings.TrimLeft(s, " "), r)
	}
	return Parsed
}

// looseEnd ends a referrer that holds raw quotes: at the pair that separates it
// from the agent.
func looseEnd(s string) int { return strings.Index(s, `" "`) }

func clfStampIn(s string) bool {
	for i := strings.IndexByte(s, '['); i >= 0; {
		if clfShape(s, i+1) {
			return true
		}
		n := strings.IndexByte(s[i+1:], '[')
		if n < 0 {
			return false
		}
		i += 1 + n
	}
	return false
}

// clfRest reads the fields behind the agent where they are known: the
// X-Forwarded-For of nginx's "main" format, and Traefik's number, router,
// backend and duration.
func (p *Parser) clfRest(s string, r *Record) {
	if s == "" {
		return
	}
	if s[0] == '"' {
		q := closeQuote(s, 1)
		if q < 0 {
			return
		}
		xff := s[1:q]
		if xff == "-" || isList(xff) {
			p.setClient(r, r.ClientRaw, xff, "")
		}
		return
	}
	if strings.HasSuffix(s, "ms") && strings.Count(s, `"`) == 4 {
		r.Format = FormatTraefikCLF
		i := strings.LastIndexByte(s, ' ')
		if ms, err := strconv.ParseInt(s[i+1:len(s)-2], 10, 64); err == nil {
			r.Duration = time.Duration(ms) * time.Millisecond
			r.Has |= HasDuration
		}
	}
}

// isList reports whether s begins with an address, alone or in a list.
func isList(s string) bool {
	i := strings.IndexByte(s, ',')
	if i < 0 {
		i = len(s)
	}
	a, ok := parseAddr(strings.TrimSpace(s[:i]))
	return ok && a != netip.Addr{}
}
