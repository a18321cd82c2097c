package loggen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"
)

type role uint8

const (
	human role = iota
	university
	abuser
	crawler
	fake
	monitor
	feed
	preview
	crawl
)

// An actor is one address.
type actor struct {
	role   role
	text   string
	agents []string // of a shared address
	agent  string
	every  float64 // seconds between requests of a robot
	next   float64

	seen             bool
	pages            int64
	hour             int64
	inHour, inDay    int
	peakHour         int
	peakDay          int
	hours, days      []uint16
	archive, visited int
}

type generator struct {
	c          Config
	rnd        *rand.Rand
	truth      Truth
	people     []*actor
	robots     []*actor
	university *actor
	abuser     *actor
	crowd      []*actor
	today      []*actor
	fresh      []event
	seq        int
}

const (
	googlebot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/126.0.0.0 Safari/537.36"
	library   = "python-requests/2.32.3"
)

func newGenerator(c Config) *generator {
	if c.Start.IsZero() {
		c.Start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	}
	if c.Days <= 0 {
		c.Days = 7
	}
	if c.SessionsPerDay <= 0 {
		c.SessionsPerDay = (c.Humans + 1) / 2
	}
	if c.PagesMedian <= 0 {
		c.PagesMedian = 2.2
	}
	if c.Assets <= 0 {
		c.Assets = 8
	}
	if c.PagesSigma <= 0 {
		c.PagesSigma = 0.8
	}
	g := &generator{c: c, rnd: rand.New(rand.NewPCG(c.Seed, 0x5717e))}
	for i := range c.Humans {
		g.people = append(g.people, &actor{role: human, text: humanAddr(i), agent: browser(g.rnd.Uint32())})
	}
	// Parts draw from generators of their own, so that adding one leaves the
	// people's visits as they were.
	if u := c.University; u != nil && u.Users > 0 {
		a := &actor{role: university, text: "141.20.5.17"}
		r := rand.New(rand.NewPCG(c.Seed, 1))
		for range u.Users {
			a.agents = append(a.agents, browser(r.Uint32()))
		}
		g.university = a
	}
	if ab := c.Abuser; ab != nil && ab.PagesPerDay > 0 {
		g.abuser = &actor{role: abuser, text: "45.83.64.9", agent: library, every: 86400 / float64(ab.PagesPerDay)}
		if ab.Browser {
			g.abuser.agent = browser(uint32(c.Seed))
		}
		g.robots = append(g.robots, g.abuser)
	}
	add := func(n int, r role, agent string, every float64, addr string) {
		for i := range n {
			g.robots = append(g.robots, &actor{role: r, text: fmt.Sprintf(addr, i%250+1), agent: agent, every: every, next: float64(i * 7)})
		}
	}
	add(c.Crawlers, crawler, googlebot, 288, "66.249.66.%d")
	add(c.Fakes, fake, googlebot, 864, "103.21.7.%d")
	add(c.Monitors, monitor, "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", 300, "216.144.250.%d")
	add(c.Feeds, feed, "Feedly/1.0 (+http://www.feedly.com/fetcher.html; 12 subscribers)", 1800, "8.29.198.%d")
	add(c.Previews, preview, "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", 4320, "31.13.103.%d")
	if k := c.Crawl; k != nil {
		for i := range k.Addresses {
			g.crowd = append(g.crowd, &actor{role: crawl, text: crowdAddr(i), agent: browser(uint32(i))})
		}
	}
	return g
}

// humanAddr spreads people over many networks without meeting twice: an odd
// multiplier is a bijection of the 24 lower bits.
func humanAddr(i int) string {
	x := uint32(i) * 0x9e3779b1 & 0xffffff
	if i%5 == 4 {
		b := [16]byte{0x2a, 0x02, byte(x >> 16), byte(x >> 8), byte(x), 1, 0, byte(i)}
		b[8], b[15] = 0x1c, byte(x)
		return netip.AddrFrom16(b).String()
	}
	return netip.AddrFrom4([4]byte{84, byte(x >> 16), byte(x >> 8), byte(x)}).String()
}

func crowdAddr(i int) string {
	x := uint32(i) * 0x85ebca6b & 0xffffff
	return netip.AddrFrom4([4]byte{177, byte(x >> 16), byte(x >> 8), byte(x)}).String()
}

// browser makes one of some thousand User-Agents.
func browser(n uint32) string {
	systems := [...]string{"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "Linux; Android 10; K", "iPhone; CPU iPhone OS 17_5 like Mac OS X"}
	s := systems[n%5]
	switch n / 5 % 3 {
	case 0:
		return fmt.Sprintf("Mozilla/5.0 (%s; rv:%[2]d.0) Gecko/20100101 Firefox/%[2]d.0", s, 115+n/15%40)
	case 1:
		return fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.%d Safari/605.1.15", s, n/15%30)
	}
	return fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", s, 110+n/15%40)
}

// lognormal draws with a given median.
func lognormal(r *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*r.NormFloat64())
}
