package costmodel

import (
	"fmt"
	"strings"

	"github.com/shopspring/decimal"
)

// A Choice is the one recommended store.
type Choice struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Placement string `json:"placement,omitempty"` // the cheapest, when it was said where the site is
	Month     Money  `json:"month"`
	WithFree  Money  `json:"month_free"`
	Reason    string `json:"reason"`
}

// choose takes the cheapest store that can be had where the site is, whose price
// is known and that no hot key breaks. With equal bills the one that is cheaper
// without free quantities wins, then the order of offers.
func (r *Report) choose() {
	var best *Choice
	var passed []string // cheaper ones, and why they were not taken
	type loser struct {
		title, why string
		free       Money
	}
	var losers []loser
	for i := range r.Stores {
		s := &r.Stores[i]
		c := &Choice{ID: s.ID, Title: s.Title, Month: s.Month, WithFree: s.WithFree}
		if r.On != "" {
			p := r.cheapest(s)
			if p == nil {
				continue // not to be had there
			}
			c.Placement, c.Month, c.WithFree = p.Placement, p.Month, p.WithFree
		}
		switch {
		case s.ID == "memory":
			continue
		case len(s.Impossible) > 0:
			losers = append(losers, loser{s.Title, s.Impossible[0], c.WithFree})
		case s.Breaks():
			for _, w := range s.Hot {
				if w.Breaks {
					losers = append(losers, loser{s.Title, w.Text, c.WithFree})
					break
				}
			}
		case !c.Month.Known():
			losers = append(losers, loser{s.Title, "what runs Stile has no known price in this region", c.WithFree})
		case best == nil || c.WithFree.Less(best.WithFree) || c.WithFree.Equal(best.WithFree) && c.Month.Less(best.Month):
			best = c
		}
	}
	for _, l := range losers {
		if best == nil || l.free.Known() && l.free.Less(best.WithFree) {
			passed = append(passed, l.title+" ("+l.why+")")
		}
	}
	if best == nil {
		r.NoChoice = "no store can be had, priced and kept from breaking: " + strings.Join(passed, "; ")
		return
	}
	where := "the cheapest store at this volume"
	if best.Placement != "" {
		where += ", with " + best.Placement + " to run it"
	}
	best.Reason = fmt.Sprintf("%s: %s a month with free quantities, %s without", where, best.WithFree, best.Month)
	if len(passed) > 0 {
		best.Reason += "; cheaper and passed over: " + strings.Join(passed, "; ")
	}
	if len(r.Traffic.Keys) == 0 {
		best.Reason += "; the hottest key is unknown (--hot, --size-report), so nothing was held against stores with a ceiling for one record"
	}
	r.Choice = best
}

// cheapest returns a store's cheapest sum where the site is; nil if it cannot be
// had there.
func (r *Report) cheapest(s *StoreCost) *Placed {
	var best *Placed
	for i := range s.Placed {
		p := &s.Placed[i]
		for _, c := range r.Placements {
			if c.ID == p.Placement && c.Provider == r.On && (best == nil || p.WithFree.Less(best.WithFree)) {
				best = p
			}
		}
	}
	return best
}

// A Verdict weighs limiting against doing nothing.
type Verdict struct {
	PageCost Money  `json:"page_cost"`
	Now      Money  `json:"crawler_costs"`  // a month, without limits
	Limiting Money  `json:"limiting_costs"` // a month
	Answer   string `json:"answer"`         // "limit", "do nothing", "unknown"
	Text     string `json:"text"`
}

func (r *Report) judge() {
	v := &r.Verdict
	v.PageCost, v.Now, v.Limiting, v.Answer = r.in.PageCost, Unknown, Unknown, "unknown"
	if r.Choice != nil {
		v.Limiting = r.Choice.WithFree
	}
	if !r.in.CrawlerPages.IsNegative() {
		v.Now = r.in.PageCost.Times(r.in.CrawlerPages)
	}
	switch {
	case !v.PageCost.Known():
		v.Text = "whether limiting pays is unknown: say what a page costs (--page-cost, or --page-ms and --page-bytes)"
	case !v.Now.Known():
		v.Text = "whether limiting pays is unknown: say how many pages the limits would refuse (--crawler-pages, --size-report)"
	case !v.Limiting.Known():
		v.Text = "whether limiting pays is unknown: no store could be recommended"
	case v.Now.Less(v.Limiting) || v.Now.Amount().IsZero():
		v.Answer = "do nothing"
		v.Text = fmt.Sprintf("do nothing: the refused pages cost %s a month and limiting costs %s; filter the crawler out of the analytics instead", v.Now, v.Limiting)
	default:
		v.Answer = "limit"
		v.Text = fmt.Sprintf("limit: the refused pages cost %s a month and limiting costs %s", v.Now, v.Limiting)
	}
}

// A Winner is the cheapest offer over a range of volumes, without free quantities
// but for plans that are free as a whole.
type Winner struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	From  int64  `json:"from_navigations"` // of a month
}

// LowestVolume and HighestVolume bound break-evens and plots, in navigations a
// month.
const (
	LowestVolume  = 10_000
	HighestVolume = 10_000_000_000
)

// at returns the traffic of another volume: the same visitors, more or fewer.
func (t Traffic) at(n int64) Traffic {
	if t.Navigations > 0 {
		t.PeakPerSecond = t.PeakPerSecond.Mul(decimal.New(n, 0)).DivRound(decimal.New(t.Navigations, 0), 6)
	} else {
		t.PeakPerSecond = decimal.Zero
		t.Navigations = n
		t, _ = t.withDefaults() // the volume is within bounds, and the rest was checked
	}
	t.Navigations = n
	return t
}

// available lists the offers that a site can have where it is.
func (in *Input) available() (list []offer) {
	for _, o := range offers() {
		if o.shared && (in.On == "" || o.reach(in.On)) {
			list = append(list, o)
		}
	}
	return list
}

// winnerAt is the cheapest store's index at a volume; -1: none is possible.
func (in *Input) winnerAt(list []offer, n int64) int {
	t := in.Traffic.at(n)
	best, least := -1, Unknown
	for i := range list {
		s := in.storeCost(&list[i], &t)
		if len(s.Impossible) == 0 && !(list[i].wholeDatabase && s.Breaks()) && s.Month.Less(least) {
			best, least = i, s.Month
		}
	}
	return best
}

// winners finds where the cheapest store changes: by steps of a tenth of a decade,
// then by halving.
func (in *Input) winners() []Winner {
	list := in.available()
	var out []Winner
	last, from := -2, int64(LowestVolume)
	for n := float64(LowestVolume); n <= HighestVolume*1.001; n *= 1.2589254117941673 {
		at := int64(n + 0.5)
		for in.winnerAt(list, at) != last { // more than one may have won in between
			low, high := from, at
			for last != -2 && high-low > 1+high/10000 {
				if mid := low + (high-low)/2; in.winnerAt(list, mid) == last {
					low = mid
				} else {
					high = mid
				}
			}
			if last = in.winnerAt(list, high); last >= 0 {
				out = append(out, Winner{ID: list[last].id, Title: list[last].title, From: high})
			}
			from = high
		}
		from = at
	}
	return out
}
