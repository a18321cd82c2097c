package accesslog

import (
	"strings"
	"time"
)

// haproxy reads the HTTP log line of HAProxy: client:port [time] frontend
// backend/server timers status bytes … "request".
func (p *Parser) haproxy(line string, r *Record) Kind {
	sp := strings.IndexByte(line, ' ')
	if sp < 4 || sp > 60 || len(line) < sp+28 || line[sp+1] != '[' || line[sp+22] != '.' || !clfShape(line, sp+2) {
		return notMine
	}
	a, ok := parseAddrPort(line[:sp])
	if !ok {
		return notMine
	}
	end := strings.IndexByte(line[sp:], ']')
	if end < 0 {
		return Truncated
	}
	r.Format = FormatHAProxy
	r.Client, r.ClientRaw = a, line[:sp]
	if !p.setTime(r, line[sp+2:sp+end]) {
		return BadTime
	}
	rest := line[sp+end+1:]
	q := strings.LastIndex(rest, ` "`)
	head := rest
	if q >= 0 {
		head = rest[:q]
	}
	c := p.fields(head)
	if len(c) < 5 || strings.Count(c[2], "/") < 4 {
		return Foreign // TLS errors and TCP rows share the beginning
	}
	if q < 0 {
		return NoRequest
	}
	if !r.setStatus(strings.TrimPrefix(c[3], "-1")) {
		return Malformed
	}
	r.setBytes(strings.TrimPrefix(c[4], "+"))
	r.setDuration(c[2][strings.LastIndexByte(c[2], '/')+1:], time.Millisecond)
	haproxyCaptures(head, r)
	req := rest[q+2:]
	e := strings.IndexByte(req, '"')
	if e < 0 {
		return Truncated
	}
	if req[:e] == "<BADREQ>" {
		return NotHTTP
	}
	return r.setRequest(req[:e])
}

// haproxyCaptures looks for agent and referrer in {a|b|c}: which headers a site
// captures is not in the line, but these two are told by their looks.
func haproxyCaptures(head string, r *Record) {
	i, j := strings.IndexByte(head, '{'), strings.LastIndexByte(head, '}')
	if i < 0 || j < i {
		return
	}
	for part := range strings.SplitSeq(head[i+1:j], "|") {
		switch {
		case strings.HasPrefix(part, "Mozilla/"):
			r.setAgent(part)
		case strings.HasPrefix(part, "http://"), strings.HasPrefix(part, "https://"):
			r.setReferer(part)
		}
	}
}

// bracketed reads the two text shapes that begin with the time in brackets:
// nginx proxy manager's and Envoy's default.
func (p *Parser) bracketed(line string, r *Record) Kind {
	if line[0] != '[' {
		return notMine
	}
	end := strings.IndexByte(line, ']')
	if end < 20 || end > 40 || len(line) < end+8 || line[end+1] != ' ' {
		return notMine
	}
	rest := line[end+2:]
	if clfShape(line, 1) {
		if !strings.Contains(rest, " [Client ") {
			return notMine
		}
		r.Format = FormatProxyManager
	} else {
		if line[5] != '-' || line[11] != 'T' || rest[0] != '"' {
			return notMine
		}
		r.Format = FormatEnvoyText
	}
	if !p.setTime(r, line[1:end]) {
		return BadTime
	}
	if r.Format == FormatEnvoyText {
		return p.envoyText(rest, r)
	}
	return p.proxyManager(rest, r)
}

// proxyManager reads: [cache] [upstream] status - METHOD scheme host "path"
// [Client a] [Length n] [Gzip x] [Sent-to y] "agent" "referer".
func (p *Parser) proxyManager(s string, r *Record) Kind {
	client := strings.Index(s, " [Client ")
	head, tail := s[:client], s[client+9:]
	e := strings.IndexByte(tail, ']')
	if e < 0 {
		return Truncated
	}
	p.setClient(r, tail[:e], "", "")
	tail = tail[e+1:]

	dash := strings.Index(head, " - ")
	if strings.HasPrefix(head, "- ") { // no cache: "- 404 404 - GET"
		if dash = strings.Index(head[1:], " - "); dash >= 0 {
			dash++
		}
	}
	if dash < 0 {
		return Malformed
	}
	before := strings.Fields(head[:dash])
	if len(before) == 0 || !r.setStatus(before[len(before)-1]) {
		return Malformed
	}
	if len(before) > 1 {
		r.setCache(before[0])
	}
	c := p.fields(head[dash+3:])
	if len(c) < 4 || !isMethod(c[0]) {
		return Malformed
	}
	r.Method = c[0]
	r.Has |= HasMethod
	r.setHost(c[2])
	if i := strings.Index(tail, "[Length "); i >= 0 {
		v := tail[i+8:]
		if e := strings.IndexByte(v, ']'); e > 0 {
			r.setBytes(v[:e])
		}
	}
	k := r.setTarget(c[3])
	q := strings.Index(tail, ` "`)
	if q < 0 {
		return Truncated
	}
	if t := p.fields(tail[q:]); len(t) >= 2 {
		r.setAgent(t[0])
		r.setReferer(t[1])
	}
	return k
}

// envoyText reads: "request" status flags [details …] rx tx ms upstream-ms "xff"
// "agent" "id" "authority" "upstream" [cluster local downstream-local remote …].
func (p *Parser) envoyText(s string, r *Record) Kind {
	c := p.fields(s)
	if len(c) < 8 {
		return Truncated
	}
	if !r.setStatus(c[1]) {
		return Malformed
	}
	i := 3
	for i < len(c) && !digits(c[i]) {
		i++
	}
	if i+5 >= len(c) {
		return Truncated
	}
	r.setBytes(c[i+1])
	r.setDuration(c[i+2], time.Millisecond)
	xff := c[i+4]
	r.setAgent(c[i+5])
	if i+6 < len(c) {
		r.RequestID = none(c[i+6])
	}
	if i+7 < len(c) {
		r.setHost(c[i+7])
	}
	own := lastOf(xff)
	if own == "-" && i+12 < len(c) {
		own = c[i+12]
	}
	p.setClient(r, strings.TrimSpace(own), xff, "")
	return r.setRequest(c[0])
}
