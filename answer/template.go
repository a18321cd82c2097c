package answer

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stilehq/stile/core"
)

// Placeholders are what a replaced template may hold, written {{name}}. Each is
// escaped for the template it stands in. A JSON template puts quotes around all
// but retry_after, status and policies.
//
//	{{retry_after}}  seconds until the next page is admitted
//	{{wait}}         the same in English words: "2 minutes"
//	{{until}}        the same as a time of day: "15:04 UTC", with the date if it is not today
//	{{ref}}          the reference id, as in the log
//	{{rule}}         the binding limit in English words: "60 pages per hour"
//	{{policies}}     the names of the limits that were reached (JSON: an array)
//	{{status}}       the response's status
//	{{site}} {{contact}} {{contact_url}} {{crawlers}}  the configured texts
//
// They are a fixed list and not a template language because the functions that
// link this package are paid for by size and start-up, and because a value that
// is a number or the operator's own text cannot carry anything in.
var Placeholders = []string{
	"retry_after", "wait", "until", "ref", "rule", "policies", "status", "site", "contact", "contact_url", "crawlers",
}

type field uint8

const (
	literal field = iota
	fRetryAfter
	fWait
	fUntil
	fRef
	fRule
	fPolicies
	fStatus
)

var dynamicFields = map[string]field{
	"retry_after": fRetryAfter, "wait": fWait, "until": fUntil, "ref": fRef,
	"rule": fRule, "policies": fPolicies, "status": fStatus,
}

// A template is text with its constant placeholders already filled in.
type template struct {
	parts []part
	json  bool
	size  int // of the literals
}

type part struct {
	text  string // of a literal
	field field
}

// values are what differs from answer to answer.
type values struct {
	ref     string
	retry   int64 // seconds; 0 = not said
	now     time.Time
	status  int
	binding *core.State
	states  []core.State
}

// compile reads a template; constants are inserted, escaped, at once.
func compile(text string, json bool, constants map[string]string) (*template, error) {
	t := &template{json: json}
	var pending strings.Builder
	flush := func() {
		if pending.Len() > 0 {
			t.parts = append(t.parts, part{text: pending.String()})
			t.size += pending.Len()
			pending.Reset()
		}
	}
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{{")
		pending.WriteString(before)
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}}")
		if !found {
			return nil, fmt.Errorf("answer: template has {{ without }}")
		}
		rest = after
		name = strings.TrimSpace(name)
		if value, ok := constants[name]; ok {
			pending.Write(t.escape(nil, value))
			continue
		}
		f, ok := dynamicFields[name]
		if !ok {
			return nil, fmt.Errorf("answer: template has unknown placeholder {{%s}}; known are %s", name, strings.Join(Placeholders, ", "))
		}
		flush()
		t.parts = append(t.parts, part{field: f})
	}
	flush()
	return t, nil
}

func (t *template) escape(b []byte, s string) []byte {
	if t.json {
		return appendJSONText(b, s)
	}
	return append(b, html.EscapeString(s)...)
}

func (t *template) render(v *values) []byte {
	b := make([]byte, 0, t.size+128)
	for _, p := range t.parts {
		switch p.field {
		case literal:
			b = append(b, p.text...)
		case fRetryAfter:
			b = strconv.AppendInt(b, v.retry, 10)
		case fWait:
			b = appendWait(b, v.retry)
		case fUntil:
			b = appendUntil(b, v.now.UTC(), v.retry)
		case fRef:
			b = t.escape(b, v.ref)
		case fRule:
			b = t.escape(b, ruleText(v.binding))
		case fPolicies:
			b = t.appendPolicies(b, v.states)
		case fStatus:
			b = strconv.AppendInt(b, int64(v.status), 10)
		}
	}
	return b
}

func (t *template) appendPolicies(b []byte, states []core.State) []byte {
	if t.json {
		b = append(b, '[')
	}
	n := 0
	for i := range states {
		if states[i].RetryAfter <= 0 {
			continue
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		if t.json {
			b = append(b, '"')
			b = t.escape(b, states[i].Bucket)
			b = append(b, '"')
		} else {
			b = t.escape(b, states[i].Bucket)
		}
	}
	if t.json {
		b = append(b, ']')
	}
	return b
}

// ruleText says the binding limit in words.
func ruleText(s *core.State) string {
	if s == nil {
		return "a limit on automatic requests"
	}
	window := string(appendWait(nil, ceilSeconds(s.Window)))
	if one, ok := strings.CutPrefix(window, "1 "); ok && !strings.Contains(one, " ") {
		window = one
	}
	pages := " pages per "
	if s.Limit == 1 {
		pages = " page per "
	}
	return strconv.FormatInt(s.Limit, 10) + pages + window
}

// appendWait says a number of seconds in words, rounded up to two units. Up to
// two minutes the seconds count; days are said only when they are whole.
func appendWait(b []byte, s int64) []byte {
	unit := func(b []byte, n int64, name string) []byte {
		b = strconv.AppendInt(b, n, 10)
		b = append(append(b, ' '), name...)
		if n != 1 {
			b = append(b, 's')
		}
		return b
	}
	switch {
	case s >= 86400 && s%86400 == 0:
		return unit(b, s/86400, "day")
	case s < 60 || s < 120 && s%60 != 0:
		return unit(b, s, "second")
	case s%3600 == 0:
		return unit(b, s/3600, "hour")
	}
	m := (s + 59) / 60
	if m < 60 {
		return unit(b, m, "minute")
	}
	b = unit(b, m/60, "hour")
	if m%60 != 0 {
		b = unit(append(b, ' '), m%60, "minute")
	}
	return b
}

// appendUntil says the end of a wait as something to hold against a clock.
func appendUntil(b []byte, now time.Time, retry int64) []byte {
	until := now.Add(time.Duration(retry) * time.Second)
	if until.YearDay() != now.YearDay() {
		b = until.AppendFormat(b, "Jan 2, ")
	}
	return until.AppendFormat(b, "15:04 UTC")
}

const hexDigits = "0123456789abcdef"

// appendJSONText writes what stands between the quotes of a JSON string. Bytes
// that are no UTF-8 become U+FFFD; <, > and & are escaped, so that the body is
// harmless where somebody pastes it into a page.
func appendJSONText(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c < ' ' || c == 0x7f || c == '<' || c == '>' || c == '&':
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			default:
				b = append(b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		b = utf8.AppendRune(b, r)
		i += n
	}
	return b
}
