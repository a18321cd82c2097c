package crawlers

import "slices"

// Need returns c without the lists and reverse patterns that prove no agent of
// the given classes. The agents stay, so that logs still name what is claimed.
// Give it the classes that the policy treats other than ordinarily: what is not
// proven costs no fetch, and a claim that would earn nothing asks no DNS.
func (c *Catalogue) Need(classes ...Class) Catalogue {
	needed := map[string]bool{}
	for _, a := range c.Agents {
		needed[a.Name] = slices.Contains(classes, a.Class)
	}
	some := func(agents []string) bool {
		return slices.ContainsFunc(agents, func(n string) bool { return needed[n] })
	}
	out := Catalogue{Agents: c.Agents}
	for _, l := range c.Lists {
		if some(l.Agents) {
			out.Lists = append(out.Lists, l)
		}
	}
	for _, r := range c.Reverse {
		if some(r.Agents) {
			out.Reverse = append(out.Reverse, r)
		}
	}
	return out
}
