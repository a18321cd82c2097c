package costmodel

import (
	"fmt"
	"math"
	"strings"
)

// The plot's frame, in pixels.
const (
	plotWide, plotHigh = 920.0, 520.0
	plotLeft, plotTop  = 70.0, 16.0
	plotRight, plotLow = 275.0, 46.0         // right: the legend
	plotStep           = 1.12201845430196356 // a twentieth of a decade
	cheapest, dearest  = 0.01, 100_000.0     // dollars a month
)

// colours of curves, told apart by lightness too.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f3c8d", "#a5aa00", "#8c564b", "#5f5f5f"}

func plotX(n float64) float64 {
	low, high := math.Log10(LowestVolume), math.Log10(HighestVolume)
	return plotLeft + (math.Log10(n)-low)/(high-low)*(plotWide-plotLeft-plotRight)
}

func plotY(dollars float64) float64 {
	low, high := math.Log10(cheapest), math.Log10(dearest)
	d := math.Log10(min(max(dollars, cheapest), dearest))
	return plotTop + (high-d)/(high-low)*(plotHigh-plotTop-plotLow)
}

// plot draws each store's month against the volume on logarithmic axes, where the
// cheapest changes, and where this site is. It is SVG without any text from outside
// this package.
func (r *Report) plot() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="plot-title" font-family="system-ui,sans-serif" font-size="12">`, plotWide, plotHigh)
	b.WriteString(`<title id="plot-title">Dollars a month against navigations a month, by store</title>`)
	right, low := plotWide-plotRight, plotHigh-plotLow
	for d := 4; d <= 10; d++ {
		x := plotX(math.Pow(10, float64(d)))
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, plotTop, low, x, low+16, short(math.Pow(10, float64(d))))
	}
	for d := -2; d <= 5; d++ {
		y := plotY(math.Pow(10, float64(d)))
		label := fmt.Sprintf("$%s", short(math.Pow(10, float64(d))))
		if d == -2 {
			label = "≤ " + label // what costs nothing lies on the edge too
		}
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, plotLeft, y, right, plotLeft-6, y+4, label)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">navigations a month</text>`, (plotLeft+right)/2, plotHigh-8)
	for _, x := range r.Winners[min(1, len(r.Winners)):] {
		at := plotX(float64(x.From))
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#555" stroke-dasharray="3 3"/><text transform="translate(%.1f %.1f) rotate(-90)" fill="#555">%s</text>`,
			at, plotTop, low, at-4, plotTop+96, short(float64(x.From)))
	}
	if n := float64(r.Traffic.Navigations); n >= LowestVolume && n <= HighestVolume {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#c00" stroke-width="2"/><text x="%.1f" y="%.1f" fill="#c00">this site</text>`, plotX(n), plotTop, low, plotX(n)+4, low-6)
	}
	for i, o := range r.in.available() {
		colour := colours[i%len(colours)]
		path, pen := "", "M"
		for n := float64(LowestVolume); n <= HighestVolume*1.001; n *= plotStep {
			t := r.in.Traffic.at(int64(n + 0.5))
			s := r.in.storeCost(&o, &t)
			if len(s.Impossible) > 0 {
				pen = "M"
				continue
			}
			path += fmt.Sprintf("%s%.1f %.1f", pen, plotX(n), plotY(s.Month.Amount().InexactFloat64()))
			pen = "L"
		}
		y := plotTop + 10 + 20*float64(i)
		what := o.title
		if path == "" {
			what += " (unknown)"
		} else {
			fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`, path, colour)
		}
		fmt.Fprintf(&b, `<path d="M%.1f %.1fh18" stroke="%s" stroke-width="3"/><text x="%.1f" y="%.1f">%s</text>`, right+8, y, colour, right+30, y+4, what)
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// short writes 10 k, 3.2 M, 0.01.
func short(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g", n)
}
