package accesslog

import (
	"fmt"
	"strings"
	"time"
)

// nginx compiles a log_format string.
func (l *Layout) nginx(s string) error {
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			l.text(s)
			return nil
		}
		l.text(s[:i])
		s = s[i+1:]
		n := 0
		if s != "" && s[0] == '{' {
			if n = strings.IndexByte(s, '}'); n < 0 {
				return fmt.Errorf("%w: ${ without }", ErrLayout)
			}
			if err := l.nginxVar(s[1:n]); err != nil {
				return err
			}
			s = s[n+1:]
			continue
		}
		for n < len(s) && (s[n] == '_' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= '0' && s[n] <= '9') {
			n++
		}
		if n == 0 {
			return fmt.Errorf("%w: $ without a name", ErrLayout)
		}
		if err := l.nginxVar(s[:n]); err != nil {
			return err
		}
		s = s[n:]
	}
	return nil
}

func (l *Layout) nginxVar(name string) error {
	f, arg := fIgnore, ""
	switch name {
	case "remote_addr":
		f = fClient
	case "time_local", "time_iso8601", "msec":
		f = fTime
	case "request":
		f = fRequest
	case "request_method":
		f = fMethod
	case "request_uri":
		f = fTarget
	case "uri", "document_uri":
		f = fTarget
	case "args", "query_string":
		f = fQuery
	case "host", "server_name":
		f = fHost
	case "status":
		f = fStatus
	case "body_bytes_sent", "bytes_sent":
		f = fBytes
	case "upstream_cache_status":
		f = fCache
	case "request_id":
		f = fRequestID
	case "request_time":
		f = fDuration
		l.unit = time.Second
	case "sent_http_content_type":
		f = fType
	case "geoip2_data_asn", "geoip_asnum", "asn":
		f = fASN
	default:
		if h, ok := strings.CutPrefix(name, "http_"); ok {
			arg = strings.ReplaceAll(h, "_", "-")
			f = headerField(arg)
		}
	}
	return l.add(f, arg)
}

// apache compiles a LogFormat string.
func (l *Layout) apache(s string) error {
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			l.text(s)
			return nil
		}
		l.text(s[:i])
		s = s[i+1:]
		if s == "" {
			return fmt.Errorf("%w: %% at the end", ErrLayout)
		}
		if s[0] == '%' {
			l.text("%")
			s = s[1:]
			continue
		}
		// Conditions (%!200,304{…}) and the original/final marks do not change
		// what a field means.
		s = strings.TrimLeft(s, "<>!,0123456789")
		arg := ""
		if s != "" && s[0] == '{' {
			j := strings.IndexByte(s, '}')
			if j < 0 {
				return fmt.Errorf("%w: %%{ without }", ErrLayout)
			}
			arg, s = s[1:j], s[j+1:]
		}
		n := 1
		if strings.HasPrefix(s, "^") {
			n = 3
		}
		if len(s) < n {
			return fmt.Errorf("%w: %% without a letter", ErrLayout)
		}
		if err := l.apacheItem(s[:n], arg); err != nil {
			return err
		}
		s = s[n:]
	}
	return nil
}

func (l *Layout) apacheItem(item, arg string) error {
	switch item {
	case "h", "a":
		return l.add(fClient, "")
	case "t":
		return l.apacheTime(arg)
	case "r":
		return l.add(fRequest, "")
	case "m":
		return l.add(fMethod, "")
	case "U":
		return l.add(fTarget, "")
	case "q":
		return l.add(fQuery, "")
	case "v", "V":
		return l.add(fHost, "")
	case "s":
		return l.add(fStatus, "")
	case "b", "B", "O":
		return l.add(fBytes, "")
	case "D":
		return l.duration(time.Microsecond)
	case "T":
		return l.duration(map[string]time.Duration{"ms": time.Millisecond, "us": time.Microsecond}[arg])
	case "L":
		return l.add(fIgnore, "")
	case "i":
		h := strings.ToLower(arg)
		return l.add(headerField(h), h)
	case "o":
		if strings.EqualFold(arg, "content-type") {
			return l.add(fType, "")
		}
	}
	return l.add(fIgnore, "")
}

func (l *Layout) duration(unit time.Duration) error {
	if unit == 0 {
		unit = time.Second
	}
	if !l.has[fDuration] {
		l.unit = unit
	}
	return l.add(fDuration, "")
}

// apacheTime handles %t, %{sec}t and its like, and strftime patterns.
func (l *Layout) apacheTime(arg string) error {
	arg = strings.TrimPrefix(strings.TrimPrefix(arg, "begin:"), "end:")
	switch arg {
	case "", "sec", "msec", "usec":
		return l.add(fTime, "")
	case "msec_frac", "usec_frac":
		return l.add(fIgnore, "")
	}
	if strings.Contains(arg, "%") {
		if _, err := strftimeParts(arg); err != nil {
			return err
		}
	}
	if err := l.add(fTime, ""); err != nil {
		return err
	}
	l.parts[len(l.parts)-1].strftime = arg
	return nil
}

// strftimeParts checks a pattern and expands its shorthands.
func strftimeParts(pattern string) (string, error) {
	r := strings.NewReplacer("%F", "%Y-%m-%d", "%T", "%H:%M:%S", "%D", "%m/%d/%y", "%R", "%H:%M")
	pattern = r.Replace(pattern)
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		i++
		if i >= len(pattern) || !strings.ContainsRune("YmdHMSzbyes%", rune(pattern[i])) {
			return "", fmt.Errorf("%w: time pattern %.40q holds an item that cannot be read back", ErrLayout, pattern)
		}
	}
	return pattern, nil
}

// strftime reads v by a pattern that strftimeParts accepted.
func (p *Parser) strftime(r *Record, v, pattern string) bool {
	pattern, err := strftimeParts(pattern)
	if err != nil {
		return false
	}
	v = strings.Trim(v, "[]")
	y, mo, d, h, mi, s := 1970, 1, 1, 0, 0, 0
	off, zoned := int64(0), false
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			if v == "" || v[0] != pattern[i] {
				return false
			}
			v = v[1:]
			continue
		}
		i++
		width := 2
		switch pattern[i] {
		case 'Y':
			width = 4
		case 'b':
			width = 3
		case 'z':
			o, n, ok := offset(v)
			if !ok {
				return false
			}
			off, zoned, v = o, true, v[n:]
			continue
		case 's':
			return p.epochTime(r, v)
		case '%':
			width = 1
		}
		if len(v) < width {
			return false
		}
		switch pattern[i] {
		case 'Y':
			y = four(v, 0)
		case 'y':
			y = 2000 + two(v, 0)
		case 'm':
			mo = two(v, 0)
		case 'b':
			mo = month(v, 0)
		case 'd', 'e':
			d = two(strings.Replace(v[:2], " ", "0", 1), 0)
		case 'H':
			h = two(v, 0)
		case 'M':
			mi = two(v, 0)
		case 'S':
			s = two(v, 0)
		}
		v = v[width:]
	}
	if y < 1 || mo < 1 || mo > 12 || d < 1 || d > monthDays(y, mo) || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 || s > 60 {
		return false
	}
	sec := epochDays(y, mo, d)*86400 + int64(h)*3600 + int64(mi)*60 + int64(s)
	if zoned {
		return p.instant(r, sec-off, 0)
	}
	return p.local(r, sec, 0)
}
