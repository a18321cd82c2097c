package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/shopspring/decimal"

	"github.com/stilehq/stile/bench"
	"github.com/stilehq/stile/costmodel"
)

type costCmd struct {
	Navigations  int64    `placeholder:"N" default:"-1" help:"Counted navigations a month; default: 1,000,000, or what the log says."`
	Log          []string `placeholder:"LOG" sep:"none" help:"Take the traffic from access logs; may be repeated."`
	SizeReport   string   `placeholder:"FILE" help:"Take the traffic from what stile size --json wrote."`
	PerClientDay string   `placeholder:"N" help:"Navigations of a client on a day on which it comes; default: 5, or what the log says."`
	Refused      string   `placeholder:"SHARE" help:"Share of navigations that are refused, 0 to 1; default: 0, or what the log says."`
	Peak         string   `placeholder:"N" help:"Navigations in the busiest second; default: six times the mean."`
	Hot          []string `placeholder:"SCOPE=N" sep:"none" help:"Navigations a second of the hottest key: address=3, network=8, global=40; may be repeated."`
	Policy       string   `placeholder:"FILE" help:"The policy whose buckets are charged; default: an hour and a day of one address."`

	Results   string `placeholder:"DIR" help:"Folder of results of stile bench; default: those built in."`
	Prices    string `placeholder:"FILE" help:"Figures that replace the built-in ones, in the form of costmodel/prices/*.yaml."`
	Region    string `placeholder:"NAME" help:"Region of Google Cloud or AWS; default: us-central1 and us-east-1."`
	On        string `placeholder:"HOST" help:"Where the site is: gcp, aws or own; default: not said, and stores are compared by themselves."`
	Requests  int64  `placeholder:"N" help:"Requests that reach Stile for each navigation; default: 1."`
	OriginMs  int64  `name:"origin-ms" placeholder:"N" help:"How long the origin takes for a page; default: 300."`
	Instances int64  `placeholder:"N" help:"Instances of Stile; default: 4."`

	PageCost     string `placeholder:"USD" help:"What one page costs you at the origin; default: unknown."`
	PageMs       int64  `name:"page-ms" placeholder:"N" help:"Reckon it from this billed time of a page, at the prices of --on."`
	PageBytes    int64  `name:"page-bytes" placeholder:"N" help:"And from these bytes of a page."`
	CrawlerPages int64  `placeholder:"N" default:"-1" help:"Pages a month that the limits would refuse; default: what the log says, else unknown."`

	HTML     string `name:"html" placeholder:"FILE" help:"Write one page with a plot."`
	Markdown bool   `help:"Print only the table for several volumes, as in docs/choosing-a-store.md."`
	JSON     bool   `name:"json" help:"Print the result as JSON."`
}

// Help is shown by --help.
func (costCmd) Help() string {
	return "Multiplies measured operations by dated prices: what a month costs in each store and placement, where the cheapest changes, " +
		"which hot key breaks which store, one recommended store, and whether limiting pays at all. What is not known is \"unknown\", never 0.\n\n" +
		"Exit status 1: no store can be recommended.\n\n" +
		"Examples:\n" +
		"  stile cost --navigations 3000000 --on aws --page-cost 0.0001 --crawler-pages 400000\n" +
		"  stile size --json access.log > size.json; stile cost --size-report size.json --on gcp --html cost.html\n" +
		"  stile bench --store redis://127.0.0.1:6379 --out results; stile cost --results results"
}

// Run reckons and prints.
func (c *costCmd) Run(ctx context.Context, t *terminal) error {
	in, err := c.input(ctx, t)
	if err != nil {
		return err
	}
	if c.Markdown {
		return costmodel.Markdown(t.stdout, in)
	}
	r, err := costmodel.Estimate(in)
	if err != nil {
		return misuse(err)
	}
	if c.HTML != "" {
		if err := writeCostPage(c.HTML, r); err != nil {
			return err
		}
	}
	if c.JSON {
		err = writeJSON(t.stdout, r)
	} else {
		err = r.Text(t.stdout)
	}
	if err == nil && r.Choice == nil {
		return badNews(nil)
	}
	return err
}

func writeCostPage(path string, r *costmodel.Report) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(r.HTML(out), out.Close())
}

