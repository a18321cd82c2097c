package accesslog

import (
	"net/netip"
	"strings"
	"time"
)

// A Parser reads single lines. It remembers the shape that matched last, the
// W3C header in force and the last day seen, so that a uniform log costs no
// search. It is not safe for concurrent use; Scan gives each worker its own.
type Parser struct {
	hops    int
	trusted []netip.Prefix
	header  string // lower case
	nginxHd string // the same header as an nginx variable name
	loc     *time.Location
	layout  *Layout
	min     int64
	max     int64

	last     int // index into readers
	w3c      *w3cLayout
	lastDay  string
	lastDays int64

	localTime bool
	cols      []string
	slots     slots

	stats Stats
}

// A reader parses one family of text lines.
type reader func(p *Parser, line string, r *Record) Kind

// readers in the order in which an unknown line is tried. Every reader refuses
// early what is not its own.
var readers = [...]reader{
	(*Parser).clf,
	(*Parser).w3cRow,
	(*Parser).alb,
	(*Parser).haproxy,
	(*Parser).bracketed,
	(*Parser).s3,
	(*Parser).w3cBare,
	(*Parser).knownLayouts,
}

// NewParser makes a parser.
func NewParser(o Options) *Parser {
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	p := &Parser{
		hops: o.Client.Hops, trusted: o.Client.Trusted, header: strings.ToLower(o.Client.Header),
		loc: o.Location, layout: o.Layout,
		min: epochDays(1995, 1, 1) * 86400, max: now.Unix() + 86400,
	}
	p.nginxHd = "http_" + strings.ReplaceAll(p.header, "-", "_")
	return p
}

// Stats returns what the parser has seen so far.
func (p *Parser) Stats() *Stats { return &p.stats }

// Parse reads one line, without its line end, into r and counts it. It returns
// Parsed when r holds a request; with any other kind r is undefined.
func (p *Parser) Parse(line string, r *Record) Kind {
	p.stats.Lines++
	k := p.line(line, r)
	if k == Parsed {
		p.count(r)
		return k
	}
	if k == notMine {
		k = Unrecognised
	}
	p.stats.skip(k, line)
	return k
}

func (p *Parser) count(r *Record) {
	s := &p.stats
	s.Records++
	s.Formats[r.Format]++
	s.Has |= r.Has
	s.Lacking |= ^r.Has & (1<<len(signalNames) - 1)
	if !r.Client.IsValid() {
		s.NoAddress++
	}
	if p.localTime {
		s.LocalTimes++
	}
}

// line trims, finds the shape and checks the time.
func (p *Parser) line(line string, r *Record) Kind {
	// NUL bytes stand where a log was truncated while its writer kept its place.
	if line != "" && (line[0] <= ' ' || line[len(line)-1] <= ' ' || line[0] == 0xef) {
		line = strings.Trim(line, "\x00\t\r\n ")
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if line == "" {
		return Blank
	}
	k := p.shape(line, r, 0)
	if k != Parsed {
		return k
	}
	if sec := r.Time.Unix(); sec < p.min || sec > p.max {
		return AbsurdTime
	}
	return Parsed
}

// shape finds the line's format. Depth counts the wrappings taken off: a prefix
// in front, or a line inside a JSON string.
func (p *Parser) shape(line string, r *Record, depth int) Kind {
	*r = Record{}
	p.localTime = false
	if line[0] == '{' {
		return p.json(line, r, depth)
	}
	if line[0] == '#' {
		return p.directive(line)
	}
	if p.layout != nil {
		if k := p.layout.parse(p, line, r); k != notMine {
			return k
		}
		*r = Record{}
	}
	first := p.last
	if k := readers[first](p, line, r); k != notMine {
		return k
	}
	for i := range readers {
		if i == first {
			continue
		}
		*r = Record{}
		if k := readers[i](p, line, r); k != notMine {
			if k == Parsed {
				p.last = i
			}
			return k
		}
	}
	if depth < 3 {
		if rest, ok := unwrap(line); ok {
			if k := p.shape(rest, r, depth+1); k != notMine && k != Unrecognised {
				return k
			}
		}
	}
	return message(line)
}

// message tells what programs say between requests from what nobody knows.
func message(line string) Kind {
	if strings.Contains(line, "limiting requests") || strings.Contains(line, "limiting connections") {
		return LimitNotice
	}
	for _, mark := range [...]string{"[error]", "[warn]", "[crit]", "[alert]", "[emerg]", "[notice]", "[info]", "[debug]",
		"[ERROR]", "[WARN]", "[NOTICE]", "[INFO]", "[DEBUG]", "ERROR", "WARN ", "INFO", "DEBUG", "[core:", "[ssl:", "[mpm_",
		"SSL handshake", "heartbeat", "Traceback", "Server start", "started", "level="} {
		if strings.Contains(line, mark) {
			return Foreign
		}
	}
	return notMine
}

// unwrap takes one wrapping off: a time with stream mark (containers), a syslog
// head up to "name[pid]: ", or a compose prefix "name | ".
func unwrap(line string) (string, bool) {
	if len(line) > 30 && line[4] == '-' && line[10] == 'T' {
		sp := strings.IndexByte(line, ' ')
		if sp > 0 && sp <= 36 && sp+1 < len(line) {
			rest := line[sp+1:]
			for _, s := range [...]string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
				if r, ok := strings.CutPrefix(rest, s); ok {
					return r, r != ""
				}
			}
			if i := strings.Index(rest, ": "); i < 0 || i > 80 {
				return rest, true
			}
		}
	}
	head := line[:min(len(line), 160)]
	if i := strings.Index(head, " | "); i > 0 && i < 64 && !strings.ContainsAny(line[:i], `"[`) {
		return strings.TrimLeft(line[i+3:], " "), i+3 < len(line)
	}
	if i := strings.Index(head, ": "); i > 0 && !strings.ContainsAny(line[:i], `"{`) {
		return strings.TrimLeft(line[i+2:], " "), i+2 < len(line)
	}
	if line[0] == '<' { // RFC 5424: <pri>1 time host app pid mid [sd] message
		if i := strings.Index(line, " - "); i > 0 {
			return strings.TrimLeft(line[i+3:], "- "), i+3 < len(line)
		}
	}
	return "", false
}
