package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

type field uint8

const (
	fIgnore field = iota
	fClient
	fXFF
	fHeader // any other request header: the client rule may name it
	fTime
	fTimeShape // not a field of a line: the strftime pattern of fTime
	fRequest
	fMethod
	fTarget
	fQuery
	fHost
	fStatus
	fBytes
	fAgent
	fReferer
	fAccept
	fDest
	fFetchUser
	fPurpose
	fInsecure
	fUpgrade
	fType
	fCache
	fRequestID
	fASN
	fDuration
	numFields
)

type values [numFields]string

// A Layout is a custom line format, ready to use and safe for concurrent use.
type Layout struct {
	head   string // fixed text in front of the first field
	parts  []layoutPart
	has    [numFields]bool
	unit   time.Duration
	header string
}

type layoutPart struct {
	field    field
	until    string // fixed text behind the field; "" = to the end of the line
	strftime string
}

// ErrLayout is wrapped by every error of ParseLayout.
var ErrLayout = errors.New("accesslog: log format")

// ParseLayout reads a log format in nginx's notation ($remote_addr …) or Apache's
// (%h …): the bare string, a nickname (combined, common, vhost_combined, main),
// or the whole directive as it stands in the server's configuration. An error
// says what is missing; a layout needs a time, a client and a request target.
func ParseLayout(s string) (*Layout, error) {
	s = strings.TrimSpace(s)
	if full, ok := nicknames[s]; ok {
		s = full
	}
	s = directiveText(s)
	l := &Layout{}
	var err error
	switch {
	case strings.Contains(s, "$"):
		err = l.nginx(s)
	case strings.Contains(s, "%"):
		err = l.apache(s)
	default:
		err = fmt.Errorf("%w: neither nginx ($name) nor Apache (%%x) fields in %.60q", ErrLayout, s)
	}
	if err != nil {
		return nil, err
	}
	return l, l.check()
}

var nicknames = map[string]string{
	"common":         `%h %l %u %t "%r" %>s %b`,
	"combined":       `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`,
	"vhost_combined": `%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i"`,
	"main":           `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"`,
}

// directiveText takes the format out of a pasted directive: log_format name
// [escape=…] 'a' 'b'; or LogFormat "…" name.
func directiveText(s string) string {
	low := strings.ToLower(s)
	switch {
	case strings.HasPrefix(low, "log_format "):
		var b strings.Builder
		for {
			i := strings.IndexAny(s, `'"`)
			if i < 0 {
				break
			}
			q := s[i]
			j := strings.IndexByte(s[i+1:], q)
			if j < 0 {
				break
			}
			b.WriteString(s[i+1 : i+1+j])
			s = s[i+2+j:]
		}
		return b.String()
	case strings.HasPrefix(low, "logformat "):
		s = strings.TrimSpace(s[len("logformat "):])
		if s != "" && s[0] == '"' {
			if q := closeQuote(s, 1); q > 0 {
				s = s[1:q]
			}
		}
	}
	return strings.ReplaceAll(s, `\"`, `"`)
}

// text adds fixed text behind the last field.
func (l *Layout) text(s string) {
	if len(l.parts) == 0 {
		l.head += s
		return
	}
	l.parts[len(l.parts)-1].until += s
}

func (l *Layout) add(f field, arg string) error {
	if n := len(l.parts); n > 0 && l.parts[n-1].until == "" {
		return fmt.Errorf("%w: two fields with nothing between them cannot be told apart", ErrLayout)
	}
	l.parts = append(l.parts, layoutPart{field: f})
	switch {
	case f == fHeader && l.header == "":
		l.header = arg
	case f == fHeader:
		l.parts[len(l.parts)-1].field = fIgnore
	case f != fIgnore && l.has[f]:
		l.parts[len(l.parts)-1].field = fIgnore // the first of its kind counts
	}
	l.has[f] = true
	return nil
}

// check demands the three facts without which a line says nothing, and turns a
// bare "%h" client to the list beside it when that is all there is.
func (l *Layout) check() error {
	var errs []error
	if !l.has[fTime] {
		errs = append(errs, fmt.Errorf("%w: no time ($time_local, $time_iso8601, $msec, %%t)", ErrLayout))
	}
	if !l.has[fClient] && !l.has[fXFF] && !l.has[fHeader] {
		errs = append(errs, fmt.Errorf("%w: no client address ($remote_addr, %%h, %%a)", ErrLayout))
	}
	if !l.has[fRequest] && !l.has[fTarget] {
		errs = append(errs, fmt.Errorf("%w: no request ($request, $request_uri, %%r, %%U)", ErrLayout))
	}
	return errors.Join(errs...)
}

// headerField maps a request header, in lower case with dashes.
func headerField(name string) field {
	switch name {
	case "user-agent":
		return fAgent
	case "referer":
		return fReferer
	case "x-forwarded-for":
		return fXFF
	case "host":
		return fHost
	case "accept":
		return fAccept
	case "sec-fetch-dest":
		return fDest
	case "sec-fetch-user":
		return fFetchUser
	case "sec-purpose", "purpose":
		return fPurpose
	case "upgrade-insecure-requests":
		return fInsecure
	case "upgrade":
		return fUpgrade
	}
	return fHeader
}
