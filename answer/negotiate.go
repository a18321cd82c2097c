package answer

import (
	"strconv"
	"strings"
)

// A Format is a form of a body.
type Format uint8

// The forms. HTML is what anybody gets who does not ask for another.
const (
	HTML    Format = iota // text/html
	JSON                  // application/json
	Problem               // application/problem+json (RFC 9457)
)

// Negotiate chooses the form for the lines of an Accept field: HTML unless JSON
// is explicitly preferred, that is, named with more weight than HTML has, or
// with as much as HTML gets from a wildcard. Parts of an Accept that cannot be
// read are left out.
func Negotiate(accept []string) Format {
	html := weight{}
	var json, problem float32
	for _, line := range accept {
		for line != "" {
			var item string
			item, line = cutOutsideQuotes(line, ',')
			name, params := cutOutsideQuotes(item, ';')
			name = strings.Trim(name, " \t")
			q := quality(params)
			switch {
			case strings.EqualFold(name, "text/html"), strings.EqualFold(name, "application/xhtml+xml"):
				html.set(3, q)
			case strings.EqualFold(name, "text/*"):
				html.set(2, q)
			case name == "*/*":
				html.set(1, q)
			case strings.EqualFold(name, "application/problem+json"):
				problem = max(problem, q)
			case strings.EqualFold(name, "application/json"):
				json = max(json, q)
			}
		}
	}
	best, format := json, JSON
	if problem > 0 && problem >= json { // made for errors: the more exact of the two
		best, format = problem, Problem
	}
	if best == 0 || best < html.q || best == html.q && html.named == 3 {
		return HTML
	}
	return format
}

// A weight keeps the quality of the most exact range that matches.
type weight struct {
	named uint8
	q     float32
}

func (w *weight) set(named uint8, q float32) {
	if named > w.named {
		*w = weight{named, q}
	} else if named == w.named {
		w.q = max(w.q, q)
	}
}

// quality finds the q parameter; absent is 1, unreadable is 0.
func quality(params string) float32 {
	for params != "" {
		var param string
		param, params = cutOutsideQuotes(params, ';')
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.Trim(value, " \t"), 32)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return float32(q)
	}
	return 1
}
