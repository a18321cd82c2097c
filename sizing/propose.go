package sizing

import (
	"fmt"
	"math"
)

// A Finding is the outcome of a proposal.
type Finding string

// The findings. Only Limits comes with a policy.
const (
	Limits        Finding = "limits"          // a gap between people and abusers, or no abuser
	NoPages       Finding = "no-pages"        // nothing in the log is a page
	OneProxy      Finding = "one-proxy"       // the addresses are those of a proxy
	Distributed   Finding = "distributed"     // a crawl over so many addresses that none stands out
	TooLittleData Finding = "too-little-data" // no p99.9
	NoGap         Finding = "no-gap"          // people load as much as the abuser
)

// A Proposal is a pair of limits, or the plain statement that there is none.
type Proposal struct {
	Finding Finding  `json:"finding"`
	Hour    int      `json:"hour,omitempty"`
	Day     int      `json:"day,omitempty"`
	Text    []string `json:"text"`             // for people
	Policy  string   `json:"policy,omitempty"` // a policy file
	Effect  Effect   `json:"effect"`
	// AbuserHour and AbuserDay are the volume of the lightest abuser that the
	// limits reach, as written beside them in the policy.
	AbuserHour int `json:"abuser_per_hour,omitempty"`
	AbuserDay  int `json:"abuser_per_day,omitempty"`

	exempt []exemption
}

// Effect estimates, from the hourly counts, what the limits would do; a replay
// tells exactly.
type Effect struct {
	EngagedCut    int     `json:"engaged_addresses_cut"`
	EngagedShare  float64 `json:"engaged_pages_cut_share"`
	SharedCut     int     `json:"shared_addresses_cut"`
	RoboticCut    int     `json:"robotic_addresses_cut"`
	RoboticShare  float64 `json:"robotic_pages_cut_share"`
	RoboticPages  int64   `json:"robotic_pages"`
	RoboticOfAll  float64 `json:"robotic_share_of_pages"`
	LargestShare  float64 `json:"largest_address_share"`
	LargestAgents int     `json:"largest_address_user_agents"`
}

const (
	// quantileNeeds is how many address-days a p99.9 takes: with fewer, it is the
	// largest value by definition and says nothing about the next visitor.
	quantileNeeds = 1000
	// An address is a proxy when it carries this share of all pages, with more
	// agents than one developer's machine has.
	proxyShare  = 0.9
	proxyAgents = 10
	proxyPages  = 50
	// An engaged visitor beyond so many times the p99.9 sets no limit: a program
	// that passes for a person would set its own.
	outlier = 5
)

