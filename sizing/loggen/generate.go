package loggen

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An event is one request to come.
type event struct {
	at     int64 // Unix seconds
	seq    int   // of equal times, the first made comes first
	who    *actor
	path   string
	ref    string
	agent  string
	method string
	status int
	bytes  int
	page   bool
}

// Generate writes the log in order of time and returns its truth. The error is
// the writer's. Memory grows with the requests of one hour and with the number
// of addresses, not with lines.
func Generate(w io.Writer, c Config) (Truth, error) {
	g := newGenerator(c)
	out := bufio.NewWriterSize(w, 256<<10)
	var pending []event
	start := g.c.Start.Unix()
	hours := int64(g.c.Days) * 24
	for h := range hours {
		g.hour(start + h*3600)
		pending = append(pending, g.fresh...)
		g.fresh = g.fresh[:0]
		slices.SortFunc(pending, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		end := start + (h+1)*3600
		n := 0
		for n < len(pending) && pending[n].at < end {
			if g.c.MaxLines > 0 && g.truth.Lines >= g.c.MaxLines {
				g.fold()
				g.count()
				return g.truth, out.Flush()
			}
			if err := g.write(out, &pending[n]); err != nil {
				return g.truth, err
			}
			n++
		}
		pending = pending[:copy(pending, pending[n:])]
		if (h+1)%24 == 0 {
			g.fold()
		}
	}
	// Visits that the end of the log cuts short stay cut, as in real logs.
	g.count()
	return g.truth, out.Flush()
}

func (g *generator) write(out *bufio.Writer, e *event) error {
	b := out.AvailableBuffer()
	bracket := g.c.Port && strings.IndexByte(e.who.text, ':') >= 0
	if bracket {
		b = append(b, '[')
	}
	b = append(b, e.who.text...)
	if bracket {
		b = append(b, ']')
	}
	if g.c.Port {
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(1024+g.rnd.IntN(64000)), 10)
	}
	b = append(b, " - - ["...)
	b = time.Unix(e.at, 0).UTC().AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = append(b, e.method...)
	b = append(b, ' ')
	b = append(b, e.path...)
	b = append(b, ` HTTP/1.1" `...)
	b = strconv.AppendInt(b, int64(e.status), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(e.bytes), 10)
	b = append(b, ` "`...)
	b = append(b, e.ref...)
	b = append(b, `" "`...)
	b = append(b, e.agent...)
	b = append(b, "\"\n"...)
	g.note(e)
	_, err := out.Write(b)
	return err
}

// note keeps the truth of a line that is written.
func (g *generator) note(e *event) {
	t := &g.truth
	if t.Lines == 0 {
		t.From = time.Unix(e.at, 0).UTC()
	}
	t.To = time.Unix(e.at, 0).UTC()
	t.Lines++
	if !e.who.seen {
		e.who.seen = true
		t.Clients++
	}
	if !e.page {
		return
	}
	t.Pages++
	a := e.who
	a.pages++
	if h := e.at / 3600; h != a.hour {
		g.closeHour(a)
		a.hour = h
	}
	a.inHour++
	a.inDay++
	if a.inDay == 1 {
		g.today = append(g.today, a)
	}
	if a.role == crawl {
		t.CrawlPages++
	}
}

// closeHour moves an actor's finished hour into its history.
func (g *generator) closeHour(a *actor) {
	if a.inHour > 0 {
		a.hours = append(a.hours, uint16(min(a.inHour, 65535)))
		a.peakHour = max(a.peakHour, a.inHour)
	}
	a.inHour = 0
}

// fold closes the day.
func (g *generator) fold() {
	for _, a := range g.today {
		g.closeHour(a)
		a.days = append(a.days, uint16(min(a.inDay, 65535)))
		a.peakDay = max(a.peakDay, a.inDay)
		a.inDay = 0
	}
	g.today = g.today[:0]
}

// count turns histories into the distributions of the engaged.
func (g *generator) count() {
	h := &g.truth.Human
	for _, a := range g.people {
		if a.pages == 0 {
			continue
		}
		h.Addresses++
		h.Pages += a.pages
		if a.peakDay < 2 {
			continue
		}
		h.Engaged++
		for _, n := range a.hours {
			h.PerHour[min(int(n), len(h.PerHour)-1)]++
		}
		for _, n := range a.days {
			h.PerDay[min(int(n), len(h.PerDay)-1)]++
		}
	}
	plant := func(a *actor) Planted {
		if a == nil {
			return Planted{}
		}
		return Planted{Address: a.text, Pages: a.pages, PeakHour: a.peakHour, PeakDay: a.peakDay, Agents: max(1, len(a.agents))}
	}
	g.truth.Abuser, g.truth.University = plant(g.abuser), plant(g.university)
	for _, a := range g.robots {
		switch a.role {
		case crawler:
			g.truth.Crawlers = append(g.truth.Crawlers, a.text)
		case fake:
			g.truth.Fakes = append(g.truth.Fakes, a.text)
		case monitor:
			g.truth.Monitors = append(g.truth.Monitors, a.text)
		case feed:
			g.truth.Feeds = append(g.truth.Feeds, a.text)
		case preview:
			g.truth.Previews = append(g.truth.Previews, a.text)
		}
	}
}
