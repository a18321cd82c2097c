package edge

import (
	"fmt"
	"strings"
)

// cloudArmor writes a security policy for a backend service. A rule's expression
// has at most five parts of 1,024 characters, and 2,048 in all (Cloud Armor,
// quotas); the intervals and counts are those of its rate limiting overview.
type cloudArmor struct{}

var _ vendor = cloudArmor{}

const (
	armorParts = 5
	armorPart  = 1024
)

func (cloudArmor) plan(name string) (capability, error) {
	return noPlans("cloud-armor", name, capability{
		windows: []int{10, 30, 60, 120, 180, 240, 270, 300, 450, 600, 1200, 1800, 2700, 3600},
		most:    1_000_000, method: true, headers: true,
		limits: []string{
			"Counting is per backend service and location, and approximate.",
			"The longest window is an hour. No visitor's day.",
			"Every request that reaches the balancer is paid for, assets included, not pages alone.",
			"An expression has five parts, so Sec-Fetch-Dest is not asked: frames and framework fetches that accept text/html count like clicks.",
			"The key is the connection's address (IP). XFF_IP would let a client choose its key, and count all as one without the field.",
		},
	})
}

func (cloudArmor) write(_ capability, q request) (string, []string) {
	var b strings.Builder
	var notes []string
	fmt.Fprintf(&b, "resource \"google_compute_security_policy\" %s {\n  name = %s\n\n", hcl(label("stile", q.file.Site)), hcl(dashed("stile", q.file.Site)))
	priority := 1000
	for i := 0; i < len(q.exempt); i += 10 { // ten ranges per rule
		var list []string
		for _, p := range q.exempt[i:min(i+10, len(q.exempt))] {
			list = append(list, p.String())
		}
		fmt.Fprintf(&b, "  rule {\n    description = \"stile: exempt networks\"\n    priority    = %d\n    action      = \"allow\"\n    match {\n      versioned_expr = \"SRC_IPS_V1\"\n      config {\n        src_ip_ranges = %s\n      }\n    }\n  }\n\n", priority, hclList(list))
		priority += 10
	}
	if len(q.exempt) > 0 {
		notes = append(notes, "An exempt network is allowed before any later rule of this policy is asked, WAF rules included.")
	}
	for _, r := range q.rings {
		expression, more := armorExpression(q, r)
		notes = append(notes, more...)
		fmt.Fprintf(&b, "  rule {\n    description = %s\n    priority    = %d\n    action      = \"throttle\"\n    preview     = %v\n", hcl(fmt.Sprintf("stile %s: %d pages in %d s", r.bucket.Name, r.held, r.window)), priority, q.observe)
		fmt.Fprintf(&b, "    match {\n      expr {\n        expression = %s\n      }\n    }\n", hcl(expression))
		fmt.Fprintf(&b, "    rate_limit_options {\n      conform_action = \"allow\"\n      exceed_action  = \"deny(429)\"\n      enforce_on_key = \"IP\"\n      rate_limit_threshold {\n        count        = %d\n        interval_sec = %d\n      }\n    }\n  }\n\n", r.held, r.window)
		priority += 10
	}
	b.WriteString("  rule {\n    description = \"everything else\"\n    priority    = 2147483647\n    action      = \"allow\"\n    match {\n      versioned_expr = \"SRC_IPS_V1\"\n      config {\n        src_ip_ranges = [\"*\"]\n      }\n    }\n  }\n}\n")
	if len(q.rings) > 1 {
		notes = append(notes, "The first throttle rule that matches decides alone: of several, only the one with the smallest priority counts.")
	}
	return b.String(), append(notes, "Attach it: security_policy of the google_compute_backend_service.")
}

func armorExpression(q request, r ring) (string, []string) {
	var notes []string
	and := []string{armorMethod(q.pages.methods), `request.headers['accept'].contains('text/html')`, `!has(request.headers['sec-purpose'])`}
	ask := func(p paths, not string) {
		list := p.joined(armorPart - len("!request.path.matches('')"))
		for i, re := range list {
			// Several parts can only be required together, so a list of what is a page
			// must fit into one.
			if len(and) == armorParts || not == "" && len(list) > 1 {
				notes = append(notes, fmt.Sprintf("%s: an expression has five parts of %d characters; this did not fit: %s", r.bucket.Name, armorPart, strings.Join(list[i:], " ")))
				return
			}
			and = append(and, not+"request.path.matches("+celQuote(re)+")")
		}
	}
	if !q.pages.include.none() {
		ask(q.pages.include, "")
	}
	if !r.paths.none() {
		ask(r.paths, "")
	}
	if !q.pages.exclude.none() {
		ask(q.pages.exclude, "!")
	}
	return strings.Join(and, " && "), notes
}

func armorMethod(methods []string) string {
	if len(methods) == 1 {
		return "request.method == " + celQuote(methods[0])
	}
	return "request.method.matches(" + celQuote("^("+strings.Join(methods, "|")+")$") + ")"
}

// celQuote quotes for Google's expression language.
func celQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
