package sizing

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Plots are small SVG drawings without scripts. Colours come from the page's
// custom properties, so that they follow light, dark and print.

const (
	plotW, plotH     = 640, 220
	plotL, plotR     = 52, 12
	plotTop, plotBot = 14, 34
)

type drawing struct{ strings.Builder }

func newDrawing(title string) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotW, plotH, template.HTMLEscapeString(title))
	return d
}

func (d *drawing) text(x, y float64, anchor, class, s string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, template.HTMLEscapeString(s))
}

func (d *drawing) rule(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// textWidth is about what a text takes at the page's size, on the wide side:
// fonts differ.
func textWidth(s string) float64 { return 6.8 * float64(utf8.RuneCountInString(s)) }

// beside writes a label to the left ("end") or the right ("start") of a line, or
// to the other side where it would leave the drawing.
func (d *drawing) beside(x, y float64, anchor, s string) {
	const gap = 4
	w := textWidth(s) + gap
	if anchor == "end" && x-w < plotL || anchor == "start" && x+w <= plotW {
		anchor = "start"
		x += gap
	} else {
		anchor = "end"
		x -= gap
	}
	d.text(x, y, anchor, "mark", s)
}

func (d *drawing) done() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String()) // every text in it went through HTMLEscapeString
}

// distributionPlot draws how many address-hours (days) had how many pages, on
// logarithmic axes both ways, with the limit as a line.
func distributionPlot(title string, people, all Distribution, limit int) template.HTML {
	d := newDrawing(title)
	top := max(all.Max, people.Max, limit, 10)
	xMax := math.Log10(float64(top) * 1.15)
	var most int64 = 1
	for _, b := range all.Histogram {
		most = max(most, b.Count)
	}
	yMax := math.Log10(float64(most)) + 0.35
	x := func(pages float64) float64 {
		return plotL + (plotW-plotL-plotR)*math.Log10(max(pages, 1))/xMax
	}
	y := func(n float64) float64 {
		if n < 1 {
			return plotH - plotBot
		}
		return plotH - plotBot - (plotH-plotBot-plotTop)*(math.Log10(n)+0.3)/(yMax+0.3)
	}
	for p := 1.0; p <= float64(most); p *= 10 {
		d.rule(plotL, y(p), plotW-plotR, y(p), "grid")
		d.text(plotL-6, y(p)+4, "end", "tick", short(p))
	}
	for p := 1.0; p <= float64(top); p *= 10 {
		for _, k := range []float64{1, 2, 5} {
			if v := p * k; v <= float64(top)*1.1 {
				d.text(x(v), plotH-plotBot+15, "middle", "tick", short(v))
			}
		}
	}
	bars := func(dist Distribution, class string) {
		for _, b := range dist.Histogram {
			if b.Count == 0 {
				continue
			}
			x0, x1 := x(float64(b.From)), x(float64(b.To))
			fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%d to %d pages: %d</title></rect>`,
				x0, y(float64(b.Count)), max(x1-x0-1, 1.5), plotH-plotBot-y(float64(b.Count)), class, b.From, b.To-1, b.Count)
		}
	}
	bars(all, "all")
	bars(people, "people")
	d.rule(plotL, plotH-plotBot, plotW-plotR, plotH-plotBot, "axis")
	// One label a row, or two lines near one another would write over each other.
	if people.P999 > 0 {
		d.rule(x(float64(people.P999)), plotTop, x(float64(people.P999)), plotH-plotBot, "quantile")
		d.beside(x(float64(people.P999)), plotTop+10, "end", fmt.Sprintf("p99.9 %d", people.P999))
	}
	if limit > 0 {
		d.rule(x(float64(limit)), plotTop, x(float64(limit)), plotH-plotBot, "limit")
		d.beside(x(float64(limit)), plotTop+24, "start", fmt.Sprintf("limit %d", limit))
	}
	d.text(plotW-plotR, plotH-4, "end", "tick", "pages")
	return d.done()
}

// timelinePlot draws the pages per hour of one client, and where a limit lies.
func timelinePlot(h Heavy, from, to time.Time, limit int) template.HTML {
	d := newDrawing("pages per hour of " + h.Address)
	span := max(to.Sub(from).Hours(), 1)
	top := float64(max(h.PeakHour, limit, 4)) * 1.1
	x := func(t int64) float64 {
		return plotL + (plotW-plotL-plotR)*min(max(float64(t-from.Unix())/3600, 0)/span, 1)
	}
	y := func(n float64) float64 { return plotH - plotBot - (plotH-plotBot-plotTop)*n/top }
	for _, n := range []float64{0, top / 2.2, top / 1.1} {
		d.rule(plotL, y(n), plotW-plotR, y(n), "grid")
		d.text(plotL-6, y(n)+4, "end", "tick", short(math.Round(n)))
	}
	width := max((plotW-plotL-plotR)/span-0.5, 1)
	for _, p := range h.Days {
		fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="robot"/>`, x(p.Hour), y(float64(p.Pages)), width, plotH-plotBot-y(float64(p.Pages)))
	}
	if limit > 0 {
		d.rule(plotL, y(float64(limit)), plotW-plotR, y(float64(limit)), "limit")
		d.text(plotW-plotR, y(float64(limit))-4, "end", "mark", fmt.Sprintf("hourly limit %d", limit))
	}
	d.text(plotL, plotH-plotBot+15, "start", "tick", from.Format("2 Jan 15:04"))
	d.text(plotW-plotR, plotH-plotBot+15, "end", "tick", to.Format("2 Jan 15:04"))
	return d.done()
}

