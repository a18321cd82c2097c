package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stilehq/stile/core"
)

// maxPatterns bounds every list of patterns: each request is held against them.
const maxPatterns = 1000

func (v *validator) count() {
	c := &v.f.Count
	if len(c.Methods) == 0 {
		v.fail("count.methods", "counts nothing", "write [GET]")
	}
	for i, m := range c.Methods {
		path := fmt.Sprintf("count.methods[%d]", i)
		switch {
		case oneOf(m, "GET", "POST"):
		case oneOf(strings.ToUpper(m), "GET", "POST"):
			v.fail(path, m+" is written in small letters", "write "+strings.ToUpper(m))
		default:
			v.fail(path, m+" loads no page", "write GET, or POST for forms that answer with pages")
		}
		if slices.Index(c.Methods, m) != i {
			v.warn(path, m+" is listed twice", "remove one")
		}
	}
	if len(c.Include) == 0 {
		v.fail("count.include", "counts nothing", `write ["/**"] for every page`)
	}
	v.include = v.patterns("count.include", c.Include)
	v.exclude = v.patterns("count.exclude", c.Exclude)
	if v.include != nil && v.exclude != nil {
		v.overlap()
	}
	if c.ClaimsFactor < 1 || c.ClaimsFactor > 10_000 {
		v.fail("count.claims_factor", fmt.Sprintf("%d is no multiple of the page limits", c.ClaimsFactor), "write 1 to 10000, or claims: off")
	}
	if c.Claims == ClaimsOff {
		v.warn("count.claims", "off lets a scraper read every page by saying that it loads an image", "write log to see what it would refuse")
	}
}

// overlap finds included patterns that are excluded as a whole.
func (v *validator) overlap() {
	dead := 0
	for _, p := range v.f.Count.Include {
		if excludesAll(v.exclude, p) {
			dead++
		}
	}
	if dead > 0 && dead == len(v.f.Count.Include) {
		v.fail("count.exclude", "excludes everything that count.include names: nothing is counted", "remove the pattern that is too wide")
		return
	}
	for i, p := range v.f.Count.Include {
		if excludesAll(v.exclude, p) {
			v.warn(fmt.Sprintf("count.include[%d]", i), fmt.Sprintf("%q is excluded again by count.exclude", p), "remove it from one of the lists")
		}
	}
}

// patterns checks a list and compiles it; nil when it does not compile.
func (v *validator) patterns(path string, list []string) *core.Patterns {
	if len(list) > maxPatterns {
		v.fail(path, fmt.Sprintf("has %d patterns", len(list)), fmt.Sprintf("%d are the most", maxPatterns))
		return nil
	}
	ok := !v.spoilt(path)
	for i, p := range list {
		sub := fmt.Sprintf("%s[%d]", path, i)
		if v.spoilt(sub) {
			ok = false
			continue
		}
		if problem, remedy := checkPattern(p); problem != "" {
			v.fail(sub, problem, remedy)
			ok = false
			continue
		}
		if strings.ContainsAny(p, "?[]{}") {
			v.warn(sub, fmt.Sprintf("%q holds characters that stand for themselves", p), "only * and ** are special")
		}
	}
	if !ok {
		return nil
	}
	compiled, err := core.CompilePatterns(list...)
	if err != nil { // checkPattern has found nothing, so this names no entry
		v.fail(path, err.Error(), "")
		return nil
	}
	return compiled
}

// checkPattern finds patterns that no path can match.
func checkPattern(p string) (problem, remedy string) {
	for _, never := range []struct{ part, why string }{
		{"//", "slashes are merged before matching"},
		{"/./", "dots are resolved before matching"},
		{"/../", "dots are resolved before matching"},
		{"#", "a path ends before its #"},
		{";", "a segment's ;parameters are cut off before matching"},
	} {
		if strings.Contains(p, never.part) {
			return fmt.Sprintf("%q matches nothing: %s", p, never.why), "remove " + never.part
		}
	}
	if _, err := core.CompilePatterns(p); err != nil {
		if p != "" && strings.Contains(p, "/") && p[0] != '/' {
			return fmt.Sprintf("%q matches nothing: paths begin with a slash", p), fmt.Sprintf("write %q", "/"+p)
		}
		return strings.TrimPrefix(err.Error(), "pattern "), "see docs/policy.md for patterns"
	}
	if i := strings.Index(p, "?"); i > 0 && strings.Contains(p[i:], "=") {
		return fmt.Sprintf("%q matches nothing: a path ends before its query", p), "remove " + p[i:]
	}
	if i := strings.IndexByte(p, '%'); i >= 0 && i+2 < len(p) && isHex(p[i+1]) && isHex(p[i+2]) {
		return fmt.Sprintf("%q matches nothing: paths are decoded before matching", p), "write the character itself instead of " + p[i:i+3]
	}
	return "", ""
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// excludesAll reports whether exclude matches whatever include pattern p does.
// It asks about paths made from p, with names that no sensible pattern has.
func excludesAll(exclude *core.Patterns, p string) bool {
	for _, path := range samples(p) {
		if !exclude.Match(path) {
			return false
		}
	}
	return true
}

// samples makes paths that p matches.
func samples(p string) []string {
	if !strings.HasPrefix(p, "/") {
		if p == "**" {
			p = "/**"
		} else {
			p = "/**/" + p
		}
	}
	var list []string
	for _, deep := range []string{"", "/zq7", "/zq7/zq8", "/zq7/zq8/zq7/zq8/zq7"} {
		s := strings.ReplaceAll(p, "/**", deep)
		for _, name := range []string{"zq9", "zq.9"} {
			path := strings.ReplaceAll(s, "*", name)
			if path == "" {
				path = "/"
			}
			list = append(list, path)
		}
	}
	return list
}
