package sizing

import (
	_ "embed"
	"html/template"
	"io"
	"time"
)

//go:embed report.html
var pageSource string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"bytes": bytesText, "percent": percent, "counts": countsText, "safe": safeText, "share": share, "when": when,
}).Parse(pageSource))

// WriteHTML writes one self-contained page: no scripts, no requests to anywhere,
// legible in light, dark and print. The limits drawn are those of the replay's
// policy, or the proposed ones if there is no replay (nil).
func (r *Report) WriteHTML(w io.Writer, replay *Replayed) error {
	type timeline struct {
		Heavy
		Plot template.HTML
	}
	hour, day := r.Proposal.Hour, r.Proposal.Day
	if replay != nil {
		hour, day = replay.addressLimit(time.Hour), replay.addressLimit(24*time.Hour)
	}
	data := struct {
		*Report
		Hour, Day template.HTML
		Timelines []timeline
		Replay    *Replayed
		Cut       template.HTML
	}{
		Report: r,
		Hour:   distributionPlot("pages per address and hour", r.Humans.PerHour, r.Everyone.PerHour, hour),
		Day:    distributionPlot("pages per address and day", r.Humans.PerDay, r.Everyone.PerDay, day),
		Replay: replay,
	}
	for _, h := range r.Abusers {
		if len(h.Days) > 0 {
			data.Timelines = append(data.Timelines, timeline{h, timelinePlot(h, r.From, r.To, hour)})
		}
	}
	for _, h := range r.Shared[:min(len(r.Shared), 4)] {
		data.Timelines = append(data.Timelines, timeline{h, timelinePlot(h, r.From, r.To, hour)})
	}
	if replay != nil {
		data.Cut = replay.plot()
	}
	return pageTemplate.Execute(w, data)
}
