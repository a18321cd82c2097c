package loggen

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const site = "https://www.example.org"

// dayShape is the share of a day's visits that begin in each hour, in thousandths.
var dayShape = [24]int{12, 8, 6, 5, 6, 10, 18, 30, 45, 55, 60, 60, 58, 58, 58, 58, 56, 56, 60, 68, 72, 66, 46, 29}

// workShape is that of a university.
var workShape = [24]int{0, 0, 0, 0, 0, 0, 0, 20, 90, 130, 130, 120, 90, 110, 120, 100, 60, 30, 0, 0, 0, 0, 0, 0}

// hour makes the requests that begin in one hour. Each part has a random source
// of its own, made of the seed, its number and the hour.
func (g *generator) hour(from int64) {
	at := int(from / 3600 % 24)
	if n := len(g.people); n > 0 {
		r := g.source(10, from)
		for range poissonLike(r, float64(g.c.SessionsPerDay)*float64(dayShape[at])/1000) {
			a := g.people[r.IntN(n)]
			g.visit(r, a, a.agent, from+r.Int64N(3600))
		}
	}
	if g.university != nil {
		r := g.source(11, from)
		for range poissonLike(r, float64(g.c.University.SessionsPerDay)*float64(workShape[at])/1000) {
			g.visit(r, g.university, g.university.agents[r.IntN(len(g.university.agents))], from+r.Int64N(3600))
		}
	}
	r := g.source(12, from)
	for _, a := range g.robots {
		for ; a.next < float64(from+3600-g.c.Start.Unix()); a.next += a.every {
			g.robot(r, a, g.c.Start.Unix()+int64(a.next))
		}
	}
	if k := g.c.Crawl; k != nil && from == g.c.Start.Unix()+12*3600 {
		r := g.source(13, from)
		span := int64(max(k.Within, time.Minute) / time.Second)
		for _, a := range g.crowd {
			for range k.Pages {
				a.visited++
				g.add(event{at: from + r.Int64N(span), who: a, path: article(r), ref: "-", agent: a.agent, method: "GET", status: 200, bytes: 18_000, page: true})
			}
		}
	}
}

func (g *generator) source(part uint64, from int64) *rand.Rand {
	return rand.New(rand.NewPCG(g.c.Seed^part<<56, uint64(from)))
}

// poissonLike draws a count with mean m: exact enough for arrivals.
func poissonLike(r *rand.Rand, m float64) int {
	n := 0
	for t := r.ExpFloat64(); t < m; t += r.ExpFloat64() {
		n++
	}
	return n
}

func (g *generator) add(e event) {
	g.seq++
	e.seq = g.seq
	g.fresh = append(g.fresh, e)
}

func article(r *rand.Rand) string {
	return fmt.Sprintf("/articles/%d/%02d/story-%d", 2018+r.IntN(8), 1+r.IntN(12), r.IntN(4000))
}

// visit is one session: pages with assets behind them, each page reached from
// the one before, with time to read in between.
func (g *generator) visit(r *rand.Rand, a *actor, agent string, at int64) {
	n := max(1, min(80, int(lognormal(r, g.c.PagesMedian, g.c.PagesSigma)+0.5)))
	ref := "-"
	switch r.IntN(3) {
	case 0:
		ref = "https://www.google.com/"
	case 1:
		ref = "https://news.example.net/"
	}
	for i := range n {
		path := "/"
		if i > 0 || r.IntN(3) > 0 {
			path = article(r)
		}
		status := 200
		if r.IntN(60) == 0 {
			status = 404
		}
		g.add(event{at: at, who: a, path: path, ref: ref, agent: agent, method: "GET", status: status, bytes: 9_000 + r.IntN(30_000), page: true})
		here := site + path
		assets := 1 + r.IntN(max(1, g.c.Assets/2))
		if i == 0 {
			assets = max(1, g.c.Assets-3) + r.IntN(min(7, 2*g.c.Assets))
		}
		for k := range assets {
			g.add(event{at: at + int64(r.IntN(2)), who: a, path: asset(i, k, r), ref: here, agent: agent, method: "GET", status: 200, bytes: 2_000 + r.IntN(90_000)})
		}
		ref = here
		at += 3 + int64(lognormal(r, 35, 1))
	}
}

func asset(page, k int, r *rand.Rand) string {
	if page == 0 {
		switch k {
		case 0:
			return "/_next/static/css/app.css"
		case 1:
			return "/_next/static/chunks/main.js"
		case 2:
			return "/fonts/text.woff2"
		case 3:
			return "/favicon.ico"
		}
	}
	return fmt.Sprintf("/images/photo-%d.jpg", r.IntN(5000))
}

// robot is one request of an address without a person.
func (g *generator) robot(r *rand.Rand, a *actor, at int64) {
	e := event{at: at, who: a, ref: "-", agent: a.agent, method: "GET", status: 200, bytes: 18_000 + r.IntN(9000), page: true}
	switch a.role {
	case abuser: // pages of an archive that never ends
		a.archive++
		e.at += int64(r.IntN(20))
		e.path = fmt.Sprintf("/archive?before=%d", 900_000-a.archive)
	case monitor:
		e.path = "/"
	case feed:
		e.path, e.page = "/feed/", false
	default:
		e.path = article(r)
	}
	g.add(e)
}
