package core

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Patterns is a compiled list of path patterns. A pattern that begins with a
// slash is matched against the whole path, segment by segment: "*" stands for
// any text within one segment, "**" for any number of segments, so that
// "/api/**" matches "/api" and all below it. A pattern without a slash, such as
// "*.css", is matched against the last segment, without regard to case. The
// path is cleaned first, and a trailing slash or a segment's ";parameter" makes
// no difference. Patterns are immutable and safe for concurrent
// use; matching the forms used by [DefaultExclude] does not allocate.
type Patterns struct {
	source []string
	all    bool
	exact  map[string]struct{}
	suffix map[string]struct{} // extensions, lower case, without dot
	prefix map[string][]string // "/x/y" for "/x/y/**", by its first segment
	last   map[string]struct{} // "x" for "/**/x"
	base   []string            // lower case, for the last segment
	globs  []glob              // everything else
}

// A glob is a pattern that is matched segment by segment. Most paths are told
// apart from it by the literal text it begins and ends with.
type glob struct {
	segments []string
	head     string // what the path must begin with, after its slash
	lastHead string // what the last segment must begin with
}

// CompilePatterns compiles a list. The error names the first pattern that
// cannot match anything. An empty list matches nothing.
func CompilePatterns(list ...string) (*Patterns, error) {
	p := &Patterns{
		source: slices.Clone(list),
		exact:  map[string]struct{}{},
		suffix: map[string]struct{}{},
		prefix: map[string][]string{},
		last:   map[string]struct{}{},
	}
	for _, s := range list {
		if err := p.add(s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Source returns the patterns as they were written.
func (p *Patterns) Source() []string { return slices.Clone(p.source) }

func (p *Patterns) add(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("empty pattern")
	case strings.Contains(s, ";"):
		return fmt.Errorf("pattern %q matches nothing: a segment's ;parameters are cut off before it is matched", s)
	case s == "/**" || s == "**":
		p.all = true
		return nil
	case !strings.Contains(s, "/"):
		if ext, ok := strings.CutPrefix(s, "*."); ok && !strings.ContainsAny(ext, "*.") {
			p.suffix[strings.ToLower(ext)] = struct{}{}
			return nil
		}
		if strings.Contains(s, "**") {
			return fmt.Errorf("pattern %q: ** stands for whole path segments, write /**/ or /**", s)
		}
		p.base = append(p.base, strings.ToLower(s))
		return nil
	case s[0] != '/':
		return fmt.Errorf("pattern %q: a pattern with a slash must begin with one", s)
	}
	if s != "/" {
		s = strings.TrimSuffix(s, "/")
	}
	if s == "/**" {
		p.all = true
		return nil
	}
	if clean := cleanPath(s); clean != s {
		return fmt.Errorf("pattern %q matches nothing: paths are cleaned before they are matched; write %q", s, clean)
	}
	if head, ok := strings.CutSuffix(s, "/**"); ok && !strings.Contains(head, "*") {
		first := firstSegment(head)
		p.prefix[first] = append(p.prefix[first], head)
		return nil
	}
	if !strings.Contains(s, "*") {
		p.exact[s] = struct{}{}
		return nil
	}
	parts := strings.Split(s[1:], "/")
	for _, part := range parts {
		if part != "**" && strings.Contains(part, "**") {
			return fmt.Errorf("pattern %q: ** must stand alone between slashes", s)
		}
	}
	if len(parts) == 2 && parts[0] == "**" && !strings.Contains(parts[1], "*") {
		p.last[parts[1]] = struct{}{}
		return nil
	}
	g := glob{segments: parts}
	g.head, _, _ = strings.Cut(parts[0], "*")
	g.lastHead, _, _ = strings.Cut(parts[len(parts)-1], "*")
	p.globs = append(p.globs, g)
	return nil
}

// firstSegment returns the first segment of a path, without slashes.
func firstSegment(path string) string {
	s, _, _ := strings.Cut(path[1:], "/")
	return s
}

// Match reports whether a percent-decoded path matches any pattern. A nil
// Patterns matches nothing.
func (p *Patterns) Match(urlPath string) bool {
	if p == nil {
		return false
	}
	return p.all || p.matchClean(cleanPath(urlPath))
}

// matchClean is Match for a path that cleanPath has been over.
func (p *Patterns) matchClean(s string) bool {
	if p.all {
		return true
	}
	last := s[strings.LastIndexByte(s, '/')+1:]
	if ext, ok := extension(last); ok && len(p.suffix) > 0 {
		var buf [16]byte
		if len(ext) <= len(buf) {
			n := copy(buf[:], ext)
			for i := range buf[:n] {
				if c := buf[i]; c >= 'A' && c <= 'Z' {
					buf[i] = c + 'a' - 'A'
				}
			}
			if _, ok := p.suffix[string(buf[:n])]; ok {
				return true
			}
		}
	}
	if _, ok := p.exact[s]; ok {
		return true
	}
	for _, pre := range p.prefix[firstSegment(s)] {
		if strings.HasPrefix(s, pre) && (len(s) == len(pre) || s[len(pre)] == '/') {
			return true
		}
	}
	if _, ok := p.last[last]; ok {
		return true
	}
	if len(p.base) > 0 {
		lower := strings.ToLower(last)
		for _, b := range p.base {
			if matchSegment(b, lower) {
				return true
			}
		}
	}
	for i := range p.globs {
		g := &p.globs[i]
		if strings.HasPrefix(s[1:], g.head) && strings.HasPrefix(last, g.lastHead) && matchSegments(g.segments, s[1:]) {
			return true
		}
	}
	return false
}

// extension returns what follows the last dot of a segment that has more than
// an extension: ".css" alone is a hidden file, not a style sheet.
func extension(segment string) (string, bool) {
	i := strings.LastIndexByte(segment, '.')
	if i <= 0 || i == len(segment)-1 {
		return "", false
	}
	return segment[i+1:], true
}

// cleanPath returns the path that an origin is most likely to serve: without
// dot segments, doubled or trailing slashes, and without the parameters of its
// segments, which some servers cut off before they look at dots: "/page;x.css"
// is the page there, and "/api/..;/page" too. The common case allocates nothing.
func cleanPath(s string) string {
	if isClean(s) {
		return s
	}
	if s == "" {
		return "/"
	}
	if s[0] != '/' {
		s = "/" + s
	}
	if strings.IndexByte(s, ';') >= 0 {
		s = cutParameters(s)
	}
	if strings.Contains(s, "//") || strings.Contains(s, "/.") {
		s = path.Clean(s)
	}
	if len(s) > 1 && s[len(s)-1] == '/' {
		s = s[:len(s)-1]
	}
	return s
}

// isClean reports, in one look at each byte, that cleanPath has nothing to do; of
// a few clean paths it does not say so ("/.well-known").
func isClean(s string) bool {
	if s == "" || s[0] != '/' {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case ';':
			return false
		case '/', '.':
			if s[i-1] == '/' {
				return false
			}
		}
	}
	return len(s) == 1 || s[len(s)-1] != '/'
}

// cutParameters returns a path without what follows a ";" in each segment (RFC
// 3986 section 3.3 leaves its meaning to the server).
func cutParameters(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for s != "" {
		i := strings.IndexByte(s, ';')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		if i = strings.IndexByte(s, '/'); i < 0 {
			break
		}
		s = s[i:]
	}
	return b.String()
}

// matchSegments matches pattern segments against path, which has no leading
// slash. It walks like a glob with one level of backtracking per "**", so its
// time is bounded by patterns x segments, whatever the client sends.
func matchSegments(pattern []string, path string) bool {
	back, backPath := -1, ""
	i := 0
	rest, more := path, true
	for more {
		if i < len(pattern) && pattern[i] == "**" {
			back, backPath = i, rest
			i++
			if i == len(pattern) {
				return true
			}
			continue
		}
		seg, tail, cut := strings.Cut(rest, "/")
		if i < len(pattern) && matchSegment(pattern[i], seg) {
			i++
			rest, more = tail, cut
			continue
		}
		if back < 0 {
			return false
		}
		_, tail, cut = strings.Cut(backPath, "/")
		if !cut {
			return false
		}
		backPath, rest, i = tail, tail, back+1
	}
	for i < len(pattern) && pattern[i] == "**" {
		i++
	}
	return i == len(pattern)
}

// matchSegment matches one segment with "*" for any text, in linear time per
// star.
func matchSegment(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == s[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}
