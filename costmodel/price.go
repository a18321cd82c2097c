package costmodel

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"time"

	"github.com/shopspring/decimal"
	"go.yaml.in/yaml/v3"
)

//go:embed prices/*.yaml
var shipped embed.FS

// Days and Hours of a month, as the providers reckon: a twelfth of a year.
var (
	Days  = decimal.New(365, 0).DivRound(decimal.New(12, 0), 10)
	Hours = decimal.New(730, 0)
)

// StaleAfter is the age from which a figure is shown as old.
const StaleAfter = 180 * 24 * time.Hour

// A Confidence says how a figure was come by.
type Confidence string

// The confidences.
const (
	Read    Confidence = "read"    // in the source named
	Derived Confidence = "derived" // reckoned from figures that were read
	Memory  Confidence = "memory"  // from somebody's memory: check before you rely on it
)

// A Figure is one price or one limit with where it comes from.
type Figure struct {
	ID         string
	Unit       string
	Region     string // a region, "gcp" (all of one provider's) or "any"
	Known      bool   // false: the file says unknown
	Tiers      []Tier // of a price
	Value      decimal.Decimal
	Free       decimal.Decimal // units a month without charge
	Source     string
	Date       string // YYYY, YYYY-MM, YYYY-MM-DD or "unknown"
	Confidence Confidence
	Override   bool // from the user's file
}

// Age is how old a figure is at a time; a coarse date counts from its beginning.
// False: it is undated.
func (f *Figure) Age(now time.Time) (time.Duration, bool) {
	for _, layout := range []string{"2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, f.Date); err == nil {
			return now.Sub(t), true
		}
	}
	return 0, false
}

// Stale reports whether a figure is older than StaleAfter, or undated.
func (f *Figure) Stale(now time.Time) bool {
	age, ok := f.Age(now)
	return !ok || age > StaleAfter
}

// Cost is what a month's quantity costs, with the free quantity or without.
func (f *Figure) Cost(quantity decimal.Decimal, free bool) Money {
	if f == nil || !f.Known {
		return Unknown
	}
	none := decimal.Zero
	if free {
		none = f.Free
	}
	return Dollars(Charge(quantity, none, f.Tiers))
}

// A Book is a set of figures. It is immutable and safe for concurrent use.
type Book struct {
	figures      map[string]map[string]*Figure // by id and region
	Alternatives []Alternative
}

// An Alternative is what somebody might use instead.
type Alternative struct {
	Name       string     `yaml:"name" json:"name"`
	Fixed      amount     `yaml:"fixed" json:"-"`
	PerMillion amount     `yaml:"per_million_requests" json:"-"`
	Counts     string     `yaml:"counts" json:"counts"`
	Longest    int64      `yaml:"longest" json:"longest_window_s"` // 0 = any
	Daily      string     `yaml:"daily" json:"daily_cap_per_visitor"`
	Exact      string     `yaml:"exact" json:"exact"`
	Source     string     `yaml:"source" json:"source"`
	Date       string     `yaml:"date" json:"date"`
	Confidence Confidence `yaml:"confidence" json:"confidence"`
}

// an amount is a decimal, or the word unknown; absent is 0.
type amount struct {
	decimal.Decimal
	unknown bool
}

func (a *amount) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "unknown" {
		a.unknown = true
		return nil
	}
	var err error
	a.Decimal, err = decimal.NewFromString(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || a.IsNegative() || a.Exponent() > 15 || a.Exponent() < -20 {
		return fmt.Errorf("line %d: %.30q is not an amount; want one such as \"0.20\", or unknown", n.Line, n.Value)
	}
	return nil
}

func (a amount) money() Money {
	if a.unknown {
		return Unknown
	}
	return Dollars(a.Decimal)
}

// the form of a file.
type file struct {
	Prices       []entry       `yaml:"prices"`
	Limits       []entry       `yaml:"limits"`
	Alternatives []Alternative `yaml:"alternatives"`
}

type entry struct {
	ID     string  `yaml:"id"`
	Value  *amount `yaml:"value"`
	Per    int64   `yaml:"per"`
	Unit   string  `yaml:"unit"`
	Region string  `yaml:"region"`
	Tiers  []struct {
		UpTo  amount `yaml:"up_to"`
		Value amount `yaml:"value"`
	} `yaml:"tiers"`
	Free *struct {
		Quantity amount `yaml:"quantity"`
		Per      string `yaml:"per"`
	} `yaml:"free"`
	Source     string     `yaml:"source"`
	Date       string     `yaml:"date"`
	Confidence Confidence `yaml:"confidence"`
}

// MaxPriceFile bounds a price file, in bytes.
const MaxPriceFile = 1 << 20

