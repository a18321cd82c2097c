package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// epochDays is the number of days from 1970-01-01 to a civil date (the algorithm
// counts from March so that the leap day comes last).
func epochDays(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}

func two(s string, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return -1
	}
	return int(a)*10 + int(b)
}

func four(s string, i int) int {
	a, b := two(s, i), two(s, i+2)
	if a < 0 || b < 0 {
		return -1
	}
	return a*100 + b
}

// month reads an English month abbreviation; 0 if it is none.
func month(s string, i int) int {
	switch s[i : i+3] {
	case "Jan":
		return 1
	case "Feb":
		return 2
	case "Mar":
		return 3
	case "Apr":
		return 4
	case "May":
		return 5
	case "Jun":
		return 6
	case "Jul":
		return 7
	case "Aug":
		return 8
	case "Sep":
		return 9
	case "Oct":
		return 10
	case "Nov":
		return 11
	case "Dec":
		return 12
	}
	return 0
}

// monthDays refuses the 31st of a short month.
func monthDays(y, m int) int {
	switch m {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// clfShape reports whether s[i:] looks like "dd/Mon/yyyy:hh:mm:ss".
func clfShape(s string, i int) bool {
	return len(s)-i >= 20 && s[i+2] == '/' && s[i+6] == '/' && s[i+11] == ':' && s[i+14] == ':' && s[i+17] == ':'
}

// clfTime reads "dd/Mon/yyyy:hh:mm:ss" at s[i:] as if it were UTC, in seconds.
// The last day is remembered: in a log it is nearly always the same.
func (p *Parser) clfTime(s string, i int) (int64, bool) {
	if !clfShape(s, i) {
		return 0, false
	}
	day := s[i : i+11]
	if day != p.lastDay {
		d, m, y := two(s, i), month(s, i+3), four(s, i+7)
		if m == 0 || y < 1 || d < 1 || d > monthDays(y, m) {
			return 0, false
		}
		p.lastDay, p.lastDays = strings.Clone(day), epochDays(y, m, d)*86400
	}
	sec, ok := hms(s, i+12)
	return p.lastDays + sec, ok
}

// hms reads "hh:mm:ss" in seconds; a leap second is taken for the next minute.
func hms(s string, i int) (int64, bool) {
	h, m, sec := two(s, i), two(s, i+3), two(s, i+6)
	if h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return 0, false
	}
	return int64(h)*3600 + int64(m)*60 + int64(sec), true
}

// offset reads "+hhmm", "+hh:mm", "+hh" or "Z" at the start of s, in seconds east.
func offset(s string) (sec int64, n int, ok bool) {
	if s == "" {
		return 0, 0, false
	}
	if s[0] == 'Z' || s[0] == 'z' {
		return 0, 1, true
	}
	if (s[0] != '+' && s[0] != '-') || len(s) < 3 {
		return 0, 0, false
	}
	h, m := two(s, 1), 0
	n = 3
	switch {
	case len(s) >= 6 && s[3] == ':':
		m, n = two(s, 4), 6
	case len(s) >= 5 && s[3] >= '0' && s[3] <= '9':
		m, n = two(s, 3), 5
	}
	if h < 0 || h > 18 || m < 0 || m > 59 {
		return 0, 0, false
	}
	sec = int64(h)*3600 + int64(m)*60
	if s[0] == '-' {
		sec = -sec
	}
	return sec, n, true
}

// fraction reads ".123" or ",123" at the start of s as nanoseconds.
func fraction(s string) (ns int64, n int) {
	if len(s) < 2 || (s[0] != '.' && s[0] != ',') {
		return 0, 0
	}
	scale := int64(100_000_000)
	for n = 1; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		ns += int64(s[n]-'0') * scale
		scale /= 10
	}
	return ns, n
}

// setTime reads any time that a log writes in one field: CLF with an offset,
// ISO 8601 with or without zone, or an epoch number in s, ms, us or ns told
// apart by its size. It reports false when s is no time.
func (p *Parser) setTime(r *Record, s string) bool {
	s = strings.Trim(s, `[]" `)
	if len(s) < 8 {
		return false
	}
	if c := s[4]; (c == '-' || c == '/') && len(s) >= 19 && (s[10] == 'T' || s[10] == ' ' || s[10] == 't') {
		return p.isoTime(r, s)
	}
	if len(s) >= 20 && s[2] == '/' {
		sec, ok := p.clfTime(s, 0)
		if !ok {
			return false
		}
		rest := s[20:]
		ns, n := fraction(rest)
		rest = strings.TrimLeft(rest[n:], " ")
		if off, _, ok := offset(rest); ok {
			return p.instant(r, sec-off, ns)
		}
		return p.local(r, sec, ns)
	}
	return p.epochTime(r, s)
}

func (p *Parser) isoTime(r *Record, s string) bool {
	y, m, d := four(s, 0), two(s, 5), two(s, 8)
	if y < 1 || m < 1 || m > 12 || d < 1 || d > monthDays(y, m) {
		return false
	}
	sec, ok := hms(s, 11)
	if !ok {
		return false
	}
	sec += epochDays(y, m, d) * 86400
	rest := s[19:]
	ns, n := fraction(rest)
	rest = strings.TrimLeft(rest[n:], " ")
	if rest == "" {
		return p.local(r, sec, ns)
	}
	off, _, ok := offset(rest)
	if !ok {
		return false
	}
	return p.instant(r, sec-off, ns)
}

// epochTime tells the unit by size: the four ranges do not meet before the year
// 5138 and after 1973.
func (p *Parser) epochTime(r *Record, s string) bool {
	if i := strings.IndexByte(s, '.'); i > 0 && digits(s[:i]) && i <= 11 {
		sec, err := strconv.ParseInt(s[:i], 10, 64)
		ns, n := fraction(s[i:])
		if err == nil && i+n == len(s) {
			return p.instant(r, sec, ns)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		f, ferr := strconv.ParseFloat(s, 64) // 1.7e9, or milliseconds with a fraction: not exact, but near enough for an hour
		if ferr != nil || !(f > 0 && f < 9e18) {
			return false
		}
		n = int64(f)
	}
	switch {
	case n < 1e11:
		return p.instant(r, n, 0)
	case n < 1e14:
		return p.instant(r, n/1e3, n%1e3*1e6)
	case n < 1e17:
		return p.instant(r, n/1e6, n%1e6*1e3)
	}
	return p.instant(r, n/1e9, n%1e9)
}

func (p *Parser) instant(r *Record, sec, ns int64) bool {
	r.Time = time.Unix(sec, ns).UTC()
	return true
}

// local reads wall-clock seconds in the configured zone. In the repeated hour of
// a time change the first pass is meant.
func (p *Parser) local(r *Record, sec, ns int64) bool {
	p.localTime = true
	if p.loc == nil || p.loc == time.UTC {
		return p.instant(r, sec, ns)
	}
	w := time.Unix(sec, ns).UTC()
	r.Time = time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), p.loc).UTC()
	return true
}
