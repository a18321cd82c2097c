package edge

import (
	"fmt"
	"regexp"
	"strings"
)

// hcl quotes text for Terraform: paths are the operator's own, but a pattern may
// hold what starts an interpolation there.
func hcl(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s)
	return `"` + strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s) + `"`
}

func hclList(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = hcl(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// label turns a site's or bucket's name into one that Terraform and every product
// take.
func label(parts ...string) string {
	s := strings.Trim(noName.ReplaceAllString(strings.ToLower(strings.Join(parts, "_")), "_"), "_")
	if s == "" || s[0] < 'a' {
		return "stile_" + s
	}
	return s
}

func dashed(parts ...string) string { return strings.ReplaceAll(label(parts...), "_", "-") }

// indent puts spaces before every line.
func indent(n int, text string) string {
	pad := strings.Repeat(" ", n)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = pad + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// noPlans is for products whose rules are the same whatever one pays.
func noPlans(product, name string, can capability) (capability, error) {
	if name != "" {
		return capability{}, fmt.Errorf("%w: %s has no plans here", ErrPlan, product)
	}
	return can, nil
}