func (m *measurement) propose(r *Report) Proposal {
	p := Proposal{}
	top, total := m.largest()
	if total == 0 {
		p.Finding = NoPages
		p.Text = []string{"No visitor in this log loads anything that is a page by the policy's rule, so there is nothing to limit."}
		return p
	}
	p.Effect.LargestShare = float64(top.pages) / float64(total)
	p.Effect.LargestAgents = len(top.agents)
	m.roboticShare(&p.Effect, total)
	if p.Effect.LargestShare >= proxyShare && len(top.agents) >= proxyAgents && total >= proxyPages && !top.fails() {
		p.Finding = OneProxy
		p.Text = []string{
			fmt.Sprintf("This is your proxy: %s carries %.1f %% of all pages with %d User-Agents.", m.name(top), 100*p.Effect.LargestShare, len(top.agents)),
			"A limit by address would be one limit for everybody. Log the visitor's address (nginx: real_ip_header, Apache: mod_remoteip), or name the right one with the client option, and measure again.",
		}
		return p
	}
	h := &r.Humans
	lightest := m.lightestAbuser(r, h.PerDay.P999)
	if lightest != nil {
		p.AbuserHour, p.AbuserDay = lightest.PeakHour, lightest.PeakDay
	}
	p.Day = limitAbove(max(h.PerDay.P999, 10), h.PerDay.Max, p.AbuserDay)
	// An abuser whom the hour would not reach anyway bounds the day only.
	abuserHour := p.AbuserHour
	if abuserHour <= niceAbove(max(h.PerHour.P999, 4)) {
		abuserHour = 0
	}
	p.Hour = min(limitAbove(max(h.PerHour.P999, 4), m.engagedSlide(), abuserHour), p.Day)
	m.effect(&p.Effect, p.Hour, p.Day)
	r.Networks = m.networks(p.Day)

	spread := p.Effect.RoboticPages >= 300 && p.Effect.RoboticShare < 0.1 && m.spread(&p.Effect)
	switch {
	case spread:
		p.Finding = Distributed
		p.Text = m.distributedText(&p, r)
	case h.PerDay.Count < quantileNeeds:
		p.Finding = TooLittleData
		p.Text = []string{
			fmt.Sprintf("Too little data for a p99.9: %d address-days of engaged visitors, and it takes at least %d. At this rate that is %s.", h.PerDay.Count, quantileNeeds, m.wait(h.PerDay.Count)),
			fmt.Sprintf("What was seen so far: at most %d pages in an hour and %d in a day by one engaged address.", h.PerHour.Max, h.PerDay.Max),
		}
	case lightest == nil && len(r.Abusers) > 0 && p.Effect.RoboticShare < 0.1 && m.abuserBelow(r, h.PerDay.P999):
		p.Finding = NoGap
		p.Text = []string{
			fmt.Sprintf("No limit by address parts them: one engaged visitor in a thousand loads more than %d pages a day, and the abuser stays at %d.", h.PerDay.P999, r.Abusers[0].PeakDay),
			"Key on something else: a signed cookie, the network, or the pages that it is after.",
		}
	default:
		p.Finding = Limits
		p.exempt = append(m.sharedExemptions(&p, r), m.ownExemptions(&p)...)
		p.Text = m.limitsText(&p, r)
	}
	if p.Finding != Limits {
		p.Hour, p.Day = 0, 0
		return p
	}
	p.Policy = policyFile(&p, r)
	return p
}

// largest returns the visitor with the most pages, and all visitors' pages.
func (m *measurement) largest() (top *client, total int64) {
	for _, cl := range m.clients {
		if cl.key.group != visitors {
			continue
		}
		total += cl.pages
		if top == nil || cl.pages > top.pages {
			top = cl
		}
	}
	return top, total
}

func (m *measurement) roboticShare(e *Effect, total int64) {
	for _, cl := range m.clients {
		if m.unwanted(cl) {
			e.RoboticPages += cl.pages
		}
	}
	e.RoboticOfAll = float64(e.RoboticPages) / float64(max(total, 1))
}

// unwanted are the pages that a limit is for: of visitors that behave like no
// browser, single page views without any asset included, since a crawl over many
// addresses is made of them.
func (m *measurement) unwanted(cl *client) bool {
	f := m.facts[cl]
	if cl.key.group == crawlers {
		return m.opts.Crawlers != nil && !f.crawler.Verified
	}
	if cl.key.group != visitors || cl.pages == 0 {
		return false
	}
	return f.kind == robotic || f.kind == single && m.norms.assetsLogged && cl.assets == 0
}

// lightestAbuser is the one with the smallest daily volume that still lies above
// what people do.
func (m *measurement) lightestAbuser(r *Report, p999 int) *Heavy {
	var least *Heavy
	for i := range r.Abusers {
		a := &r.Abusers[i]
		// Twice what one visitor in a thousand does: below that, abusers and
		// people are the same to a counter, and chasing them costs people.
		if a.PeakDay > 2*p999 && (least == nil || a.PeakDay < least.PeakDay) {
			least = a
		}
	}
	return least
}

