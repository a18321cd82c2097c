package edge

import (
	"fmt"
	"strings"
)

// cloudflare writes a rate limiting ruleset (phase http_ratelimit), in the syntax
// of Cloudflare's provider 5. What each plan can read and count: Cloudflare's page
// "Rate limiting rules, availability by plan", as of 2026-08-25.
type cloudflare struct{}

var _ vendor = cloudflare{}

func (cloudflare) plan(name string) (capability, error) {
	can := capability{bots: true, limits: []string{
		"Counting is per data centre, and by Cloudflare's own word not made for a precise number.",
		"No visitor's day: a client is forgotten after the window.",
		"It counts requests for pages, also those that the cache answers.",
	}}
	switch name {
	case "free":
		can.windows, can.rules = []int{10}, 1
	case "pro":
		can.windows, can.rules = []int{10, 60}, 2
	case "", "business":
		name, can.method = "business", true
		can.windows, can.rules = []int{10, 60, 120, 300, 600}, 5
	case "enterprise":
		can.method, can.headers = true, true
		can.windows, can.rules = []int{10, 60, 120, 300, 600, 3600, 65535}, 100
	default:
		return can, fmt.Errorf("%w: cloudflare has free, pro, business and enterprise", ErrPlan)
	}
	can.name = name
	if !can.headers {
		lacks := "Accept and Sec-Fetch-Dest"
		if !can.method {
			lacks = "the method, " + lacks
		}
		can.limits = append(can.limits, "On this plan a rule cannot read "+lacks+": prefetches and framework fetches of pages are counted like clicks.")
	}
	return can, nil
}

func (cloudflare) write(can capability, q request) (string, []string) {
	var b strings.Builder
	name := label("stile", q.file.Site)
	fmt.Fprintf(&b, "resource \"cloudflare_ruleset\" %s {\n", hcl(name))
	b.WriteString("  zone_id = var.zone_id\n")
	b.WriteString("  name    = \"default\"\n  kind    = \"zone\"\n  phase   = \"http_ratelimit\"\n\n  rules = [\n")
	var notes []string
	for _, r := range q.rings {
		action, enabled := "block", "true"
		if q.observe {
			action, enabled = "log", "true"
			if !can.headers {
				action, enabled = "block", "false"
			}
		}
		fmt.Fprintf(&b, "    {\n      ref         = %s\n", hcl(label("stile", r.bucket.Name)))
		fmt.Fprintf(&b, "      description = %s\n", hcl(fmt.Sprintf("stile %s: %d pages in %d s", r.bucket.Name, r.held, r.window)))
		fmt.Fprintf(&b, "      expression  = %s\n      action      = %s\n      enabled     = %s\n", hcl(cloudflareExpression(can, q, r)), hcl(action), enabled)
		b.WriteString("      ratelimit = {\n        characteristics     = [\"cf.colo.id\", \"ip.src\"]\n")
		fmt.Fprintf(&b, "        period              = %d\n        requests_per_period = %d\n        mitigation_timeout  = %d\n      }\n    },\n", r.window, r.held, cloudflareTimeout(can, r.window))
	}
	b.WriteString("  ]\n}\n\nvariable \"zone_id\" {\n  description = \"Cloudflare's id of the zone.\"\n  type        = string\n}\n")
	if q.observe && !can.headers {
		notes = append(notes, "mode is not enforce, and only Enterprise has the action log: the rules are written with enabled = false.")
	}
	if len(q.pages.exclude.globs) > 0 {
		notes = append(notes, "A * inside of a path also stands for slashes here.")
	}
	return b.String(), append(notes, "A zone has one ruleset of this phase: if there is one already, put the rules into it.")
}

// cloudflareTimeout is how long a refused client stays refused: the window, as far
// as the plan goes. The policy would admit as soon as there is room.
func cloudflareTimeout(can capability, window int) int {
	if can.name == "free" {
		return 10
	}
	return min(window, 3600)
}

func cloudflareExpression(can capability, q request, r ring) string {
	const path = "http.request.uri.path"
	var and []string
	add := func(s string) { and = append(and, s) }
	if can.method {
		add("http.request.method in {" + quotedSet(q.pages.methods) + "}")
	}
	if can.headers {
		add(`any(http.request.headers["accept"][*] contains "text/html")`)
		add(`(len(http.request.headers["sec-fetch-dest"]) == 0 or any(http.request.headers["sec-fetch-dest"][*] == "document"))`)
		add(`not any(http.request.headers["sec-purpose"][*] contains "prefetch")`)
	}
	asked := func(p paths) string {
		var or []string
		if len(p.extensions) > 0 {
			or = append(or, "http.request.uri.path.extension in {"+quotedSet(p.extensions)+"}")
		}
		if len(p.exact) > 0 {
			or = append(or, path+" in {"+quotedSet(p.exact)+"}")
		}
		for _, s := range p.prefixes {
			or = append(or, "starts_with("+path+", "+cfQuote(s+"/")+")", path+" eq "+cfQuote(s))
		}
		for _, g := range p.globs {
			or = append(or, path+" strict wildcard "+cfQuote(wildcard(g)))
		}
		return "(" + strings.Join(or, " or ") + ")"
	}
	if !q.pages.include.none() {
		add(asked(q.pages.include))
	}
	if !r.paths.none() {
		add(asked(r.paths))
	}
	if x := q.pages.exclude; !x.none() {
		add("not " + asked(x))
	}
	if len(q.exempt) > 0 && can.method { // Source IP comes with Business
		var list []string
		for _, p := range q.exempt {
			list = append(list, p.String())
		}
		add("not ip.src in {" + strings.Join(list, " ") + "}")
	}
	if t := q.file.Exempt.Crawlers["search"]; t.Exempt || t.Multiply > 1 {
		add("not cf.client.bot")
	}
	return strings.Join(and, " and ")
}

func quotedSet(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = cfQuote(s)
	}
	return strings.Join(out, " ")
}

// cfQuote quotes for Cloudflare's rules language.
func cfQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
