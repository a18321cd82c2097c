package edge

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/policy"
)

// A Rule is what a product is told, in Terraform's language.
type Rule struct {
	Product   string   `json:"product"`
	Plan      string   `json:"plan,omitempty"`
	Terraform string   `json:"terraform"`
	Limits    []string `json:"limits"`   // what the product cannot do, or does otherwise
	LeftOut   []string `json:"left_out"` // parts of the policy that the rule does not hold
}

// Text returns the rule with its limits as comments before it.
func (r *Rule) Text() string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "#\n# %s\n", title)
		for _, line := range lines {
			wrapComment(&b, line)
		}
	}
	name := r.Product
	if r.Plan != "" {
		name += ", plan " + r.Plan
	}
	fmt.Fprintf(&b, "# Written by stile edge for %s.\n", name)
	section("What this product cannot do:", r.Limits)
	section("Not in this rule:", r.LeftOut)
	b.WriteString("\n")
	b.WriteString(r.Terraform)
	return b.String()
}

// wrapComment writes a line as an item of a comment, broken at 100 columns.
func wrapComment(b *strings.Builder, text string) {
	lead := "#   - "
	for len(text) > 94 {
		cut := strings.LastIndexByte(text[:94], ' ')
		if cut <= 0 {
			break
		}
		b.WriteString(lead + text[:cut] + "\n")
		text, lead = text[cut+1:], "#     "
	}
	b.WriteString(lead + text + "\n")
}

// ErrPlan marks a plan that a product does not have.
var ErrPlan = errors.New("edge: no such plan")

// ErrProduct marks a product that is not known.
var ErrProduct = errors.New("edge: no such product")

// Products are the words that New knows.
var Products = []string{"cloudflare", "cloud-armor", "aws-waf", "vercel"}

// New writes the rule of a product. Plan is the product's own word, "" for its
// default; cloudflare has free, pro, business (default) and enterprise, vercel
// has pro (default) and enterprise, the others none. Networks that have expired
// by now are not exempt. The error wraps ErrProduct or ErrPlan, or says that the
// policy has nothing that the product could hold.
func New(product, plan string, f *policy.File, now time.Time) (*Rule, error) {
	p, ok := map[string]vendor{
		"cloudflare": cloudflare{}, "cloud-armor": cloudArmor{}, "aws-waf": awsWAF{}, "vercel": vercel{},
	}[product]
	if !ok {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrProduct, product, strings.Join(Products, ", "))
	}
	can, err := p.plan(plan)
	if err != nil {
		return nil, err
	}
	q := request{file: f, observe: f.Mode != policy.ModeEnforce, pages: pagesOf(f)}
	for _, n := range f.Exempt.Networks {
		if n.Until.IsZero() || now.Before(n.Until.Time) {
			q.exempt = append(q.exempt, n.CIDR)
		}
	}
	r := &Rule{Product: product, Plan: can.name, Limits: slices.Clone(can.limits), LeftOut: []string{}}
	q.rings, r.LeftOut = rings(f, can)
	if len(q.rings) == 0 {
		return nil, fmt.Errorf("edge: %s counts by address, and the policy has no bucket with key address that it could hold", product)
	}
	if can.headers {
		r.Limits = append(r.Limits, "Only requests whose Accept names text/html are counted: what asks for */* alone (curl, most libraries) passes here, and counts in the policy.")
	}
	for _, ring := range q.rings {
		r.Limits = append(r.Limits, ring.says())
	}
	r.LeftOut = append(r.LeftOut, leftOut(f, can)...)
	text, more := p.write(can, q)
	r.Terraform, r.Limits = text, append(r.Limits, more...)
	return r, nil
}

// A vendor knows its edge product.
type vendor interface {
	plan(name string) (capability, error)
	// write returns the Terraform text and what it had to do otherwise.
	write(can capability, q request) (string, []string)
}

// A capability is what a product's plan can do.
type capability struct {
	name    string // of the plan; "" where there are none
	windows []int  // seconds, ascending
	rules   int    // how many rate rules a site can have; 0 = enough
	least   int64  // smallest limit; 0 = 1
	most    int64  // largest limit; 0 = enough
	method  bool   // a rule can read the method
	headers bool   // a rule can read request headers
	bots    bool   // a rule can ask whether the product has verified a crawler
	limits  []string
}

// A request is what a product is asked to hold.
type request struct {
	file    *policy.File
	observe bool
	pages   pages
	exempt  []netip.Prefix
	rings   []ring
}

// A ring is one bucket as a product can hold it.
type ring struct {
	bucket policy.Bucket
	limit  int64 // of the policy, scaled
	window int   // seconds
	held   int64 // the limit that is told to the product
	paths  paths // none = every page

	day     int64 // the least that a longer bucket of the policy lets the same client have in a day; 0 = there is none
	dayName string
}