// spread reports whether robotic pages that no address limit reaches are a crawl,
// not the usual noise of many small robots: most pages of the site over very many
// addresses, or a burst in which an hour holds several times what people load.
func (m *measurement) spread(e *Effect) bool {
	addresses := 0
	people, robots := map[int32]int64{}, map[int32]int64{}
	for _, cl := range m.clients {
		by := people
		switch {
		case m.unwanted(cl):
			addresses++
			by = robots
		case cl.key.group != visitors:
			continue
		}
		for _, h := range cl.hours {
			by[h.hour] += int64(h.pages)
		}
	}
	if e.RoboticOfAll >= 0.6 && addresses >= 2000 {
		return true
	}
	for h, n := range robots {
		if n >= 300 && n >= 3*people[h] && addresses >= 300 {
			return true
		}
	}
	return false
}

func (m *measurement) abuserBelow(r *Report, p999 int) bool {
	for _, a := range r.Abusers {
		if a.PeakDay > p999 {
			return false
		}
	}
	return true
}

// niceAbove leaves half as much again above a quantile.
func niceAbove(n int) int { return nice((3*n + 1) / 2) }

// nice rounds up to a number that people remember.
func nice(n int) int {
	step := 1
	switch {
	case n > 200:
		step = 50
	case n > 50:
		step = 10
	case n > 20:
		step = 5
	}
	return (n + step - 1) / step * step
}

// limitAbove is a limit for people of whom one in a thousand loads more than p999
// and nobody more than most: above most if that leaves it below the abuser (0:
// none), else above the p99.9 alone.
func limitAbove(p999, most, abuser int) int {
	if most > outlier*p999 {
		most = p999
	}
	limit := max(niceAbove(p999), nice(most))
	switch {
	case abuser == 0 || limit < abuser:
		return limit
	case most+1 < abuser:
		return between(most, abuser)
	case niceAbove(p999) < abuser:
		return niceAbove(p999)
	}
	return between(p999, abuser)
}

// engagedSlide is the most that a sliding hour of an engaged visitor held.
func (m *measurement) engagedSlide() int {
	most := 0
	for _, cl := range m.clients {
		if f := m.facts[cl]; cl.key.group == visitors && f.kind == engaged {
			most = max(most, f.peakSlide)
		}
	}
	return most
}

// between is the geometric middle of people and abuser.
func between(people, abuser int) int {
	m := int(math.Sqrt(float64(max(people, 1)) * float64(abuser)))
	return max(people+1, min(m, abuser-1))
}

// effect plays both limits over the hourly counts.
func (m *measurement) effect(e *Effect, hour, day int) {
	var engagedPages, engagedCut, roboticCut int64
	zone := collector{opts: m.opts}
	for _, cl := range m.clients {
		f := m.facts[cl]
		bad := m.unwanted(cl)
		if cl.key.group != visitors && !bad {
			continue
		}
		passed := map[int32]int{}
		cut := int64(0)
		for _, h := range cl.hours {
			d := zone.day(int64(h.hour) * 3600)
			n := min(int(h.pages), hour, day-passed[d])
			passed[d] += n
			cut += int64(h.pages) - int64(n)
		}
		switch {
		case bad:
			roboticCut += cut
			if cut > 0 {
				e.RoboticCut++
			}
		case f.kind == shared && cut > 0:
			e.SharedCut++
		case f.kind == engaged:
			engagedPages += cl.pages
			engagedCut += cut
			if cut > 0 {
				e.EngagedCut++
			}
		}
	}
	e.EngagedShare = float64(engagedCut) / float64(max(engagedPages, 1))
	e.RoboticShare = float64(roboticCut) / float64(max(e.RoboticPages, 1))
}

func (m *measurement) days() float64 {
	return max(float64(m.traffic.to-m.traffic.from)/86400, 1.0/24)
}

// wait says how long a log must run for enough address-days.
func (m *measurement) wait(have int64) string {
	if have == 0 {
		return "not to be said: there were none"
	}
	d := math.Ceil(float64(quantileNeeds) / float64(have) * m.days())
	return fmt.Sprintf("about %.0f days of log", d)
}
