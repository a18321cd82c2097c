package accesslog

import (
	"strings"
	"time"
)

// fields cuts a line at blanks, with quoted values kept whole (an escaped quote
// does not end one). Unlike split it knows no tabs and keeps what was quoted.
func (p *Parser) fields(line string) []string {
	cols := p.cols[:0]
	for len(cols) < 64 {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			break
		}
		if line[0] == '"' {
			q := closeQuote(line, 1)
			if q < 0 {
				cols = append(cols, line[1:])
				break
			}
			cols = append(cols, line[1:q])
			line = line[q+1:]
			continue
		}
		i := strings.IndexByte(line, ' ')
		if i < 0 {
			i = len(line)
		}
		cols = append(cols, line[:i])
		line = line[i:]
	}
	p.cols = cols
	return cols
}

// alb reads Application Load Balancer rows, and classic ELB rows, which lack the
// first field.
func (p *Parser) alb(line string, r *Record) Kind {
	sp := strings.IndexByte(line, ' ')
	if sp < 1 || sp > 32 {
		return notMine
	}
	base := 0
	switch line[:sp] {
	case "http", "https", "h2", "grpcs":
		r.Format = FormatALB
	case "ws", "wss":
		r.Format = FormatALB
		r.Upgrade = true
	case "tls", "tcp":
		if len(line) > sp+5 && line[sp+1:sp+5] == "2.0 " {
			return NoRequest // a Network Load Balancer's connection row
		}
		return notMine
	default:
		if len(line) < 24 || line[10] != 'T' || line[sp-1] != 'Z' {
			return notMine
		}
		r.Format = FormatELB
		base = -1
	}
	if len(line) < sp+24 || r.Format == FormatALB && line[sp+11] != 'T' {
		return notMine
	}
	c := p.fields(line)
	get := func(i int) string {
		if i += base; i < len(c) {
			return c[i]
		}
		return ""
	}
	// A container prefix also begins with such a time; the client field tells.
	own, ok := parseAddrPort(get(3))
	if !ok {
		return notMine
	}
	if !p.setTime(r, get(1)) {
		return BadTime
	}
	if len(c) < 14+base {
		return Truncated
	}
	r.Client, r.ClientRaw = own, get(3)
	r.setStatus(get(8))
	r.setBytes(get(11))
	if k := r.setRequest(get(12)); k != Parsed {
		return k
	}
	r.setAgent(get(13))
	if id := get(17); r.Format == FormatALB && strings.HasPrefix(id, "Root=") {
		r.RequestID = id
	}
	for i := 5; i <= 7; i++ {
		var part Record
		part.setDuration(get(i), time.Second)
		r.Duration += part.Duration
		r.Has |= part.Has
	}
	return Parsed
}

// s3 reads S3 server access logs: owner, bucket, [time], client, requester, id,
// operation, key, "request", …
func (p *Parser) s3(line string, r *Record) Kind {
	lb := strings.IndexByte(line, '[')
	if lb < 3 || len(line) < lb+32 || line[lb+27] != ']' || strings.Count(line[:lb], " ") != 2 {
		return notMine
	}
	c := p.fields(line[lb+28:])
	if len(c) < 7 || strings.IndexByte(c[3], '.') < 0 {
		return notMine
	}
	r.Format = FormatS3
	if !p.setTime(r, line[lb+1:lb+27]) {
		return BadTime
	}
	p.setClient(r, c[0], "", "")
	r.RequestID = c[2]
	if k := r.setRequest(c[5]); k != Parsed {
		return k
	}
	bucket := line[:lb-1]
	r.setHost(bucket[strings.IndexByte(bucket, ' ')+1:])
	if !r.setStatus(c[6]) {
		return Malformed
	}
	if len(c) > 8 {
		r.setBytes(c[8])
	}
	if len(c) > 10 {
		r.setDuration(c[10], time.Millisecond)
	}
	if len(c) > 13 {
		r.setReferer(c[12])
		r.setAgent(c[13])
	}
	return Parsed
}