// input gathers prices, measurements and traffic.
func (c *costCmd) input(ctx context.Context, t *terminal) (costmodel.Input, error) {
	in := costmodel.Input{On: c.On, Now: t.now(), PageCost: costmodel.Unknown, CrawlerPages: decimal.New(c.CrawlerPages, 0)}
	in.Assumptions = costmodel.Assumptions{HoldMillis: c.OriginMs, PageBytes: c.PageBytes, Requests: c.Requests, Instances: c.Instances}
	for name, n := range map[string]int64{"requests": c.Requests, "origin-ms": c.OriginMs, "instances": c.Instances, "page-ms": c.PageMs, "page-bytes": c.PageBytes} {
		if n < 0 || n > 1_000_000_000 {
			return in, misuse(fmt.Errorf("--%s: want 0 to 1,000,000,000", name))
		}
	}
	var err error
	if in.Book, err = c.book(); err != nil {
		return in, err
	}
	if c.Region != "" {
		in.GCPRegion, in.AWSRegion = costmodel.Regions(c.Region)
	}
	if in.Measurements, err = c.measurements(t); err != nil {
		return in, err
	}
	if err := c.traffic(ctx, t, &in); err != nil {
		return in, err
	}
	if err := c.hot(t, &in.Traffic); err != nil {
		return in, err
	}
	switch {
	case c.PageCost != "":
		d, err := amountOf("page-cost", c.PageCost)
		if err != nil {
			return in, err
		}
		in.PageCost = costmodel.Dollars(d)
	case c.PageMs > 0 || c.PageBytes > 0 && c.PageMs >= 0 && c.On != "":
		in.PageCost = costmodel.PageCost(in, c.PageMs, c.PageBytes)
	}
	return in, nil
}

func (c *costCmd) book() (*costmodel.Book, error) {
	b, err := costmodel.Shipped()
	if err != nil || c.Prices == "" {
		return b, err
	}
	f, err := os.Open(c.Prices)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, costmodel.MaxPriceFile+1))
	if err != nil {
		return nil, err
	}
	if b, err = b.Override(data); err != nil {
		return nil, badNews(fmt.Errorf("prices %s cannot be used:\n%s", plain(c.Prices), err))
	}
	return b, nil
}

// measurements reads bench results. Those that cannot be read are told and left
// out: their stores are then shown as not measured.
func (c *costCmd) measurements(t *terminal) ([]*costmodel.Measurement, error) {
	var from fs.FS = bench.Builtin()
	if c.Results != "" {
		if info, err := os.Stat(c.Results); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, misuse(errors.New("--results: want a folder"))
		}
		from = os.DirFS(c.Results)
	}
	list, err := bench.ReadFS(from)
	if err != nil {
		fmt.Fprintln(t.stderr, "stile: left out:", plain(err.Error()))
	}
	if len(list) == 0 {
		return nil, errors.Join(errors.New("no bench result can be used; run stile bench --out DIR"), err)
	}
	var out []*costmodel.Measurement
	for _, r := range list {
		out = append(out, measurementOf(r))
	}
	return out, nil
}

func measurementOf(r *bench.Result) *costmodel.Measurement {
	m := &costmodel.Measurement{
		Store: r.Store.Name, File: r.File, Date: r.Date, Server: r.Store.Server, Kind: string(r.Store.Kind), Loopback: r.Store.Loopback,
		Machine: fmt.Sprintf("%d cores, %s, %s/%s", r.Machine.Cores, r.Machine.Go, r.Machine.OS, r.Machine.Arch),
		States:  map[string]costmodel.Counts{},
	}
	for _, s := range r.States {
		n := costmodel.Counts{Navigations: s.Navigations, Writes: s.Writes, Reads: s.Reads, Expiries: s.Expiries}
		if s.BytesOut != nil && s.BytesIn != nil {
			n.BytesOut, n.BytesIn, n.BytesKnown = *s.BytesOut, *s.BytesIn, true
		}
		m.States[s.Name] = n
		if s.Name == bench.StateSteady {
			m.P50, m.P99 = s.P50, s.P99
		}
	}
	return m
}

// amountOf reads a number that a flag gives; more digits than any use has are
// refused, so that no arithmetic on it can be made to take long.
func amountOf(flag, text string) (decimal.Decimal, error) {
	d, err := decimal.NewFromString(text)
	if err != nil || len(text) > 30 || d.IsNegative() || d.Exponent() < -18 || d.Exponent() > 15 {
		return decimal.Zero, misuse(fmt.Errorf("--%s: want a number such as 0.0002", flag))
	}
	return d, nil
}
