package sizing

import (
	"cmp"
	"math"
	"slices"

	"github.com/stilehq/stile/core"
)

// A kind is what a visitor turned out to be.
type kind uint8

const (
	single  kind = iota // one page, or no sign either way
	engaged             // two or more pages, and behaving like a browser
	shared              // many people behind one address
	robotic             // pages without the behaviour of a browser
)

var kindNames = [...]string{"single", "engaged", "shared", "robotic"}

func (k kind) String() string { return kindNames[k] }

// facts are what the cells of a client say once the log is read.
type facts struct {
	kind       kind
	peakHour   int
	peakDay    int
	peakMinute int
	peakSlide  int     // the most that an hour's window held as it slid, by either way of counting
	burst      bool    // faster than anybody reads
	medianGap  float64 // seconds between pages; 0: fewer than two
	steady     bool    // gaps nearly equal: a timer, not a reader
	longDay    bool    // awake in eighteen or more hours of one day
	embedded   int64   // page-like requests that were parts of a page
	crawler    core.Crawler
}

// norms are what is usual on this site, so that no rule needs a number guessed
// in advance.
type norms struct {
	assetsLogged  bool // pages come with assets in this log
	refsLogged    bool // and with referrers of the site's own
	agentsLogged  bool
	assetsPerPage float64 // median over addresses that load assets at all
	embedded      int64
}

// finish turns cells into facts and sorts clients from heavy to light.
func (m *measurement) finish() {
	m.facts = make(map[*client]*facts, len(m.clients))
	for _, cl := range m.clients {
		f := &facts{}
		m.facts[cl] = f
		m.unfold(cl, f)
		m.norms.embedded += f.embedded
		if cl.key.group == crawlers {
			f.crawler = m.verify(cl)
		}
	}
	slices.SortFunc(m.clients, func(a, b *client) int {
		return cmp.Or(cmp.Compare(b.pages, a.pages), a.key.addr.Compare(b.key.addr), cmp.Compare(a.key.group, b.key.group))
	})
	m.findNorms()
	for _, cl := range m.clients {
		if cl.key.group == visitors {
			m.facts[cl].kind = m.judge(cl, m.facts[cl])
		}
	}
}

// unfold takes embedded parts out of the counts and derives peaks and spacing.
func (m *measurement) unfold(cl *client, f *facts) {
	slices.SortFunc(cl.hours, func(a, b hourCell) int { return cmp.Compare(a.hour, b.hour) })
	zone := collector{opts: m.opts}
	var gaps []int
	last := int64(-1)
	var slide slidingPeak
	hoursOfDay := map[int32]int{}
	for i := range cl.hours {
		h := &cl.hours[i]
		slices.SortFunc(h.hits, func(a, b hit) int { return cmp.Compare(a.sec, b.sec) })
		parts := embedded(h.hits)
		minute, inMinute := -1, 0
		for j, x := range h.hits {
			at := int64(h.hour)*3600 + int64(x.sec)
			if parts != nil && parts[j] {
				f.embedded++
				h.pages--
				cl.pages--
				cl.assets++
				cl.day(zone.day(at)).pages--
				continue
			}
			if k := int(x.sec / 60); k != minute {
				minute, inMinute = k, 0
			}
			slide.add(at)
			inMinute++
			f.peakMinute = max(f.peakMinute, inMinute)
			if last >= 0 && at-last < 7200 {
				gaps = append(gaps, int(at-last))
			}
			last = at
		}
		f.peakHour = max(f.peakHour, int(h.pages))
		if h.pages > 0 {
			hoursOfDay[zone.day(int64(h.hour)*3600)]++
		}
	}
	for _, d := range cl.days {
		f.peakDay = max(f.peakDay, int(d.pages))
	}
	for _, n := range hoursOfDay {
		f.longDay = f.longDay || n >= 18
	}
	f.peakSlide = max(f.peakHour, slide.peak)
	f.peakMinute = max(f.peakMinute, int(cl.sampled)) // the hit log's sampling writes a line a minute at least
	f.burst = f.peakMinute >= burstMinute
	if len(gaps) > 0 {
		slices.Sort(gaps)
		f.medianGap = float64(gaps[len(gaps)/2])
		f.burst = f.burst || len(gaps) >= burstGaps && f.medianGap < 1
		if n := len(gaps); n >= 12 {
			spread := float64(gaps[n*3/4] - gaps[n/4])
			f.steady = f.medianGap >= 5 && spread < 0.25*f.medianGap
		}
	}
}

const (
	burstMinute = 30 // pages in a minute that no person opens
	// With fewer gaps, two tabs opened at once or a redirect would make a program
	// of a person.
	burstGaps = 5
)

// A slidingPeak is the most pages that an hour's window held at any page, over the
// exact hour before it and as the sliding-window counter estimates it: a visit
// that straddles the full hour is in neither of its address-hours as a whole.
type slidingPeak struct {
	peak       int
	recent     []int64 // pages of the hour before, oldest first
	hour       int64
	this, prev int
}

