package sizing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	listed    = 20 // addresses shown of each sort
	timelines = 8  // with a timeline by hour
)

// heavies lists shared addresses and abusers. An abuser is robotic and loads
// more in a day or an hour than nearly every engaged visitor ever did.
func (m *measurement) heavies(r *Report) {
	hour, day := r.Humans.PerHour.P999, r.Humans.PerDay.P999
	alone := r.Humans.PerDay.Count < 20 // nobody to compare with
	if alone {
		hour, day = 60, 100
	}
	for _, cl := range m.clients {
		f := m.facts[cl]
		switch {
		case cl.key.group == crawlers && m.opts.Crawlers != nil && !f.crawler.Verified && f.peakDay > day:
			r.Abusers = append(r.Abusers, m.heavy(cl, f, "claims to be "+cl.agent.name+" and is not proven to be"))
		case cl.key.group != visitors:
		case f.kind == shared && cl.pages > int64(max(day, 2*sharedFrom)):
			r.Shared = append(r.Shared, m.heavy(cl, f, m.sharedVerdict(cl)))
		case f.kind == robotic && (f.peakDay > day || f.peakHour > hour || alone && cl.pages >= proxyPages && cl.fails()):
			r.Abusers = append(r.Abusers, m.heavy(cl, f, m.abuserVerdict(cl, f)))
		}
	}
	slices.SortStableFunc(r.Abusers, func(a, b Heavy) int { return cmp.Compare(b.Pages, a.Pages) })
	r.Shared = r.Shared[:min(len(r.Shared), listed)]
	r.Abusers = r.Abusers[:min(len(r.Abusers), listed)]
	for i := range r.Abusers {
		if i >= timelines {
			r.Abusers[i].Days = nil
		}
	}
}

func (m *measurement) heavy(cl *client, f *facts, verdict string) Heavy {
	pages := float64(max(cl.pages, 1))
	h := Heavy{
		Address: m.name(cl), Agent: cl.agent.text, Agents: len(cl.agents), Pages: cl.pages,
		PeakHour: f.peakHour, PeakDay: f.peakDay, PeakMinute: f.peakMinute, MedianGap: f.medianGap,
		AssetsPerPage: float64(cl.assets) / pages, Inside: float64(cl.inside) / pages, Errors: float64(cl.errors) / pages,
		Bytes: cl.bytes, ASN: cl.asn, First: time.Unix(cl.first, 0).UTC(), Last: time.Unix(cl.last, 0).UTC(), Verdict: verdict,
	}
	if cl.key.group == crawlers {
		h.Claim = cl.agent.name
	}
	if s := cl.paths; s != nil {
		h.Distinct = s.distinct()
		slices.SortFunc(s.patterns, func(a, b patternCount) int {
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.pattern, b.pattern))
		})
		for _, p := range s.patterns[:min(len(s.patterns), 5)] {
			h.Patterns = append(h.Patterns, Pattern{p.pattern, p.count, p.example})
		}
		// Ever-new URLs of one pattern, by one program (many readers of a large site
		// look the same): the estimate is good to some three per cent.
		h.Infinite = f.kind != shared && s.total >= 100 && float64(h.Distinct) > 0.85*float64(s.total) && float64(h.Patterns[0].Pages) > 0.6*float64(s.total)
	}
	for _, c := range cl.hours {
		if c.pages > 0 {
			h.Days = append(h.Days, Point{int64(c.hour) * 3600, int(c.pages)})
		}
	}
	return h
}

// name writes a client as the log's reader knows it.
func (m *measurement) name(cl *client) string {
	a := cl.key.addr
	switch {
	case isOpaque(a):
		return fmt.Sprintf("name-or-digest-%x", a.AsSlice()[1:8])
	case a.Is4():
		return a.String()
	}
	return fmt.Sprintf("%s/%d", a, m.opts.prefix())
}

func (m *measurement) sharedVerdict(cl *client) string {
	per := float64(cl.pages) / float64(max(len(cl.agents), 1))
	how := fmt.Sprintf("%.1f assets a page", float64(cl.assets)/float64(max(cl.pages, 1)))
	if !m.norms.assetsLogged {
		how = fmt.Sprintf("%.0f %% of pages reached from the site itself", 100*float64(cl.inside)/float64(max(cl.pages, 1)))
	}
	return fmt.Sprintf("shared address: %d browsers, %.1f pages each, %s", len(cl.agents), per, how)
}

func (m *measurement) abuserVerdict(cl *client, f *facts) string {
	pages := float64(max(cl.pages, 1))
	var why string
	switch {
	case cl.fails():
		why = fmt.Sprintf("scanner: %.0f %% of its pages do not exist", 100*float64(cl.errors)/pages)
	case len(cl.agents) >= sharedFrom:
		return fmt.Sprintf("one program with %d User-Agents: %.2f assets a page where browsers here load %.1f", len(cl.agents), float64(cl.assets)/pages, m.norms.assetsPerPage)
	case float64(cl.browser) < 0.5*pages:
		why = "a program, and does not hide it"
	case m.norms.assetsLogged && float64(cl.assets) < 0.1*m.norms.assetsPerPage*pages:
		why = fmt.Sprintf("a browser's name, but %.2f assets a page where browsers here load %.1f", float64(cl.assets)/pages, m.norms.assetsPerPage)
	case f.burst:
		why = fmt.Sprintf("%d pages in its fullest minute, %.0f seconds between pages by the median: nobody reads so fast", f.peakMinute, f.medianGap)
	case f.steady:
		why = fmt.Sprintf("a page every %.0f seconds, like a clock", f.medianGap)
	case f.longDay:
		why = "awake around the clock"
	default:
		why = "pages that no page of the site led to"
	}
	if len(cl.agents) >= sharedFrom {
		why += fmt.Sprintf("; %d User-Agents", len(cl.agents))
	}
	if f.steady && f.medianGap > 0 && why[0] != 'a' {
		why += fmt.Sprintf("; one every %.0f seconds", f.medianGap)
	}
	return why
}

// robots sums declared robots by name.
func (m *measurement) robots() []Robot {
	byName := map[string]*Robot{}
	for _, cl := range m.clients {
		if cl.key.group == visitors {
			continue
		}
		name := cl.agent.name
		if name == "" {
			name = "own monitoring"
		}
		b := byName[name]
		if b == nil {
			b = &Robot{Name: name, Group: cl.key.group.String(), Asked: m.opts.Crawlers != nil}
			byName[name] = b
		}
		f := m.facts[cl]
		b.Addresses++
		b.Pages += cl.pages
		b.PeakHour = max(b.PeakHour, f.peakHour)
		if cl.key.group == crawlers && b.Asked {
			if f.crawler.Verified {
				b.Verified += cl.pages
			} else {
				b.Refuted += cl.pages
			}
		}
	}
	out := make([]Robot, 0, len(byName))
	for _, b := range byName {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b Robot) int { return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Name, b.Name)) })
	return out
}
