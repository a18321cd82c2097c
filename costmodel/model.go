package costmodel

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

// Input is everything that a report is made from. Book is required.
type Input struct {
	Book         *Book
	Measurements []*Measurement
	Traffic      Traffic
	Assumptions  Assumptions

	On        string // GCP, AWS or Own: where the site is; "" = not said, so stores are compared without what runs Stile
	GCPRegion string // "" = us-central1
	AWSRegion string // "" = us-east-1

	PageCost     Money           // of a page that the origin makes; Unknown is usual
	CrawlerPages decimal.Decimal // a month's pages that the limits would refuse; negative = unknown
	Now          time.Time       // for the age of figures

	withoutWinners bool // they take the most time
}

// A Report is what stores cost, and what to take.
type Report struct {
	Date        string           `json:"date"`
	On          string           `json:"on"`
	GCPRegion   string           `json:"gcp_region"`
	AWSRegion   string           `json:"aws_region"`
	Traffic     Traffic          `json:"traffic"`
	Assumptions Assumptions      `json:"assumptions"`
	Measured    []*Measurement   `json:"measured"`
	Stores      []StoreCost      `json:"stores"`
	Placements  []PlacementCost  `json:"placements"`
	Choice      *Choice          `json:"recommended"` // nil: no store can be recommended
	NoChoice    string           `json:"not_recommended_because,omitempty"`
	Winners     []Winner         `json:"cheapest_by_volume"` // without free quantities
	Verdict     Verdict          `json:"verdict"`
	Instead     []AlternativeFor `json:"alternatives"`
	Figures     []*Figure        `json:"-"` // that were used

	in Input
}

// A StoreCost is one way of paying for one store.
type StoreCost struct {
	ID         string       `json:"id"`
	Title      string       `json:"title"`
	Store      string       `json:"store"`
	Provider   string       `json:"provider"`
	Region     string       `json:"region"`
	Note       string       `json:"note,omitempty"`
	Operations string       `json:"operations_per_navigation"`
	Lines      []Line       `json:"lines"`
	Month      Money        `json:"month"`
	WithFree   Money        `json:"month_free"`
	PerMillion Money        `json:"per_million"` // at this volume, without free quantities
	Dominates  string       `json:"dominates"`
	Impossible []string     `json:"impossible,omitempty"` // why it cannot be taken
	Hot        []Warning    `json:"hot_keys,omitempty"`
	Measured   *Measurement `json:"-"`
	Placed     []Placed     `json:"placed,omitempty"`
	Weakest    Confidence   `json:"confidence"`    // of its figures
	Old        bool         `json:"old,omitempty"` // one of its prices is older than StaleAfter
}

// Breaks reports whether a hot key is more than the store takes.
func (s *StoreCost) Breaks() bool {
	return slices.ContainsFunc(s.Hot, func(w Warning) bool { return w.Breaks })
}

// Placed is a store together with a placement.
type Placed struct {
	Placement  string `json:"placement"`
	Month      Money  `json:"month"`
	WithFree   Money  `json:"month_free"`
	PerMillion Money  `json:"per_million"`
	Dominates  string `json:"dominates"`
}

// A PlacementCost is what runs Stile, without the store.
type PlacementCost struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	Provider   string `json:"provider"`
	Lines      []Line `json:"lines"`
	Month      Money  `json:"month"`
	WithFree   Money  `json:"month_free"`
	PerMillion Money  `json:"per_million"`
	Dominates  string `json:"dominates"`
	Old        bool   `json:"old,omitempty"` // one of its prices is older than StaleAfter
}

// An AlternativeFor is what something else would cost this site.
type AlternativeFor struct {
	Alternative
	Month Money `json:"month"`
}

// Estimate reckons a report. The error is about inputs that cannot be; what is
// merely unknown is in the report as such.
func Estimate(in Input) (*Report, error) {
	t, err := in.Traffic.withDefaults()
	if err != nil {
		return nil, err
	}
	if in.Book == nil {
		return nil, errors.New("costmodel: no prices")
	}
	if in.On != "" && in.On != GCP && in.On != AWS && in.On != Own {
		return nil, fmt.Errorf("costmodel: on %q: want gcp, aws or own", in.On)
	}
	in.Traffic, in.Assumptions = t, in.Assumptions.withDefaults()
	if in.GCPRegion == "" {
		in.GCPRegion = "us-central1"
	}
	if in.AWSRegion == "" {
		in.AWSRegion = "us-east-1"
	}
	r := &Report{
		Date: in.Now.Format(time.DateOnly), On: in.On, GCPRegion: in.GCPRegion, AWSRegion: in.AWSRegion,
		Traffic: t, Assumptions: in.Assumptions, Measured: in.Measurements, in: in,
	}
	r.place()
	for _, o := range offers() {
		r.Stores = append(r.Stores, in.storeCost(&o, &in.Traffic))
	}
	for i := range r.Stores {
		r.put(&r.Stores[i])
	}
	r.choose()
	if !in.withoutWinners {
		r.Winners = in.winners()
	}
	r.judge()
	requests := decimal.New(t.Navigations*in.Assumptions.Requests, 0)
	for _, a := range in.Book.Alternatives {
		month := a.Fixed.money().Plus(a.PerMillion.money().Times(requests.DivRound(million, 9)))
		r.Instead = append(r.Instead, AlternativeFor{a, month})
	}
	r.Figures = r.used()
	return r, nil
}

func (in *Input) region(provider string) string {
	switch provider {
	case GCP:
		return in.GCPRegion
	case AWS:
		return in.AWSRegion
	}
	return anywhere
}

