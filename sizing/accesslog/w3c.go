package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// A w3cColumn is what a column of a W3C extended log means to us.
type w3cColumn uint8

const (
	colNone w3cColumn = iota
	colDate
	colTime
	colDateLocal
	colTimeLocal
	colClient
	colMethod
	colStem
	colQuery
	colURI // host and path, or a path with its query
	colStatus
	colBytes
	colAgent
	colReferer
	colHost
	colHostHeader
	colXFF
	colCache
	colRequestID
	colType
	colSeconds
	colMillis
	colASN
	colProtocol
	colWanted
)

type w3cLayout struct {
	line   string // the directive it was made of
	cols   []w3cColumn
	format Format
	method bool
}

// directive takes a line that begins with "#". Only the column list matters.
func (p *Parser) directive(line string) Kind {
	if fields, ok := strings.CutPrefix(line, "#Fields:"); ok && (p.w3c == nil || p.w3c.line != line) {
		p.w3c = newW3C(strings.Clone(line), strings.Fields(fields), p.header)
	}
	return Directive
}

func newW3C(line string, names []string, wanted string) *w3cLayout {
	l := &w3cLayout{line: line, cols: make([]w3cColumn, len(names)), format: FormatW3C}
	for i, n := range names {
		l.cols[i] = w3cMeaning(n, wanted)
		switch n {
		case "x-edge-location":
			l.format = FormatCloudFront
		case "cs-method":
			l.method = true
		}
	}
	return l
}

func w3cMeaning(name, wanted string) w3cColumn {
	low := strings.ToLower(name)
	if wanted != "" && (low == wanted || low == "cs("+wanted+")") {
		return colWanted
	}
	switch low {
	case "date":
		return colDate
	case "time":
		return colTime
	case "date-local":
		return colDateLocal
	case "time-local":
		return colTimeLocal
	case "c-ip":
		return colClient
	case "cs-method":
		return colMethod
	case "cs-uri-stem":
		return colStem
	case "cs-uri-query":
		return colQuery
	case "cs-uri":
		return colURI
	case "sc-status", "c-status":
		return colStatus
	case "sc-bytes":
		return colBytes
	case "cs(user-agent)":
		return colAgent
	case "cs(referer)", "cs(referrer)":
		return colReferer
	case "cs(host)", "cs-host":
		return colHost
	case "x-host-header":
		return colHostHeader
	case "x-forwarded-for", "cs(x-forwarded-for)", "s-xff":
		return colXFF
	case "x-edge-result-type":
		return colCache
	case "x-edge-request-id":
		return colRequestID
	case "sc-content-type":
		return colType
	case "time-taken":
		return colMillis // seconds in CloudFront: see w3cFill
	case "timetakenms":
		return colMillis
	case "asn", "c-asn":
		return colASN
	case "cs-version", "cs-protocol":
		return colProtocol
	}
	return colNone
}

// cloudFrontColumns is the order of the standard log since 2014, for files whose
// header a shipper dropped.
const cloudFrontColumns = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status " +
	"cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol " +
	"cs-bytes time-taken x-forwarded-for"

