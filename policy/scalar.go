package policy

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxText bounds every text value, in bytes.
const maxText = 2048

// A Date is a day of the calendar, written 2027-01-31; it begins at midnight
// UTC. The zero Date is absent and is written "".
type Date struct{ time.Time }

// String returns the policy file's form.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return d.Format(time.DateOnly)
}

// A word is a text of a fixed list. An entry like "header:NAME" stands for any
// text with that prefix; argument returns it.
type word interface{ words() []string }

var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typePrefix   = reflect.TypeFor[netip.Prefix]()
	typeDate     = reflect.TypeFor[Date]()
)

// isScalar reports whether setScalar can set values of t.
func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	}
	return t == typePrefix || t == typeDate
}

// wanted names what values of t look like.
func wanted(t reflect.Type) string {
	switch {
	case t == typeDuration:
		return "a duration like 90s, 24h or 7d"
	case t == typePrefix:
		return "an address range like 192.0.2.0/24"
	case t == typeDate:
		return "a date like 2027-01-31"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Implements(reflect.TypeFor[word]()):
		return "one of " + strings.Join(reflect.Zero(t).Interface().(word).words(), ", ")
	}
	return "text"
}

// setScalar parses text into v. Tag is YAML's opinion of its type, "" when it
// is from the environment. It returns what is wrong, and what to do.
func setScalar(v reflect.Value, text, tag string) (problem, remedy string) {
	t := v.Type()
	if tag == "!!null" {
		return "is empty", "write " + wanted(t) + ", or leave the key out for its default"
	}
	if problem := printable(text); problem != "" {
		return problem, "write " + wanted(t)
	}
	mistyped := "is " + tagName(tag) + ", not " + wanted(t)
	switch {
	case t == typeDuration:
		if (tag == "!!int" || tag == "") && text == "0" {
			v.SetInt(0)
			return "", ""
		}
		if tag == "!!int" || tag == "!!float" {
			return text + " has no unit", "write " + wanted(t)
		}
		d, ok := parseDuration(text)
		if !ok {
			return fmt.Sprintf("%q is no duration", text), "write " + wanted(t)
		}
		v.SetInt(int64(d))
	case t == typePrefix:
		p, problem, remedy := parsePrefix(text)
		if problem != "" {
			return problem, remedy
		}
		v.Set(reflect.ValueOf(p))
	case t == typeDate:
		if text == "" {
			v.Set(reflect.ValueOf(Date{}))
			return "", ""
		}
		d, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return fmt.Sprintf("%q is no date", text), "write " + wanted(t)
		}
		v.Set(reflect.ValueOf(Date{d}))
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		switch {
		case tag == "!!int" || tag == "" || tag == "!!float" && decimal.MatchString(text): // digits that overflow are floats to YAML
		case tag == "!!float":
			return text + " is not a whole number", "write only digits"
		default:
			return mistyped, ""
		}
		if !decimal.MatchString(text) {
			return text + " is not written as a plain decimal number", "write only digits"
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v.OverflowInt(n) {
			return text + " is out of range", "write a smaller number"
		}
		v.SetInt(n)
	case t.Kind() == reflect.Float64:
		if tag != "!!int" && tag != "!!float" && tag != "" {
			return mistyped, ""
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || !number.MatchString(text) {
			return text + " is no number", "write a number like 1 or 2.5"
		}
		v.SetFloat(n)
	default:
		if tag != "!!str" && tag != "" && tag != "!!timestamp" {
			return mistyped, "put it in quotes if it is meant as text"
		}
		if w, ok := v.Interface().(word); ok {
			if problem, remedy := checkWord(text, w.words()); problem != "" {
				return problem, remedy
			}
		}
		v.SetString(text)
	}
	return "", ""
}

var (
	decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	number  = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

func checkWord(text string, words []string) (problem, remedy string) {
	for _, w := range words {
		prefix, _, argument := strings.Cut(w, ":")
		switch {
		case text == w && !argument:
			return "", ""
		case argument && text == prefix || argument && text == prefix+":":
			return fmt.Sprintf("%q names nothing", text), "write " + w + " with a name"
		case argument && strings.HasPrefix(text, prefix+":"):
			return "", ""
		}
	}
	remedy = "write one of " + strings.Join(words, ", ")
	if near := nearest(text, words); near != "" && 3*distance(text, near) < 2*len(text) { // "foo" is not "off"
		remedy = "did you mean " + near + "? " + remedy
	}
	return fmt.Sprintf("%q is unknown", text), remedy
}

// printable says what is wrong with a text that would garble a log line.
func printable(s string) string {
	switch {
	case len(s) > maxText:
		return fmt.Sprintf("is longer than %d bytes", maxText)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "holds characters that cannot be printed"
	}
	return ""
}

var durationForm = regexp.MustCompile(`^(?:([0-9]{1,6})d)?((?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms|us|µs|ns))*)$`)

// parseDuration is time.ParseDuration plus days of 24 hours, without signs.
func parseDuration(s string) (time.Duration, bool) {
	m := durationForm.FindStringSubmatch(s)
	if s == "" || m == nil {
		return 0, false
	}
	var d time.Duration
	if m[1] != "" {
		days, err := strconv.Atoi(m[1])
		if err != nil || days > 100_000 {
			return 0, false
		}
		d = time.Duration(days) * 24 * time.Hour
	}
	if m[2] != "" {
		rest, err := time.ParseDuration(m[2])
		if err != nil || d+rest < 0 {
			return 0, false
		}
		d += rest
	}
	return d, true
}

// formatDuration writes d so that parseDuration returns it: 24h, 7d, 1h30m.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d == 0 {
		return "0"
	}
	days := ""
	if d >= 2*day {
		days = strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return days
		}
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return days + s
}

// parsePrefix reads a range, or an address as the range of itself.
func parsePrefix(s string) (p netip.Prefix, problem, remedy string) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), "", ""
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, fmt.Sprintf("%q is no address range", s), "write one like 192.0.2.0/24 or 2001:db8::/32"
	case p.Addr().Is4In6():
		return p, s + " is an IPv4 range in IPv6 form, which matches nothing", "write the IPv4 range"
	case p != p.Masked():
		return p, s + " has bits set outside its prefix", "write " + p.Masked().String()
	}
	return p, "", ""
}

// oneOf reports whether s is in list; it reads better in conditions.
func oneOf(s string, list ...string) bool { return slices.Contains(list, s) }
