package edge

import (
	"fmt"
	"strings"
)

// vercel writes rules of the Vercel Firewall, in the syntax of Vercel's provider.
// Windows and numbers of rules are those of Vercel's page "WAF Rate Limiting", as
// quoted in August 2026.
type vercel struct{}

var _ vendor = vercel{}

func (vercel) plan(name string) (capability, error) {
	can := capability{name: name, method: true, headers: true, limits: []string{
		"Counters are per region.",
		"No visitor's day.",
		"Every request that the rule lets through is paid for.",
		"The firewall stands before Vercel's cache, so it also counts pages that the cache answers.",
	}}
	switch name {
	case "", "pro":
		can.name = "pro"
		can.windows, can.rules = []int{10, 60, 120, 300, 600}, 40
		can.limits = append(can.limits, "The longest window is ten minutes on this plan.")
	case "enterprise":
		can.windows, can.rules = []int{10, 60, 120, 300, 600, 1800, 3600}, 1000
		can.limits = append(can.limits, "The longest window is an hour on this plan.")
	default:
		return can, fmt.Errorf("%w: vercel has pro and enterprise", ErrPlan)
	}
	return can, nil
}

func (vercel) write(_ capability, q request) (string, []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "resource \"vercel_firewall_config\" %s {\n  project_id = var.project_id\n\n  rules {\n", hcl(label("stile", q.file.Site)))
	for i, r := range q.rings {
		if i > 0 {
			b.WriteString("\n")
		}
		action := "rate_limit"
		if q.observe {
			action = "log"
		}
		fmt.Fprintf(&b, "    rule {\n      name        = %s\n      description = %s\n", hcl(dashed("stile", r.bucket.Name)), hcl(fmt.Sprintf("%d pages in %d s", r.held, r.window)))
		b.WriteString("      # Groups are alternatives; within one, all conditions hold.\n      condition_group = [\n")
		for _, first := range []string{
			"{ type = \"header\", key = \"sec-fetch-dest\", op = \"eq\", value = \"document\" }",
			"{ type = \"header\", key = \"sec-fetch-dest\", op = \"ex\", neg = true }",
		} {
			b.WriteString("        { conditions = [\n          " + first + ",\n")
			for _, c := range vercelConditions(q, r) {
				b.WriteString("          " + c + ",\n")
			}
			b.WriteString("        ] },\n")
		}
		b.WriteString("      ]\n      action = {\n        action = \"rate_limit\"\n")
		fmt.Fprintf(&b, "        rate_limit = {\n          limit  = %d\n          window = %d\n          keys   = [\"ip\"]\n          algo   = \"fixed_window\"\n          action = %s\n        }\n      }\n    }\n", r.held, r.window, hcl(action))
	}
	b.WriteString("  }\n}\n\nvariable \"project_id\" {\n  description = \"Vercel's id of the project.\"\n  type        = string\n}\n")
	return b.String(), []string{"A project has one firewall configuration: if there is one already, put the rules into it."}
}

func vercelConditions(q request, r ring) (list []string) {
	if len(q.pages.methods) == 1 {
		list = append(list, fmt.Sprintf("{ type = \"method\", op = \"eq\", value = %s }", hcl(q.pages.methods[0])))
	} else {
		list = append(list, fmt.Sprintf("{ type = \"method\", op = \"inc\", values = %s }", hclList(q.pages.methods)))
	}
	list = append(list,
		"{ type = \"header\", key = \"accept\", op = \"sub\", value = \"text/html\" }",
		"{ type = \"header\", key = \"sec-purpose\", op = \"sub\", value = \"prefetch\", neg = true }",
	)
	ask := func(p paths, neg string, size int) {
		for _, re := range p.joined(size) {
			list = append(list, fmt.Sprintf("{ type = \"path\", op = \"re\", value = %s%s }", hcl(re), neg))
		}
	}
	const whole = 1 << 16 // what is a page must be one condition: conditions hold together
	if !q.pages.include.none() {
		ask(q.pages.include, "", whole)
	}
	if !r.paths.none() {
		ask(r.paths, "", whole)
	}
	if !q.pages.exclude.none() {
		ask(q.pages.exclude, ", neg = true", 1000)
	}
	for _, p := range q.exempt {
		list = append(list, fmt.Sprintf("{ type = \"ip_address\", op = \"eq\", value = %s, neg = true }", hcl(p.String())))
	}
	return list
}