// short writes a number for an axis.
func short(f float64) string {
	switch {
	case f >= 1e6:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", f/1e6), ".0") + "M"
	case f >= 1e3:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", f/1e3), ".0") + "k"
	}
	return fmt.Sprintf("%.0f", f)
}

// A CutBar is one class in the drawing of who is cut by which limit.
type cutBar struct {
	Name   string
	Passed int64
	Cut    map[string]int64 // pages by bucket
}

// cutPlot draws the pages of each class: let through, and cut by each bucket.
func cutPlot(bars []cutBar, buckets []string) template.HTML {
	d := newDrawing("pages let through and refused, by class")
	label := func(b cutBar) string {
		total := b.Passed
		for _, n := range b.Cut {
			total += n
		}
		return fmt.Sprintf("%s (%s)", b.Name, short(float64(total)))
	}
	left := 60.0
	for _, b := range bars {
		left = min(max(left, textWidth(label(b))+12), plotW/2)
	}
	row := float64(plotH-plotTop-plotBot) / float64(max(len(bars), 1))
	for i, b := range bars {
		total := b.Passed
		for _, n := range b.Cut {
			total += n
		}
		y := plotTop + row*float64(i)
		d.text(left-8, y+row*0.5+4, "end", "mark", label(b))
		x := left
		part := func(n int64, class, what string) {
			if n == 0 {
				return
			}
			w := (plotW - left - plotR) * float64(n) / float64(max(total, 1))
			fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%s: %d of %d</title></rect>`, x, y+row*0.15, max(w, 1), row*0.7, class, template.HTMLEscapeString(what), n, total)
			x += w
		}
		part(b.Passed, "people", "let through")
		for k, name := range buckets {
			part(b.Cut[name], fmt.Sprintf("cut%d", k%4), "cut by "+name)
		}
	}
	legend := append([]string{"let through"}, buckets...)
	wide := 0.0
	for i := range legend {
		legend[i] = clipped(legend[i], 24)
		wide += textWidth(legend[i]) + 26
	}
	x := min(left, max(plotW-wide, 2)) // many names begin further left
	for i, name := range legend {
		class := "people"
		if i > 0 {
			class = fmt.Sprintf("cut%d", (i-1)%4)
		}
		if w := textWidth(name) + 16; x+w > plotW {
			d.text(x, plotH-9, "start", "tick", "…")
			break
		}
		fmt.Fprintf(d, `<rect x="%.1f" y="%d" width="10" height="10" class="%s"/>`, x, plotH-18, class)
		d.text(x+14, plotH-9, "start", "tick", name)
		x += textWidth(name) + 26
	}
	return d.done()
}

// clipped shortens a name that would push the others out.
func clipped(s string, to int) string {
	r := []rune(s)
	if len(r) <= to {
		return s
	}
	return string(r[:to-1]) + "…"
}