func (s *slidingPeak) add(at int64) {
	for len(s.recent) > 0 && s.recent[0] <= at-3600 {
		s.recent = s.recent[1:]
	}
	s.recent = append(s.recent, at)
	if h := at / 3600; h != s.hour {
		s.prev = s.this
		if h != s.hour+1 {
			s.prev = 0
		}
		s.hour, s.this = h, 0
	}
	s.this++
	left := float64(3600-at%3600) / 3600
	s.peak = max(s.peak, len(s.recent), int(math.Ceil(float64(s.prev)*left))+s.this)
}

// embedded finds page-like requests that a page itself made: three or more that
// name one page as referrer and follow it within two seconds. A person cannot
// follow three links of a page in that time. Lines with request headers never
// come here, since core tells an image from a page by them.
func embedded(hits []hit) []bool {
	var parts []bool
	for i := range hits {
		n := 0
		for j := i + 1; j < len(hits) && hits[j].sec <= hits[i].sec+2; j++ {
			if hits[j].ref == hits[i].path && hits[j].path != hits[i].path {
				n++
			}
		}
		// In the same second the order is not known: look back as well.
		for j := i - 1; j >= 0 && hits[j].sec == hits[i].sec; j-- {
			if hits[j].ref == hits[i].path && hits[j].path != hits[i].path {
				n++
			}
		}
		if n < 3 {
			continue
		}
		if parts == nil {
			parts = make([]bool, len(hits))
		}
		for j := range hits {
			if d := int(hits[j].sec) - int(hits[i].sec); d >= 0 && d <= 2 && hits[j].ref == hits[i].path && hits[j].path != hits[i].path {
				parts[j] = true
			}
		}
	}
	return parts
}

func (m *measurement) findNorms() {
	var ratios []float64
	var pages, inside, browsers int64
	withAssets := 0
	for _, cl := range m.clients {
		if cl.key.group != visitors || cl.pages == 0 {
			continue
		}
		pages += cl.pages
		inside += cl.inside
		browsers += cl.browser
		if cl.assets > 0 {
			withAssets++
			ratios = append(ratios, float64(cl.assets)/float64(cl.pages))
		}
	}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		m.norms.assetsPerPage = ratios[len(ratios)/2]
	}
	m.norms.assetsLogged = m.traffic.assets > 0 && withAssets >= 1 && m.norms.assetsPerPage >= 0.2
	m.norms.refsLogged = pages > 0 && inside*50 > pages
	m.norms.agentsLogged = browsers > 0
}

// like reports whether the pages were loaded as a browser loads them: with the
// things that pages are made of, or from one another.
func (n *norms) like(cl *client) bool {
	if !n.loads(cl) {
		return false
	}
	if !n.assetsLogged || !n.refsLogged || cl.pages < 20 {
		return true
	}
	// Twenty pages of one person are reached from one another for some part, or
	// come with as many assets as other people's. An asset fetched now and then
	// is a cheap disguise.
	pages := float64(cl.pages)
	return float64(cl.inside) >= 0.1*pages || float64(cl.assets) >= 0.5*n.assetsPerPage*pages
}

// loads is the weaker half of like, enough where many agents share an address: a
// reader's later pages come with few new assets, since the browser keeps what it
// has, so a tenth of the usual ratio will do.
func (n *norms) loads(cl *client) bool {
	pages := float64(max(cl.pages, 1))
	if n.agentsLogged && float64(cl.browser) < 0.5*pages || cl.fails() {
		return false
	}
	switch {
	case n.assetsLogged:
		ratio := float64(cl.assets) / pages
		return ratio >= 0.1*n.assetsPerPage && ratio >= 0.1
	case n.refsLogged:
		return cl.inside > 0 && float64(cl.inside) >= 0.15*pages
	}
	return true
}

// fails reports whether most pages that a client asks for do not exist: links do
// not lead there, guesses do.
func (cl *client) fails() bool { return 2*cl.errors > cl.pages }

// sharedFrom is the number of agents from which an address is held to be many
// people: a household has fewer, and one person's browser updates less often.
const sharedFrom = 6

func (m *measurement) judge(cl *client, f *facts) kind {
	like := m.norms.like(cl)
	switch {
	case cl.pages == 0:
		return single
	case m.manyPeople(cl):
		return shared
	case cl.pages < 2:
		return single
	case !like, f.steady, f.longDay, f.burst:
		return robotic
	}
	return engaged
}

// manyPeople demands that most agents at the address behaved like a browser each
// for itself. An exception will be made for such an address, so a program that
// rotates its User-Agent must not pass for a school.
func (m *measurement) manyPeople(cl *client) bool {
	if len(cl.agents) < sharedFrom || !m.hasEvidence() || !m.norms.loads(cl) {
		return false
	}
	if !m.norms.assetsLogged {
		return cl.pages >= sharedFrom
	}
	readers, whole := 0, 0
	for _, a := range cl.agents {
		if a.pages > 0 {
			readers++
			if a.assets > 0 {
				whole++
			}
		}
	}
	return whole >= sharedFrom && 2*whole >= readers
}

// hasEvidence reports whether the log can tell browsers from programs at all.
func (m *measurement) hasEvidence() bool { return m.norms.assetsLogged || m.norms.refsLogged }
