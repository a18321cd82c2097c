package edge

import (
	"regexp"
	"slices"
	"strings"

	"github.com/stilehq/stile/policy"
)

// pages is what the policy calls a page.
type pages struct {
	methods []string
	include paths // none = every path
	exclude paths
}

func pagesOf(f *policy.File) pages {
	p := pages{methods: slices.Clone(f.Count.Methods), include: split(f.Count.Include), exclude: split(f.Count.Exclude)}
	if len(p.methods) == 0 {
		p.methods = []string{"GET"}
	}
	return p
}

// paths are the policy's patterns by their form, since products have a cheap way
// to ask for the simple ones.
type paths struct {
	all        bool
	extensions []string // css
	prefixes   []string // /api for /api and all below it
	exact      []string // /robots.txt
	globs      []string // the rest, as the policy has them
}

// none reports that there is nothing to ask: every path.
func (p paths) none() bool {
	return p.all || len(p.extensions)+len(p.prefixes)+len(p.exact)+len(p.globs) == 0
}

func split(patterns []string) (p paths) {
	for _, s := range patterns {
		head, below := strings.CutSuffix(s, "/**")
		ext, dotted := strings.CutPrefix(s, "*.")
		switch {
		case s == "/**" || s == "**":
			p.all = true
		case dotted && !strings.ContainsAny(ext, "*./"):
			p.extensions = append(p.extensions, strings.ToLower(ext))
		case below && !strings.Contains(head, "*"):
			p.prefixes = append(p.prefixes, head)
		case !strings.Contains(s, "*") && strings.HasPrefix(s, "/"):
			p.exact = append(p.exact, s)
		default:
			p.globs = append(p.globs, s)
		}
	}
	return p
}

// regexes writes the patterns as regular expressions that RE2 and PCRE read
// alike, each at most size bytes. One longer than that by itself is returned all
// the same; the caller says so.
func (p paths) regexes(size int) []string {
	var parts []string
	// Alternatives of one group, cut into groups that fit.
	group := func(head string, list []string, tail string) {
		for len(list) > 0 {
			n, length := 0, len(head)+len(tail)
			for n < len(list) && (n == 0 || length+len(list[n])+1 <= size) {
				length += len(list[n]) + 1
				n++
			}
			parts = append(parts, head+strings.Join(list[:n], "|")+tail)
			list = list[n:]
		}
	}
	group(`\.(`, quoted(p.extensions), `)$`)
	group(`^(`, quoted(p.prefixes), `)(/|$)`)
	group(`^(`, quoted(p.exact), `)/?$`)
	var globs []string
	for _, g := range p.globs {
		globs = append(globs, globRegex(g))
	}
	group(`^(`, globs, `)/?$`)
	return parts
}

// joined is regexes with as many of them in one as fit into size bytes.
func (p paths) joined(size int) (out []string) {
	for _, re := range p.regexes(size) {
		if n := len(out); n > 0 && len(out[n-1])+1+len(re) <= size {
			out[n-1] += "|" + re
			continue
		}
		out = append(out, re)
	}
	return out
}

func quoted(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = regexp.QuoteMeta(s)
	}
	return out
}

// globRegex is a pattern of the policy as a regular expression of a whole path,
// without anchors.
func globRegex(g string) string {
	if !strings.Contains(g, "/") { // held against the last segment
		return `.*/` + segmentRegex(g)
	}
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimPrefix(g, "/"), "/") {
		switch {
		case part == "**" && i == 0:
			b.WriteString(`(/.*)?`)
		case part == "**":
			b.WriteString(`(/.*)?`)
		default:
			b.WriteString("/" + segmentRegex(part))
		}
	}
	return b.String()
}

func segmentRegex(s string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, `[^/]*`)
}

// wildcard is a pattern of the policy where * also stands for slashes.
func wildcard(g string) string {
	if !strings.Contains(g, "/") {
		return "*/" + g
	}
	g = strings.ReplaceAll(g, "/**/", "*/")
	return strings.ReplaceAll(g, "**", "*")
}
