package answer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
)

const pageHead = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
	`<style>:root{color-scheme:light dark}body{font:1.1em/1.5 system-ui,sans-serif;max-width:34em;margin:8vh auto;padding:0 1em;overflow-wrap:anywhere}h1{line-height:1.2;text-wrap:balance}code{font-family:ui-monospace,monospace}small{display:block}</style><link rel="icon" href="data:,">`

// The script is a convenience: without it the words and the time of day in the
// page say the same. It counts to a moment and not in ticks, since phones stop
// timers in the background. A timer role is not read out at every change.
const countdown = `<script>(()=>{let t=document.getElementById("t"),e=Date.now()+1e3*t.dataset.s,f=()=>{let s=Math.ceil((e-Date.now())/1e3);` +
	`if(s<1)return t.textContent="now";let h=s/3600|0,m=s/60%60|0;` +
	`t.textContent="in "+(h?h+" h ":"")+(h||m?m+" min":"")+(h?"":(m?" ":"")+s%60+" s");setTimeout(f,1e3)};f()})()</script>`

const limitedHTML = pageHead + `<title>Too many pages{{of_site}}</title></head><body><main><h1>Too many pages in a short time</h1>` +
	`<p>More pages were opened from your connection than this site allows ({{rule}}). Nothing is lost.</p>` +
	`<p>You can go on <b id="t" role="timer" data-s="{{retry_after}}">in {{wait}}</b> (at {{until}}). <a href="">Try again</a></p>` +
	`<p>If this is a mistake, {{please_tell}} and name the reference <code>{{ref}}</code>.</p>` +
	`<p><small>Crawlers: {{crawlers}}</small></p></main>` + countdown + `</body></html>`

const unavailableHTML = pageHead + `<title>Not available{{of_site}}</title></head><body><main><h1>This page is not available right now</h1>` +
	`<p>The fault is ours, not yours, and it is no limit on your visit. Please <a href="">try again</a> <span id="t" role="timer" data-s="{{retry_after}}">in {{wait}}</span>.</p>` +
	`<p>If it stays, {{please_tell}} and name the reference <code>{{ref}}</code>.</p></main>` + countdown + `</body></html>`

const downHTML = pageHead + `<title>Not answering{{of_site}}</title></head><body><main><h1>The site is not answering</h1>` +
	`<p>Your request arrived, but the server behind this address gave no answer. Please <a href="">try again</a> in a moment.</p>` +
	`<p>If it stays, {{please_tell}} and name the reference <code>{{ref}}</code>.</p></main></body></html>`

const limitedJSON = `{"error":{"code":"RATE_LIMITED","message":"Too many pages in a short time ({{rule}}). Try again in {{wait}}.",` +
	`"retry_after":{{retry_after}},"ref":"{{ref}}","contact":"{{contact}}","crawlers":"{{crawlers}}"}}` + "\n"

const unavailableJSON = `{"error":{"code":"UNAVAILABLE","message":"Not available right now. This is no limit on your requests.",` +
	`"retry_after":{{retry_after}},"ref":"{{ref}}","contact":"{{contact}}"}}` + "\n"

const downJSON = `{"error":{"code":"ORIGIN_DOWN","message":"The server behind this address gave no answer.","ref":"{{ref}}","contact":"{{contact}}"}}` + "\n"

// The types are those that the RateLimit draft registers (its §"problem types").
const limitedProblem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too many pages in a short time","status":429,` +
	`"detail":"The limit is {{rule}}. Try again in {{wait}}.","violated-policies":{{policies}},` +
	`"retry_after":{{retry_after}},"ref":"{{ref}}","contact":"{{contact}}","crawlers":"{{crawlers}}"}` + "\n"

const unavailableProblem = `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Not available right now","status":503,` +
	`"detail":"This is no limit on your requests.","retry_after":{{retry_after}},"ref":"{{ref}}","contact":"{{contact}}"}` + "\n"

const downProblem = `{"type":"about:blank","title":"The site is not answering","status":{{status}},"ref":"{{ref}}","contact":"{{contact}}"}` + "\n"