// says what the ring lets through, in numbers.
func (r ring) says() string {
	day := int64(math.Ceil(86400 / float64(r.window) * float64(r.held)))
	own := int64(math.Ceil(86400 / r.bucket.Window.Seconds() * float64(r.limit)))
	text := fmt.Sprintf("%s: %d in %s here, %d in %s in the policy", r.bucket.Name, r.held, span(time.Duration(r.window)*time.Second), r.limit, span(r.bucket.Window))
	if day > own || r.day > 0 && day > r.day {
		text += fmt.Sprintf("; who stays just below gets %d pages a day here", day)
		if r.day > 0 && r.day <= own {
			text += fmt.Sprintf(", where the policy's %s allows %d, which no rule here can say", r.dayName, r.day)
		} else {
			text += fmt.Sprintf(", %d there", own)
		}
	}
	return text + "."
}

// rings chooses the buckets that a product can hold, and says why not the others.
func rings(f *policy.File, can capability) (list []ring, out []string) {
	out = []string{}
	for _, b := range f.Buckets {
		if b.Key.Kind() != rows.Address {
			out = append(out, fmt.Sprintf("%s: counts by %s, which this rule cannot.", b.Name, b.Key))
			continue
		}
		r := ringOf(b, f.Scale, can)
		r.day, r.dayName = dayOf(f, b)
		list = append(list, r)
	}
	// Of two rings of one window the tighter says it all.
	slices.SortStableFunc(list, func(a, b ring) int {
		if a.window != b.window {
			return a.window - b.window
		}
		return int(min(max(a.held-b.held, -1), 1))
	})
	var kept []ring
	for _, r := range list {
		at := slices.IndexFunc(kept, func(k ring) bool { return k.window == r.window && k.paths.none() })
		switch {
		case at >= 0:
			out = append(out, fmt.Sprintf("%s: %d in %s; the longest window here is %s, in which %s is stricter.", r.bucket.Name, r.limit, span(r.bucket.Window), span(time.Duration(r.window)*time.Second), kept[at].bucket.Name))
		case can.rules > 0 && len(kept) == can.rules:
			out = append(out, fmt.Sprintf("%s: the plan has %d rate rules.", r.bucket.Name, can.rules))
		default:
			kept = append(kept, r)
		}
	}
	return kept, out
}

// dayOf finds the bucket that bounds a client's day where b counts: the one of a
// day or longer, of all pages or of the same, that lets the fewest through.
func dayOf(f *policy.File, b policy.Bucket) (least int64, name string) {
	scale := f.Scale
	if scale == 0 {
		scale = 1
	}
	for _, d := range f.Buckets {
		if d.Name == b.Name || d.Key != b.Key || d.Window < 24*time.Hour || d.Algorithm.Kind().Clock() || len(d.Paths) > 0 && !slices.Equal(d.Paths, b.Paths) {
			continue
		}
		if n := int64(math.Ceil(float64(d.Limit) * scale)); least == 0 || n < least {
			least, name = n, d.Name
		}
	}
	return least, name
}

// ringOf fits a bucket into the product's windows.
func ringOf(b policy.Bucket, scale float64, can capability) ring {
	if scale == 0 {
		scale = 1
	}
	r := ring{bucket: b, limit: int64(math.Ceil(float64(b.Limit) * scale)), window: can.windows[0]}
	r.paths = split(b.Paths)
	for _, w := range can.windows {
		if time.Duration(w)*time.Second <= b.Window {
			r.window = w
		}
	}
	r.held = r.limit
	if w := time.Duration(r.window) * time.Second; w > b.Window { // several of the policy's windows in one
		r.held *= int64(math.Ceil(w.Seconds() / b.Window.Seconds()))
	}
	if b.Algorithm.Kind().Clock() {
		// What a bucket of this kind can admit in the time: what it holds, and what refills.
		burst := int64(math.Ceil(float64(b.Burst) * scale))
		if burst == 0 && b.Algorithm == "token-bucket" {
			burst = r.limit
		}
		r.held = max(burst, 1) + int64(math.Ceil(float64(r.limit)*float64(r.window)/b.Window.Seconds()))
	}
	r.held = max(r.held, can.least, 1)
	if can.most > 0 {
		r.held = min(r.held, can.most)
	}
	return r
}

// leftOut says what of the policy no edge product knows.
func leftOut(f *policy.File, can capability) (out []string) {
	for _, n := range f.Exempt.Networks {
		if n.Multiply > 0 {
			out = append(out, fmt.Sprintf("exempt.networks %s: the rule exempts it where the policy multiplies its limits by %d.", n.CIDR, n.Multiply))
		}
	}
	var classes []string
	for _, class := range policy.CrawlerClasses() {
		if t := f.Exempt.Crawlers[class]; t.Exempt || t.Multiply > 1 {
			classes = append(classes, class)
		}
	}
	if len(classes) > 0 {
		how := "this rule limits them; let stile answer for them, or exempt their ranges by hand"
		if can.bots {
			how = "the rule exempts what the product itself calls a verified bot, which is another list and has no classes"
		}
		out = append(out, fmt.Sprintf("exempt.crawlers (%s): %s.", strings.Join(classes, ", "), how))
	}
	if f.Identify.Cookie != nil || f.Identify.JWT != nil || f.Identify.APIKeys != nil {
		out = append(out, "identify: whoever is known by cookie, token or key is counted by address here.")
	}
	return append(out, "Redirect chains count once per hop; a RateLimit field, a reference id and the hit log are stile's.")
}

// span writes a duration in its largest whole unit.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", int64(d/time.Second))
}