// split cuts a row at tabs, or at runs of blanks with quoted values kept whole.
func (p *Parser) split(line string) []string {
	cols := p.cols[:0]
	if strings.IndexByte(line, '\t') >= 0 {
		for len(cols) < 256 {
			i := strings.IndexByte(line, '\t')
			if i < 0 {
				break
			}
			cols = append(cols, line[:i])
			line = line[i+1:]
		}
		p.cols = append(cols, line)
		return p.cols
	}
	for len(cols) < 256 {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			break
		}
		if line[0] == '"' {
			if q := strings.IndexByte(line[1:], '"'); q >= 0 {
				cols = append(cols, line[1:1+q])
				line = line[2+q:]
				continue
			}
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

// isDate recognises "yyyy-mm-dd".
func isDate(s string) bool {
	return len(s) == 10 && s[4] == '-' && s[7] == '-' && digits(s[:4]) && digits(s[5:7]) && digits(s[8:])
}

// w3cRow reads a row under the header in force, or CloudFront's without one.
func (p *Parser) w3cRow(line string, r *Record) Kind {
	l := p.w3c
	if l == nil {
		if len(line) < 20 || line[10] != '\t' || !isDate(line[:10]) {
			return notMine
		}
		l = newW3C(cloudFrontColumns, strings.Fields(cloudFrontColumns)[1:], p.header)
		p.w3c = l
	}
	cols := p.split(line)
	if len(cols) < 4 {
		return notMine
	}
	return p.w3cFill(l, cols, r)
}

// w3cFill maps columns to fields.
func (p *Parser) w3cFill(l *w3cLayout, cols []string, r *Record) Kind {
	var date, clock, query, own, xff, named, uri string
	local := false
	r.Format = l.format
	for i, c := range l.cols {
		if i >= len(cols) {
			break
		}
		v := cols[i]
		switch c {
		case colDate, colDateLocal:
			if !isDate(v) {
				return notMine
			}
			date, local = v, c == colDateLocal
		case colTime, colTimeLocal:
			clock = v
		case colClient:
			own = v
		case colMethod:
			if !isMethod(v) && v != "-" {
				return Malformed
			}
			r.Method = v
			r.Has |= HasMethod
		case colStem:
			uri = v
		case colURI:
			uri = v
			if v != "" && v[0] != '/' && !strings.Contains(v, "://") { // Incapsula: host/path
				uri = "http://" + v
			}
		case colQuery:
			query = none(v)
		case colStatus:
			if !r.setStatus(v) {
				return Malformed
			}
		case colBytes:
			r.setBytes(v)
		case colAgent:
			r.setAgent(agentOf(l, v))
		case colReferer:
			r.setReferer(v)
		case colHost:
			if r.Host == "" {
				r.setHost(v)
			}
		case colHostHeader: // what the visitor asked for, not the distribution's name
			r.setHost(v)
		case colXFF:
			xff = v
		case colWanted:
			named = v
		case colCache:
			r.setCache(v)
		case colRequestID:
			r.RequestID = v
		case colType:
			r.Has |= HasContentType
			r.ContentType = none(v)
		case colMillis:
			unit := time.Millisecond
			if l.format == FormatCloudFront {
				unit = time.Second
			}
			r.setDuration(v, unit)
		case colASN:
			r.setASN(v)
		case colProtocol:
			r.Upgrade = r.Upgrade || v == "ws" || v == "wss"
		}
	}
	return p.w3cFinish(l, r, date, clock, local, own, xff, named, uri, query)
}

func (p *Parser) w3cFinish(l *w3cLayout, r *Record, date, clock string, local bool, own, xff, named, uri, query string) Kind {
	if date == "" || len(clock) < 8 || clock[2] != ':' {
		return notMine
	}
	if !p.dateTime(r, date, clock, local) {
		return BadTime
	}
	if !l.method {
		r.Method = "GET"
	}
	p.setClient(r, own, xff, named)
	if k := r.setTarget(uri); k != Parsed {
		return k
	}
	if query != "" {
		r.Query = query
	}
	return Parsed
}

// dateTime reads "yyyy-mm-dd" and "hh:mm:ss[.mmm]". W3C times are UTC unless the
// column says local.
func (p *Parser) dateTime(r *Record, date, clock string, local bool) bool {
	if len(date) != 10 || len(clock) < 8 {
		return false
	}
	y, m, d := four(date, 0), two(date, 5), two(date, 8)
	if y < 1 || m < 1 || m > 12 || d < 1 || d > monthDays(y, m) {
		return false
	}
	sec, ok := hms(clock, 0)
	if !ok {
		return false
	}
	sec += epochDays(y, m, d) * 86400
	ns, _ := fraction(clock[8:])
	if local {
		return p.local(r, sec, ns)
	}
	return p.instant(r, sec, ns)
}

func agentOf(l *w3cLayout, v string) string {
	if strings.IndexByte(v, '%') >= 0 {
		v = unescapeAgent(v)
	}
	if l.format == FormatW3C {
		v = plusSpaces(v)
	}
	return v
}

// setDuration reads a number in the given unit.
func (r *Record) setDuration(s string, unit time.Duration) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f < 1e9) {
		return
	}
	r.Has |= HasDuration
	r.Duration = time.Duration(f * float64(unit))
}

func (r *Record) setASN(s string) {
	s = strings.TrimPrefix(s, "AS")
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		r.Has |= HasASN
		r.ASN = uint32(n)
	}
}