// Shipped returns the prices that the program carries.
func Shipped() (*Book, error) {
	b := &Book{figures: map[string]map[string]*Figure{}}
	names, err := fs.Glob(shipped, "prices/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := shipped.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := b.add(data, false); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

// Override returns a book in which the figures of data, a file of the same form,
// replace or join those of b. The error lists all that is wrong with it.
func (b *Book) Override(data []byte) (*Book, error) {
	next := &Book{figures: map[string]map[string]*Figure{}, Alternatives: slices.Clone(b.Alternatives)}
	for id, regions := range b.figures {
		next.figures[id] = map[string]*Figure{}
		for region, f := range regions {
			next.figures[id][region] = f
		}
	}
	return next, next.add(data, true)
}

var dated = regexp.MustCompile(`^(\d{4}(-\d\d(-\d\d)?)?|unknown)$`)

func (b *Book) add(data []byte, override bool) error {
	if len(data) > MaxPriceFile {
		return fmt.Errorf("more than %d bytes", MaxPriceFile)
	}
	var f file
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var errs []error
	for i, e := range slices.Concat(f.Prices, f.Limits) {
		g, err := e.figure()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s in %s: %w", e.ID, e.Region, err))
			continue
		}
		g.Override = override
		regions := b.figures[g.ID]
		switch {
		case regions == nil && override:
			errs = append(errs, fmt.Errorf("%s: there is no such figure", g.ID))
			continue
		case regions == nil:
			regions = map[string]*Figure{}
			b.figures[g.ID] = regions
		}
		if regions[g.Region] != nil && !override {
			errs = append(errs, fmt.Errorf("%s in %s: given twice (entry %d)", g.ID, g.Region, i))
		}
		regions[g.Region] = g
	}
	for _, a := range f.Alternatives {
		if a.Name == "" || a.Daily == "" || a.Source == "" || !dated.MatchString(a.Date) || !a.Confidence.valid() {
			errs = append(errs, fmt.Errorf("alternative %q: want name, daily, source, date and confidence", a.Name))
			continue
		}
		b.Alternatives = slices.DeleteFunc(b.Alternatives, func(o Alternative) bool { return o.Name == a.Name })
		b.Alternatives = append(b.Alternatives, a)
	}
	return errors.Join(errs...)
}

func (c Confidence) valid() bool { return c == Read || c == Derived || c == Memory }

func (e *entry) figure() (*Figure, error) {
	f := &Figure{ID: e.ID, Unit: e.Unit, Region: e.Region, Source: e.Source, Date: e.Date, Confidence: e.Confidence, Known: true}
	switch {
	case e.ID == "" || e.Unit == "" || e.Region == "" || e.Source == "":
		return nil, errors.New("want id, unit, region and source")
	case !e.Confidence.valid():
		return nil, fmt.Errorf("confidence %.20q: want read, derived or memory", e.Confidence)
	case !dated.MatchString(e.Date):
		return nil, fmt.Errorf("date %.20q: want YYYY-MM-DD, YYYY-MM, YYYY or unknown", e.Date)
	case (e.Value == nil) == (len(e.Tiers) == 0):
		return nil, errors.New("want either a value or tiers")
	case e.Per < 0:
		return nil, errors.New("per: must be above 0")
	}
	per := decimal.New(max(1, e.Per), 0)
	if e.Value != nil {
		f.Known = !e.Value.unknown
		f.Value = e.Value.Decimal.DivRound(per, 18)
		f.Tiers = []Tier{{Price: f.Value}}
	}
	last := decimal.Zero
	for i, t := range e.Tiers {
		final := i == len(e.Tiers)-1
		if final != t.UpTo.IsZero() || !final && t.UpTo.LessThanOrEqual(last) {
			return nil, errors.New("tiers: want rising up_to, and a last tier without one")
		}
		f.Known = f.Known && !t.Value.unknown
		f.Tiers = append(f.Tiers, Tier{UpTo: t.UpTo.Decimal, Price: t.Value.DivRound(per, 18)})
		last = t.UpTo.Decimal
	}
	if e.Free != nil {
		switch e.Free.Per {
		case "month":
			f.Free = e.Free.Quantity.Decimal
		case "day":
			f.Free = e.Free.Quantity.Mul(Days)
		default:
			return nil, fmt.Errorf("free: per %.20q: want day or month", e.Free.Per)
		}
	}
	return f, nil
}

// Find returns a figure for a region: the region's own, its provider's, or that of
// any region. Nil: there is none, which is unknown and not 0.
func (b *Book) Find(id, provider, region string) *Figure {
	regions := b.figures[id]
	for _, r := range []string{region, provider, "any"} {
		if f := regions[r]; f != nil {
			return f
		}
	}
	return nil
}

// Figures lists all figures by id and region.
func (b *Book) Figures() []*Figure {
	var list []*Figure
	for _, regions := range b.figures {
		for _, f := range regions {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, c *Figure) int {
		if a.ID != c.ID {
			return compare(a.ID, c.ID)
		}
		return compare(a.Region, c.Region)
	})
	return list
}
