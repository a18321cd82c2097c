package core

import "strings"

// classify says what a request is, from its own headers alone. The facts it
// rests on were recorded from real browsers; see testdata/browser-requests.jsonl
// and docs/counting.md.
func (c *Count) classify(r *Request) (Class, Reason) {
	if !c.countsMethod(r.Method) {
		return Ignored, ReasonMethod
	}
	if !c.countsPath(r) { // first, as most requests are for assets
		if r.Blind && c.Exclude == nil && feedPaths().Match(r.Path) {
			return Claim, ReasonFeed
		}
		return Ignored, ReasonPath
	}
	upgrade := isUpgrade(r)
	if upgrade && !r.Blind {
		return Ignored, ReasonUpgrade
	}
	if isFeedQuery(r.RawQuery) {
		if r.Blind {
			return Claim, ReasonFeed // the answer would have shown whether it is one
		}
		return Ignored, ReasonFeed
	}
	if upgrade {
		return Claim, ReasonUpgrade // a handshake's answer would have shown whether it is one
	}
	dest, valid := fieldToken(r.first("Sec-Fetch-Dest"))
	switch {
	case !valid:
		// No fetch metadata, or none that a browser would send. Bots land here,
		// and so do old browsers and sites without TLS.
		if speculates(r) || speculatedBefore(r) {
			return Speculative, ReasonPrefetch
		}
		if !acceptsPage(r.first("Accept")) {
			return Claim, ReasonAccept
		}
		return Counted, ""
	case speculates(r) && !(dest == "document" && r.first("Sec-Fetch-User") == "?1"):
		// A speculation on pointer-down may be the only request of a real click;
		// it then carries the user's activation and counts.
		return Speculative, ReasonPrefetch
	case dest == "document" && speculatedBefore(r):
		return Speculative, ReasonPrefetch
	case dest == "document":
		return Counted, ""
	case dest == "empty" && r.first("Upgrade-Insecure-Requests") == "1" && listsHTML(r.first("Accept")):
		return Counted, "" // a service worker passes a navigation on
	default:
		return Claim, ReasonDestination
	}
}

func (c *Count) countsMethod(method string) bool {
	if len(c.Methods) == 0 {
		return method == "GET"
	}
	for _, m := range c.Methods {
		if m == method {
			return true
		}
	}
	return false
}

func (c *Count) countsPath(r *Request) bool {
	path := cleanPath(r.Path)
	if c.Include != nil && !c.Include.matchClean(path) {
		return false
	}
	exclude := c.Exclude
	if exclude == nil {
		exclude = defaultExclude
	}
	return !exclude.matchClean(path) || isPageData(r, path)
}

// isPageData recognises the text of a page in a framework's own wrapping. A
// static export of Next.js keeps it in .txt files, which only its router asks
// for with RSC: 1.
func isPageData(r *Request, path string) bool {
	switch {
	case strings.HasSuffix(path, ".txt"):
		return r.first("Rsc") == "1"
	case strings.HasSuffix(path, ".json"), strings.HasPrefix(path, "/_next/data"):
		return pageData.matchClean(path)
	}
	return false
}

// isUpgrade recognises WebSocket handshakes (RFC 6455 §4.1; over HTTP/2 they are
// CONNECT, which no policy counts). Another Upgrade value, such as h2c, leaves a
// page request a page request.
func isUpgrade(r *Request) bool {
	v := r.first("Upgrade")
	return v != "" && strings.EqualFold(strings.TrimSpace(v), "websocket")
}

// isFeedQuery recognises feeds that are asked for by query, as WordPress
// (?feed=rss2) and SPIP (?page=backend) have them.
func isFeedQuery(query string) bool {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "feed":
			switch value {
			case "rss", "rss2", "atom", "rdf", "json":
				return true
			}
		case "page":
			if value == "backend" {
				return true
			}
		}
	}
	return false
}

// speculates reports a prefetch or prerender: Sec-Purpose is a structured-field
// list that holds the token prefetch (WICG nav-speculation).
func speculates(r *Request) bool {
	for _, line := range r.values("Sec-Purpose") {
		if listHasToken(line, "prefetch") {
			return true
		}
	}
	return false
}

// speculatedBefore reports the predecessors of Sec-Purpose in Chromium, Mozilla
// and WebKit. Page scripts can set these, so they are asked only of what would
// otherwise be a navigation: a script's fetch is a claim whatever it says.
func speculatedBefore(r *Request) bool {
	names := func(field, token string) bool {
		v := r.first(field)
		return v != "" && listHasToken(v, token)
	}
	return names("Purpose", "prefetch") || names("X-Moz", "prefetch") || names("X-Purpose", "preview")
}

// listHasToken reports whether a structured-field list (RFC 9651 §3.1) has the
// bare token as a member, whatever its parameters. Members are separated by
// commas outside of strings; a malformed rest is simply not matched.
func listHasToken(line, token string) bool {
	for line != "" {
		var member string
		member, line = cutMember(line)
		item, _, _ := strings.Cut(member, ";")
		if strings.Trim(item, " \t") == token {
			return true
		}
	}
	return false
}

// cutMember splits the first member off a list: up to the first comma that is
// not inside a quoted string.
func cutMember(line string) (member, rest string) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return line[:i], line[i+1:]
		}
	}
	return line, ""
}

// fieldToken returns the bare item of a structured-field token (RFC 9651
// §3.3.4) without parameters, and whether there was a well-formed one. Browsers
// send lower case only; anything else is not from a browser and is treated as
// absent.
func fieldToken(value string) (string, bool) {
	if value == "document" { // what nearly every navigation says
		return value, true
	}
	item, _, _ := strings.Cut(value, ";")
	item = strings.Trim(item, " \t")
	if item == "" || len(item) > 32 {
		return "", false
	}
	for i := 0; i < len(item); i++ {
		if c := item[i]; !(c >= 'a' && c <= 'z' || c == '-') {
			return "", false
		}
	}
	return item, true
}

// acceptsPage reports whether an Accept value leaves room for a page. Without
// fetch metadata it is all there is to tell an image from an article: what is
// asked for first decides, and text/html anywhere is enough.
func acceptsPage(accept string) bool {
	if accept == "" || listsHTML(accept) {
		return true
	}
	first, _, _ := strings.Cut(accept, ",")
	first, _, _ = strings.Cut(first, ";")
	switch strings.Trim(first, " \t") {
	case "", "*/*", "text/*", "text/plain":
		return true
	}
	return false
}

// listsHTML reports whether an Accept value names an HTML page type.
func listsHTML(accept string) bool {
	return containsFold(accept, "text/html") || containsFold(accept, "application/xhtml+xml")
}

// containsFold is strings.Contains without regard to ASCII case; sub must be
// lower case.
func containsFold(s, sub string) bool {
	for i := 0; i+len(sub) <= len(s); i++ {
		if c := s[i] | 0x20; c == sub[0] && strings.EqualFold(s[i:i+len(sub)], sub) {
			return true
		}
	}
	return false
}
