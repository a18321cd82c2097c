package sizing

import (
	"fmt"
	"slices"
	"strings"
)

// An exemption is a network that the proposed policy lets through, or, when its
// claim is not to be believed, one that it only mentions.
type exemption struct {
	cidr, reason string
	own          bool
	doubtful     bool
}

// sharedExemptions are the shared addresses that would meet a limit.
func (m *measurement) sharedExemptions(p *Proposal, r *Report) []exemption {
	var out []exemption
	for _, s := range r.Shared {
		if (s.PeakHour > p.Hour || s.PeakDay > p.Day) && !strings.HasPrefix(s.Address, "name-or-digest") {
			out = append(out, exemption{cidr: cidr(s.Address), reason: fmt.Sprintf("%s; peak %d an hour, %d a day", s.Verdict, s.PeakHour, s.PeakDay)})
		}
	}
	return out
}

// probePaths is the number of URLs up to which a monitor is believed to be one: a
// probe asks for the same few pages, and who collects pages may call itself one.
const probePaths = 20

// ownExemptions are the site's own networks and monitors that would meet a limit.
// A limited probe reports outages that are none.
func (m *measurement) ownExemptions(p *Proposal) []exemption {
	var out []exemption
	for _, cl := range m.clients {
		f := m.facts[cl]
		if cl.key.group != monitoring || isOpaque(cl.key.addr) || f.peakSlide <= p.Hour && f.peakDay <= p.Day {
			continue
		}
		peak := fmt.Sprintf("peak %d an hour, %d a day", f.peakHour, f.peakDay)
		e := exemption{cidr: cidr(m.name(cl)), own: true}
		for _, n := range m.opts.Monitoring {
			if n.Contains(cl.key.addr) {
				e.cidr = n.String()
			}
		}
		switch {
		case e.cidr != cidr(m.name(cl)) || cl.agent.name == "":
			e.reason = "own network, named at the measurement"
		case cl.paths == nil || cl.paths.distinct() <= probePaths:
			e.reason = fmt.Sprintf("monitoring: says to be %s and asks for few URLs; %s", cl.agent.name, peak)
		default:
			e.doubtful = true
			e.reason = fmt.Sprintf("says to be %s but asks for %d URLs; %s", cl.agent.name, cl.paths.distinct(), peak)
		}
		if !slices.ContainsFunc(out, func(o exemption) bool { return o.cidr == e.cidr }) {
			out = append(out, e)
		}
	}
	return out
}

// cidr writes a client's name as a network.
func cidr(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return name + "/32"
}

// exemptText says what the policy does about the site's own programs.
func exemptText(list []exemption) (out []string) {
	let, doubtful := 0, 0
	for _, e := range list {
		switch {
		case e.doubtful:
			doubtful++
		case e.own:
			let++
		}
	}
	if let > 0 {
		out = append(out, fmt.Sprintf("Own networks and monitors that would have met a limit: %d. The policy exempts them: check that they are yours.", let))
	}
	if doubtful > 0 {
		out = append(out, fmt.Sprintf("Addresses that say to be monitors but ask for many URLs: %d. The limits hold for them; the policy names them in comments.", doubtful))
	}
	return out
}

func writeExemptions(b *strings.Builder, list []exemption) {
	head := false
	for _, e := range list {
		if !e.doubtful {
			if !head {
				b.WriteString("exempt:\n  networks:\n")
				head = true
			}
			fmt.Fprintf(b, "    - {cidr: %q, reason: %q}\n", e.cidr, e.reason)
		}
	}
	for _, e := range list {
		if e.doubtful {
			fmt.Fprintf(b, "# not exempt: %s %s\n", e.cidr, e.reason)
		}
	}
}
