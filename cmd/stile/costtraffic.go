package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/stilehq/stile/bench"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/costmodel"
	"github.com/stilehq/stile/sizing"
	"github.com/stilehq/stile/sizing/accesslog"
)

// defaultNavigations is the month of a site that says nothing of its own.
const defaultNavigations = 1_000_000

// traffic finds out what visitors do: flags first, then a report or logs, then
// defaults that the result names as such.
func (c *costCmd) traffic(ctx context.Context, t *terminal, in *costmodel.Input) error {
	r, from, err := c.sized(ctx, t)
	if err != nil {
		return err
	}
	in.Traffic.From = "flags and defaults"
	if r != nil {
		if err := fromReport(r, in); err != nil {
			return err
		}
		in.Traffic.From = from
	}
	if c.Navigations >= 0 {
		in.Traffic.Navigations = c.Navigations
	} else if r == nil {
		in.Traffic.Navigations = defaultNavigations
	}
	if c.CrawlerPages >= 0 {
		in.CrawlerPages = decimal.New(c.CrawlerPages, 0)
	}
	for _, f := range []struct {
		name, text string
		to         *decimal.Decimal
	}{
		{"per-client-day", c.PerClientDay, &in.Traffic.PerClientDay},
		{"refused", c.Refused, &in.Traffic.Denied},
		{"peak", c.Peak, &in.Traffic.PeakPerSecond},
	} {
		if f.text == "" {
			continue
		}
		if *f.to, err = amountOf(f.name, f.text); err != nil {
			return err
		}
	}
	return nil
}

// sized returns a size report, nil when none was asked for.
func (c *costCmd) sized(ctx context.Context, t *terminal) (*sizing.Report, string, error) {
	switch {
	case c.SizeReport != "" && len(c.Log) > 0:
		return nil, "", misuse(fmt.Errorf("--size-report and --log exclude each other"))
	case c.SizeReport != "":
		f, err := os.Open(c.SizeReport)
		if err != nil {
			return nil, "", err
		}
		defer f.Close()
		var r sizing.Report
		if err := json.NewDecoder(io.LimitReader(f, 256<<20)).Decode(&r); err != nil {
			return nil, "", fmt.Errorf("%s is not what stile size --json writes: %w", plain(c.SizeReport), err)
		}
		return &r, "the size report", nil
	case len(c.Log) > 0:
		inputs, err := accesslog.Files(t.stdin, c.Log...)
		if err != nil {
			return nil, "", err
		}
		r, err := sizing.Measure(ctx, inputs, sizing.Options{Log: accesslog.Options{Now: t.now()}})
		return r, "the log", err
	}
	return nil, "", nil
}

// fromReport turns a report into a month.
func fromReport(r *sizing.Report, in *costmodel.Input) error {
	span := r.To.Sub(r.From)
	if r.Traffic.Pages <= 0 || span < time.Hour {
		return fmt.Errorf("the log has %d pages in %s: too little to reckon a month from", r.Traffic.Pages, span)
	}
	pages := decimal.New(r.Traffic.Pages, 0)
	month := costmodel.Days.Mul(decimal.New(24, 0)).DivRound(decimal.NewFromFloat(span.Hours()), 9)
	in.Traffic.Navigations = pages.Mul(month).Round(0).IntPart()
	if n := r.Everyone.PerDay.Count; n > 0 && r.Everyone.Pages >= n {
		in.Traffic.PerClientDay = decimal.New(r.Everyone.Pages, 0).DivRound(decimal.New(n, 0), 3)
	}
	// What the proposed limits would refuse. Each refusal is reckoned as one that
	// asks the store, though most are answered from memory: the dearer case.
	e := r.Proposal.Effect
	refused := decimal.New(e.RoboticPages, 0).Mul(decimal.NewFromFloat(e.RoboticShare))
	if refused.IsPositive() && refused.LessThanOrEqual(pages) {
		in.Traffic.Denied = refused.DivRound(pages, 6)
	}
	in.CrawlerPages = refused.Mul(month).Round(0)
	most := 0
	for _, h := range slices.Concat(r.Abusers, r.Shared) {
		most = max(most, h.PeakMinute)
	}
	if most > 0 {
		k := costmodel.HotKey{Scope: "address", Peak: decimal.New(int64(most), 0).DivRound(decimal.New(60, 0), 3)}
		if r.Proposal.Hour > 0 {
			k.Limit, k.Window = int64(r.Proposal.Hour), time.Hour
		}
		in.Traffic.Keys = []costmodel.HotKey{k}
	}
	return nil
}

// hot adds the hot keys of flags, and what the policy says of their buckets.
func (c *costCmd) hot(t *terminal, traffic *costmodel.Traffic) error {
	for _, text := range c.Hot {
		scope, peak, ok := strings.Cut(text, "=")
		known := []string{"address", "network", "asn", "cookie", "user", "api-key", "global"}
		if !ok || !slices.Contains(known, scope) {
			return misuse(fmt.Errorf("--hot: want SCOPE=N with one of %s", strings.Join(known, ", ")))
		}
		n, err := amountOf("hot", peak)
		if err != nil {
			return err
		}
		traffic.Keys = slices.DeleteFunc(traffic.Keys, func(k costmodel.HotKey) bool { return k.Scope == scope })
		traffic.Keys = append(traffic.Keys, costmodel.HotKey{Scope: scope, Peak: n})
	}
	if c.Policy == "" {
		return nil
	}
	f, _, err := t.loadPolicy(c.Policy)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	p, err := f.Core(t.now())
	if err != nil {
		return err
	}
	traffic.Outer = outerState(&p)
	for i := range traffic.Keys {
		k := &traffic.Keys[i]
		for _, b := range p.Buckets {
			if kindName(b.Key) == k.Scope && (k.Window == 0 || b.Window < k.Window) {
				k.Limit, k.Window, k.FlushEvery = b.Limit, b.Window, b.FlushEvery
			}
		}
	}
	return nil
}

// outerState names the measured state of a policy's outer buckets: coalesced ones
// are reckoned as measured at twenty navigations an hour, others as a write of
// their own each.
func outerState(p *core.Policy) string {
	state := ""
	for _, r := range core.Records(p) {
		switch {
		case r.Key.Own():
		case r.Coalesced > 0 && state == "":
			state = bench.StateOuter20
		case r.Coalesced == 0:
			state = bench.StateEven2
		}
	}
	return state
}

func kindName(k rows.Kind) string {
	switch k {
	case rows.Address:
		return "address"
	case rows.Network:
		return "network"
	case rows.ASN:
		return "asn"
	case rows.Cookie:
		return "cookie"
	case rows.User:
		return "user"
	case rows.APIKey:
		return "api-key"
	case rows.Global:
		return "global"
	}
	return "header"
}