// newPage compiles the three forms of one page and proves them on a sample.
func newPage(cfg *Config, html, jsonText, problem string) (page, error) {
	var p page
	// A sentence with the contact's link differs in markup and not only in
	// text, so it is put into the template's own text before compiling.
	link := contactURL(cfg.Contact)
	tell := "tell the people who run this site"
	switch {
	case link != "":
		tell = `write to <a href="{{contact_url}}">{{contact}}</a>`
	case cfg.Contact != "":
		tell = `write to {{contact}}`
	}
	html = strings.ReplaceAll(html, "{{please_tell}}", tell)
	ofSite := ""
	if cfg.Site != "" {
		ofSite = " – {{site}}"
	}
	html = strings.ReplaceAll(html, "{{of_site}}", ofSite)
	constants := map[string]string{
		"site": cfg.Site, "contact": contactText(cfg.Contact), "contact_url": link, "crawlers": cfg.Crawlers,
	}
	var err error
	if p.csp, err = contentSecurityPolicy(html); err != nil {
		return page{}, err
	}
	if p.html, err = compile(html, false, constants); err != nil {
		return page{}, err
	}
	for _, f := range []struct {
		to   **template
		text string
	}{{&p.json, jsonText}, {&p.problem, problem}} {
		if *f.to, err = compile(f.text, true, constants); err != nil {
			return page{}, err
		}
		if body := (*f.to).render(sample()); !json.Valid(body) {
			return page{}, fmt.Errorf("answer: the JSON template does not make JSON: %.200s", body)
		}
	}
	return p, nil
}

// sample has every value at an awkward size.
func sample() *values {
	s := core.State{Bucket: `a"b`, Limit: 1e9, Window: 25 * time.Hour, RetryAfter: time.Hour}
	return &values{ref: NewRef(), retry: 86399, now: time.Unix(0, 0), status: 502, binding: &s, states: []core.State{s, s}}
}

// contentSecurityPolicy allows the page its own inline styles and scripts by
// hash, pictures and fonts of its own site, and nothing else. A site's own
// policy would block the script, and one with unsafe-inline would be worse.
func contentSecurityPolicy(html string) (string, error) {
	styles, err := inlineHashes(html, "style")
	if err != nil {
		return "", err
	}
	scripts, err := inlineHashes(html, "script")
	if err != nil {
		return "", err
	}
	return "default-src 'none'; img-src 'self' data:; font-src 'self'; style-src 'self'" + styles +
		"; script-src 'self'" + scripts + "; base-uri 'none'; form-action 'self'; frame-ancestors 'self'", nil
}

func inlineHashes(html, tag string) (string, error) {
	lower := strings.ToLower(html)
	plain, sources := strings.Count(html, "<"+tag+">"), strings.Count(lower, "<"+tag+" src=")
	if all := strings.Count(lower, "<"+tag); all != plain+sources {
		return "", fmt.Errorf("answer: write <%s> in lower case and without attributes (or <script src=…> first); the hash of its content goes into the page's policy", tag)
	}
	var out strings.Builder
	for rest := html; ; {
		_, after, found := strings.Cut(rest, "<"+tag+">")
		if !found {
			return out.String(), nil
		}
		body, after, found := strings.Cut(after, "</"+tag+">")
		if !found {
			return "", fmt.Errorf("answer: the HTML template has <%s> without </%s>", tag, tag)
		}
		if strings.Contains(body, "{{") {
			return "", fmt.Errorf("answer: the HTML template has a placeholder inside <%s>; its hash would change with each answer: put the value into a data- attribute", tag)
		}
		sum := sha256.Sum256([]byte(body))
		out.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
		rest = after
	}
}

// contactURL returns the contact if it is a link of a harmless scheme.
func contactURL(contact string) string {
	u, err := url.Parse(contact)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "mailto", "tel", "http", "https":
		return contact
	}
	return ""
}

// contactText is the contact as people write it.
func contactText(contact string) string {
	for _, scheme := range []string{"mailto:", "tel:"} {
		if text, ok := strings.CutPrefix(contact, scheme); ok {
			text, _, _ = strings.Cut(text, "?")
			return text
		}
	}
	return contact
}
