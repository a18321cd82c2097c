package costmodel

import (
	"html/template"
	"io"
	"strings"
)

// page is the whole of --html: no script, no font and no image from elsewhere.
var page = template.Must(template.New("cost").Funcs(template.FuncMap{
	"window": Window, "count": Count, "mark": mark, "capital": capital, "dated": withAge,
}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>What counting costs</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;width:100%}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums}.no{color:#777}.bad{color:#b00020}.box{border:2px solid #222;padding:.6rem 1rem;margin:1rem 0}svg{width:100%;height:auto}small{color:#555}
</style>
<h1>What counting {{count .Traffic.Navigations}} navigations a month costs</h1>
<div class="box">
{{with .Choice}}<p><strong>Recommended: {{.Title}}.</strong> {{capital .Reason}}.</p>{{else}}<p><strong>Recommended: none.</strong> {{capital .NoChoice}}.</p>{{end}}
<p><strong>Verdict.</strong> {{capital .Verdict.Text}}.</p></div>
<p>Traffic from {{.Traffic.From}}: {{.Traffic.PerClientDay.Round 2}} navigations per client and day, busiest second {{.Traffic.PeakPerSecond.Round 2}}. US dollars before tax. Google {{.GCPRegion}}, AWS {{.AWSRegion}}. {{.Date}}.</p>
<h2>Cost against volume</h2>
<p>Without free quantities and without what runs Stile. Dashed: where the cheapest store changes.</p>
{{.Plot}}
<ul>{{range .Winners}}<li>from {{count .From}} a month: {{.Title}}</li>{{end}}</ul>
<h2>Stores</h2>
<table><tr><th>store<th class="n">operations<th class="n">$/million<th class="n">a month<th class="n">with free<th>dominates<th>steady p50<th>notes</tr>
{{range .Stores}}<tr{{if .Impossible}} class="no"{{end}}><td>{{.Title}}{{mark .Weakest}}<td class="n">{{.Operations}}<td class="n">{{.PerMillion}}<td class="n">{{dated .Month .Old}}<td class="n">{{.WithFree}}<td>{{.Dominates}}<td>{{with .Measured}}{{printf "%.3g" .P50}} us, {{.Kind}}{{if .Loopback}}, loopback{{end}}{{else}}unknown{{end}}
<td>{{range .Impossible}}<span class="bad">{{.}}</span>. {{end}}{{.Note}}</tr>
{{end}}</table>
<p><small>Times of loopback and of stand-ins rank nothing. (!) holds a figure from memory, (old) a price of more than 180 days ago.</small></p>
<h2>Hot keys</h2>
{{if .Traffic.Keys}}{{else}}<p>The hottest keys are unknown: give --hot or --size-report.</p>{{end}}
<ul>{{range .Stores}}{{$t := .Title}}{{range .Hot}}<li{{if .Breaks}} class="bad"{{end}}>{{$t}}: {{.Text}}</li>{{end}}{{end}}</ul>
<h2>What runs Stile</h2>
<table><tr><th>placement<th>where<th class="n">$/million<th class="n">a month<th class="n">with free<th>dominates</tr>
{{range .Placements}}<tr><td>{{.Title}}<td>{{.Provider}}<td class="n">{{.PerMillion}}<td class="n">{{dated .Month .Old}}<td class="n">{{.WithFree}}<td>{{.Dominates}}</tr>
{{end}}</table>
<p><small>Assumed: origin {{.Assumptions.HoldMillis}} ms, authorizer {{.Assumptions.DecideMillis}} ms, page {{count .Assumptions.PageBytes}} bytes, log line {{.Assumptions.LogBytes}} bytes, {{.Assumptions.Requests}} request(s) per navigation.</small></p>
<h2>Instead of Stile</h2>
<table><tr><th>product<th class="n">a month<th>counts<th>longest window<th>daily cap for each visitor<th>exact</tr>
{{range .Instead}}<tr><td>{{.Name}}{{mark .Confidence}}<td class="n">{{.Month}}<td>{{.Counts}}<td>{{window .Longest}}<td>{{.Daily}}<td>{{.Exact}}</tr>
{{end}}</table>
<h2>Sources</h2>
<ul>{{range .Measured}}<li>measured: {{.File}} of {{.Date.Format "2006-01-02"}}, {{.Server}} ({{.Kind}}), {{.Machine}}</li>{{end}}
{{range .Cited}}<li>{{.}}</li>{{end}}</ul>
</html>
`))

// HTML writes the report as one page that needs nothing from elsewhere.
func (r *Report) HTML(out io.Writer) error {
	var cited []string
	for _, f := range r.Figures {
		cited = append(cited, r.cite(f))
	}
	var b strings.Builder
	if err := page.Execute(&b, struct {
		*Report
		Plot  template.HTML // of this package's own making
		Cited []string
	}{r, template.HTML(r.plot()), cited}); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}
