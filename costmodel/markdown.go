package costmodel

import (
	"fmt"
	"io"
	"strings"
)

// Volumes are the months of the table in docs/choosing-a-store.md.
var Volumes = []int64{100_000, 1_000_000, 10_000_000, 100_000_000}

// Markdown writes a table of all stores for several volumes: what a month costs
// without free quantities, and with them where that differs. It depends on prices and results
// only, not on the day.
func Markdown(out io.Writer, in Input) error {
	w := &errWriter{w: out}
	in.withoutWinners = true
	var reports []*Report
	w.printf("| store |")
	for _, n := range Volumes {
		in.Traffic.Navigations = n
		r, err := Estimate(in)
		if err != nil {
			return err
		}
		reports = append(reports, r)
		w.printf(" %s |", Count(n))
	}
	w.printf("\n|---|%s\n", strings.Repeat("---|", len(Volumes)))
	for i, s := range reports[0].Stores {
		if s.ID == "memory" {
			continue
		}
		w.printf("| %s |", s.Title)
		for _, r := range reports {
			s := &r.Stores[i]
			switch {
			case len(s.Impossible) > 0:
				w.printf(" – |")
			case s.Month.Equal(s.WithFree):
				w.printf(" %s |", s.Month)
			default:
				w.printf(" %s (%s) |", s.Month, s.WithFree)
			}
		}
		w.printf("\n")
	}
	w.printf("| *recommended, on AWS* |")
	for _, n := range Volumes {
		w.printf(" %s |", choiceOn(in, AWS, n))
	}
	w.printf("\n| *recommended, on Google Cloud* |")
	for _, n := range Volumes {
		w.printf(" %s |", choiceOn(in, GCP, n))
	}
	w.printf("\n\n")
	for _, provider := range []string{AWS, GCP, Own} {
		in.On, in.Traffic.Navigations, in.withoutWinners = provider, Volumes[0], false
		r, err := Estimate(in)
		if err != nil {
			return err
		}
		var parts []string
		for _, x := range r.Winners {
			parts = append(parts, fmt.Sprintf("%s from %s", x.Title, Count(x.From)))
		}
		w.printf("Cheapest store by volume, without free quantities%s: %s.\n\n", on(provider), strings.Join(parts, "; "))
	}
	return w.err
}

func choiceOn(in Input, provider string, n int64) string {
	in.On, in.Traffic.Navigations = provider, n
	r, err := Estimate(in)
	if err != nil || r.Choice == nil {
		return "none"
	}
	return r.Choice.Title
}
