package loggen

import "time"

// Config says what to plant. The zero value of each part leaves it out, except
// where a default is named.
type Config struct {
	Seed  uint64
	Start time.Time // default 2026-03-02 00:00 UTC, a Monday
	Days  int       // default 7
	// MaxLines ends the log early; 0 = no bound.
	MaxLines int64
	// Port writes clients as address:port ([address]:port for IPv6), a new port for each line.
	Port bool

	// Humans is the number of people, each with an address (one in five IPv6).
	Humans int
	// SessionsPerDay is the mean number of visits of all people in a day; default
	// half as many as people.
	SessionsPerDay int
	// PagesMedian and PagesSigma shape the lognormal pages per session; defaults
	// 2.2 and 0.8.
	PagesMedian, PagesSigma float64

	// Assets is about the mean number of assets with the first page of a session;
	// later pages come with up to half as many. Default 8.
	Assets int

	Abuser     *Abuser
	University *University
	Crawl      *Crawl

	Crawlers int // verified crawler addresses, 300 pages a day each
	Fakes    int // addresses that pretend to be the same crawler, 100 pages a day each
	Monitors int // probes every five minutes
	Feeds    int // feed readers, every half hour
	Previews int // addresses that fetch link previews, 20 pages a day each
}

// An Abuser loads pages around the clock, evenly, without assets or referrers,
// from one address.
type Abuser struct {
	PagesPerDay int // 500 is 20.8 an hour
	// Browser gives it a browser's User-Agent instead of a library's.
	Browser bool
}

// A University is many people behind one address, in working hours.
type University struct {
	Users          int // people with a browser of their own
	SessionsPerDay int
}

// A Crawl is spread over many addresses, with a browser's User-Agent.
type Crawl struct {
	Addresses int
	Pages     int           // by each address
	Within    time.Duration // all of it, from 12:00 of the first day
}

// Truth is what was written.
type Truth struct {
	Lines    int64
	Pages    int64 // navigations of everybody
	From, To time.Time

	Human      Population
	Abuser     Planted
	University Planted
	Crawlers   []string
	Fakes      []string
	Monitors   []string
	Feeds      []string
	Previews   []string
	CrawlPages int64
	Clients    int // distinct addresses
}

// Population is the people without the university.
type Population struct {
	Addresses int
	Engaged   int // addresses with two or more pages in some day
	Pages     int64
	// PerHour and PerDay hold the number of address-hours (address-days) with n
	// pages at index n, of the engaged; the last index holds what lies beyond.
	PerHour, PerDay [512]int64
}

// Quantile returns the smallest n that at least the share q of counts does not
// exceed; 0 for none. It is the definition by nearest rank.
func Quantile(counts []int64, q float64) int {
	var total int64
	for _, c := range counts {
		total += c
	}
	var sum int64
	for n, c := range counts {
		if sum += c; c > 0 && float64(sum) >= q*float64(total) {
			return n
		}
	}
	return 0
}

// Planted is one address of known volume.
type Planted struct {
	Address  string // as Addr.String; "" = not planted
	Pages    int64
	PeakHour int
	PeakDay  int
	Agents   int
}