func (in *Input) measurement(store string) *Measurement {
	for _, m := range in.Measurements {
		if m.Store == store {
			return m
		}
	}
	return nil
}

// storeCost reckons one offer at a traffic.
func (in *Input) storeCost(o *offer, t *Traffic) StoreCost {
	s := StoreCost{ID: o.id, Title: o.title, Store: o.store, Provider: o.provider, Region: in.region(o.provider), Note: o.note, Measured: in.measurement(o.store), Operations: "unknown", Month: Unknown, WithFree: Unknown, PerMillion: Unknown}
	if !o.shared {
		s.Impossible = append(s.Impossible, "instances do not see one another's counts")
	}
	if s.Measured == nil {
		s.Impossible = append(s.Impossible, "no bench result: run stile bench on it")
		return s
	}
	q, err := s.Measured.Quantities(*t)
	if err != nil {
		s.Impossible = append(s.Impossible, err.Error())
		return s
	}
	b := &bill{book: in.Book, provider: o.provider, region: s.Region}
	if why := o.bill(b, &q, t); why != "" {
		s.Impossible = append(s.Impossible, why)
	}
	s.Lines = b.lines
	s.Month, s.WithFree = total(b.lines)
	s.PerMillion = perMillion(s.Month, t)
	s.Dominates = dominates(b.lines)
	s.Operations = perNavigation(&q, t).Round(3).String()
	s.Hot = o.heat(b, &q, t, &in.Assumptions)
	s.Weakest, s.Old = weakest(b.lines), old(b.lines, in.Now)
	if !s.Month.Known() {
		s.Impossible = append(s.Impossible, "a price or a quantity is unknown")
	}
	return s
}

func perMillion(m Money, t *Traffic) Money {
	return m.Times(million).Per(decimal.New(t.Navigations, 0))
}

// dominates names the largest line of a bill.
func dominates(lines []Line) string {
	best := -1
	for i, l := range lines {
		if !l.Month.Known() {
			return l.What + " (unknown)"
		}
		if best < 0 || lines[best].Month.Less(l.Month) {
			best = i
		}
	}
	if best < 0 || lines[best].Month.Amount().IsZero() {
		return "nothing"
	}
	return lines[best].What
}

// weakest returns the confidence of the least certain figure of a bill.
func weakest(lines []Line) Confidence {
	worst := Read
	for _, l := range lines {
		switch {
		case l.Figure == nil:
		case l.Figure.Confidence == Memory:
			return Memory
		case l.Figure.Confidence == Derived:
			worst = Derived
		}
	}
	return worst
}

// old reports whether a bill rests on a figure that is old.
func old(lines []Line, now time.Time) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.Figure != nil && l.Figure.Stale(now) })
}

// place reckons the placements.
func (r *Report) place() {
	calls := decimal.New(r.Traffic.Navigations, 0).Mul(decimal.New(r.Assumptions.Requests, 0))
	for _, p := range placements() {
		b := &bill{book: r.in.Book, provider: p.provider, region: r.in.region(p.provider)}
		p.bill(b, calls, &r.Assumptions)
		c := PlacementCost{ID: p.id, Title: p.title, Provider: p.provider, Lines: b.lines, Dominates: dominates(b.lines), Old: old(b.lines, r.in.Now)}
		c.Month, c.WithFree = total(b.lines)
		c.PerMillion = perMillion(c.Month, &r.Traffic)
		r.Placements = append(r.Placements, c)
	}
}

// put adds a store's sums with each placement from which it can be reached. A store
// outside the provider's network is paid for in egress too.
func (r *Report) put(s *StoreCost) {
	for _, p := range r.Placements {
		if s.Provider != p.Provider && s.Provider != anywhere {
			continue
		}
		lines := slices.Concat(s.Lines, p.Lines)
		if s.Provider == anywhere && p.Provider != Own {
			b := &bill{book: r.in.Book, provider: p.Provider, region: r.in.region(p.Provider)}
			if q, err := r.quantities(s); err != nil || !q.BytesKnown {
				b.unknown("egress to the store")
			} else {
				unit := gigabyte
				if p.Provider == GCP {
					unit = gibibyte
				}
				b.add("egress to the store", p.Provider+".egress", q.BytesOut.DivRound(unit, 9))
			}
			lines = append(lines, b.lines...)
		}
		c := Placed{Placement: p.ID, Dominates: dominates(lines)}
		if s.Month.Known() {
			c.Month, c.WithFree = total(lines)
		} else {
			c.Month, c.WithFree = Unknown, Unknown
		}
		c.PerMillion = perMillion(c.Month, &r.Traffic)
		s.Placed = append(s.Placed, c)
	}
}

func (r *Report) quantities(s *StoreCost) (Quantity, error) {
	if s.Measured == nil {
		return Quantity{}, ErrUnmeasured
	}
	return s.Measured.Quantities(r.Traffic)
}

// used lists the figures of all lines, each once.
func (r *Report) used() []*Figure {
	seen := map[*Figure]bool{}
	var out []*Figure
	note := func(lines []Line) {
		for _, l := range lines {
			if l.Figure != nil && !seen[l.Figure] {
				seen[l.Figure] = true
				out = append(out, l.Figure)
			}
		}
	}
	for _, s := range r.Stores {
		note(s.Lines)
	}
	for _, p := range r.Placements {
		note(p.Lines)
	}
	slices.SortFunc(out, func(a, b *Figure) int { return compare(a.ID+" "+a.Region, b.ID+" "+b.Region) })
	return out
}
