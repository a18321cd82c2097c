package accesslog

import "strings"

// w3cBare reads IIS rows whose header a shipper dropped. The method is the
// anchor: stem, query, port, user and client follow it in every preset, and the
// status is the first of three numbers near the end.
func (p *Parser) w3cBare(line string, r *Record) Kind {
	if len(line) < 40 || line[10] != ' ' || !isDate(line[:10]) || line[13] != ':' {
		return notMine
	}
	c := p.split(line)
	m := -1
	for i := 2; i < len(c) && i < 7; i++ {
		if knownMethod(c[i]) {
			m = i
			break
		}
	}
	if m < 0 || len(c) < m+9 || !digits(c[m+3]) {
		return notMine
	}
	r.Format = FormatW3C
	r.Method = c[m]
	r.Has |= HasMethod
	if !p.dateTime(r, c[0], c[1], false) {
		return BadTime
	}
	i := m + 6
	if strings.HasPrefix(c[i], "HTTP/") {
		i++
	}
	r.setAgent(plusSpaces(c[i]))
	s := i + 1
	for ; s < len(c); s++ {
		if len(c[s]) == 3 && digits(c[s]) && s+2 < len(c) && digits(c[s+1]) && digits(c[s+2]) {
			break
		}
		switch {
		case strings.HasPrefix(c[s], "http://"), strings.HasPrefix(c[s], "https://"):
			r.setReferer(c[s])
		case strings.IndexByte(c[s], '=') < 0 && strings.IndexByte(c[s], '.') > 0:
			r.setHost(c[s])
		}
	}
	if s >= len(c) || !r.setStatus(c[s]) {
		return Malformed
	}
	xff := ""
	for _, v := range c[s+1:] {
		if strings.ContainsAny(v, ".:") && isList(v) {
			xff = v
		}
	}
	p.setClient(r, c[m+5], xff, "")
	if k := r.setTarget(c[m+1]); k != Parsed {
		return k
	}
	r.Query = none(c[m+2])
	return Parsed
}
