package sizing

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/sizing/loggen"
)

// TestTrainingRoom: 40 phones behind one address, 6 pages each in 5 minutes,
// with assets: shared, and no abuser.
func TestTrainingRoom(t *testing.T) {
	t.Parallel()
	background, _ := generate(t, loggen.Config{Seed: 5, Days: 1, Start: time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC), Humans: 300})
	var b strings.Builder
	b.WriteString(background)
	for phone := range 40 {
		for p := range 6 {
			path := fmt.Sprintf("/articles/lesson-%d-%d", phone%3, p)
			b.WriteString(line("198.51.100.20", p*50/60, (phone+p*50)%60, path, "-", browserUA(phone), 200))
			b.WriteString(line("198.51.100.20", p*50/60, (phone+p*50)%60, "/css/app.css", "https://www.example.org"+path, browserUA(phone), 200))
		}
	}
	r := measure(t, b.String(), Options{})
	if len(r.Shared) != 1 || r.Shared[0].Address != "198.51.100.20" || r.Shared[0].Agents != 40 || r.Shared[0].Pages != 240 {
		t.Errorf("shared %+v", r.Shared)
	}
	for _, a := range r.Abusers {
		t.Errorf("abuser %+v", a)
	}
}

// TestScannerWithManyAgents: 135 User-Agents from one address without an asset:
// one program, not many people.
func TestScannerWithManyAgents(t *testing.T) {
	t.Parallel()
	background, _ := generate(t, loggen.Config{Seed: 5, Days: 1, Humans: 300, Assets: 4})
	var b strings.Builder
	b.WriteString(background)
	for i := range 270 {
		b.WriteString(line("198.51.100.30", i/60, i%60, fmt.Sprintf("/probe-%d", i), "-", browserUA(i%135), 404))
	}
	r := measure(t, b.String(), Options{})
	if len(r.Shared) != 0 || len(r.Abusers) != 1 || r.Abusers[0].Agents != 135 || r.Abusers[0].Errors != 1 {
		t.Errorf("shared %+v, abusers %+v", r.Shared, r.Abusers)
	}
	// In disguise: pages that exist, a favicon for each, and a guess at an image.
	b.Reset()
	b.WriteString(background)
	for i := range 270 {
		for _, path := range []string{fmt.Sprintf("/p-%d", i%40), "/favicon.ico", "/static/guess.png"} {
			status := 200
			if path == "/static/guess.png" {
				status = 404
			}
			b.WriteString(line("198.51.100.30", i/60, i%60, path, "-", browserUA(i%135), status))
		}
	}
	r = measure(t, b.String(), Options{})
	if len(r.Shared) != 0 || len(r.Abusers) != 1 || r.Abusers[0].AssetsPerPage != 0 {
		t.Errorf("in disguise: shared %+v, abusers %+v", r.Shared, r.Abusers)
	}
}

// TestDistributedCrawl: 5,000 addresses, 3 pages each in ten minutes: no promise
// by address.
func TestDistributedCrawl(t *testing.T) {
	t.Parallel()
	log, truth := generate(t, loggen.Config{Seed: 9, Days: 1, Humans: 2000, Assets: 2, Crawl: &loggen.Crawl{Addresses: 5000, Pages: 3, Within: 10 * time.Minute}})
	r := measure(t, log, Options{})
	p := r.Proposal
	if p.Finding != Distributed || p.Policy != "" || p.Effect.RoboticPages < truth.CrawlPages || p.Effect.RoboticShare > 0.01 {
		t.Errorf("proposal %+v", p)
	}
	text := strings.Join(p.Text, "\n")
	for _, want := range []string{"No promise by address", "/24 and /48", "/16 and /32", "global"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestOneProxy: one address with nearly all pages and many agents is a proxy.
func TestOneProxy(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 300 {
		c := "10.0.0.1"
		if i == 0 {
			c = "10.0.0.2"
		}
		b.WriteString(line(c, i/60, i%60, fmt.Sprintf("/p%d", i), "-", browserUA(i%50), 200))
	}
	r := measure(t, b.String(), Options{})
	if r.Proposal.Finding != OneProxy || !strings.Contains(strings.Join(r.Proposal.Text, " "), "This is your proxy: 10.0.0.1") || r.Proposal.Policy != "" {
		t.Errorf("proposal %+v", r.Proposal)
	}
}

// TestLoneScanner: who asks for what does not exist under many names is no proxy,
// however alone in the log; nor is a quiet one.
func TestLoneScanner(t *testing.T) {
	t.Parallel()
	for _, n := range []int{60, 300} {
		var b strings.Builder
		for i := range n {
			status := 404
			if i%20 == 0 {
				status = 200
			}
			b.WriteString(line("198.51.100.31", i/60, i%60, fmt.Sprintf("/wp-%d", i), "-", browserUA(i%50), status))
		}
		r := measure(t, b.String(), Options{})
		if r.Proposal.Finding == OneProxy || len(r.Abusers) != 1 || r.Abusers[0].Address != "198.51.100.31" || !strings.HasPrefix(r.Abusers[0].Verdict, "scanner: 95 %") {
			t.Errorf("%d pages: %s, abusers %+v", n, r.Proposal.Finding, r.Abusers)
		}
	}
}

// TestBurst: dozens of pages in a second, or half a hundred in a minute, are no
// engaged visitor, even with assets and links; a reader who opens three tabs at
// once is.
func TestBurst(t *testing.T) {
	t.Parallel()
	background, _ := generate(t, loggen.Config{Seed: 5, Days: 1, Humans: 300, Assets: 2, Start: time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)})
	for name, c := range map[string]struct {
		pages   int
		at      func(i int) (min, sec int)
		engaged bool
	}{
		"in a second":   {24, func(i int) (int, int) { return 1, 7 }, false},
		"in a minute":   {31, func(i int) (int, int) { return 1, i * 59 / 31 }, false},
		"pairs":         {24, func(i int) (int, int) { return i / 4, i % 4 / 2 * 17 }, false},
		"a quick click": {29, func(i int) (int, int) { return i / 5, []int{0, 5, 21, 33, 50}[i%5] }, true},
		"three tabs":    {3, func(i int) (int, int) { return 1, 7 }, true},
	} {
		var b strings.Builder
		b.WriteString(background)
		for i := range c.pages {
			min, sec := c.at(i)
			path := fmt.Sprintf("/articles/%d", i)
			b.WriteString(line("198.51.100.41", min, sec, path, "https://www.example.org/", browserUA(1), 200))
			b.WriteString(line("198.51.100.41", min, sec, "/css/app.css", "https://www.example.org"+path, browserUA(1), 200))
			b.WriteString(line("198.51.100.41", min, sec, "/js/app.js", "https://www.example.org"+path, browserUA(1), 200))
		}
		r := replay(t, b.String(), ReplayOptions{Policy: hourDay(2, 2)})
		got := r.client("198.51.100.41")
		if (got.Class == "engaged") != c.engaged || got.Pages != int64(c.pages) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLimitAbove: above everybody where there is room below the abuser, above the
// p99.9 where there is not, and no outlier sets a limit.
func TestLimitAbove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ p999, most, abuser, want int }{
		{30, 30, 0, 45}, {30, 90, 0, 90}, {30, 91, 0, 100}, {30, 151, 0, 45},
		{30, 90, 500, 90}, {30, 90, 91, 90}, {30, 91, 92, 45}, {30, 91, 93, 92}, {30, 40, 44, 41}, {30, 40, 41, 35}, {30, 30, 100, 45},
	} {
		if got := limitAbove(c.p999, c.most, c.abuser); got != c.want {
			t.Errorf("p99.9 %d, most %d, abuser %d: %d, want %d", c.p999, c.most, c.abuser, got, c.want)
		}
	}
}

// TestSlidingPeak: the hour that slides over a full hour holds both sides.
func TestSlidingPeak(t *testing.T) {
	t.Parallel()
	var s slidingPeak
	for i := range int64(10) {
		s.add(3600 - 10 + 2*i)
	}
	if s.peak != 10 { // in two hours five and five
		t.Errorf("peak %d, want 10", s.peak)
	}
	s = slidingPeak{}
	for range 8 { // at the beginning of an hour, and a page later than an hour after
		s.add(7200)
	}
	s.add(7200 + 3600 + 36)
	if s.peak != 9 { // the counter still estimates 99 % of eight
		t.Errorf("peak %d, want 9", s.peak)
	}
}

// TestTooLittleData says how much it takes, and proposes nothing.
func TestTooLittleData(t *testing.T) {
	t.Parallel()
	log, _ := generate(t, loggen.Config{Seed: 5, Days: 1, Humans: 100})
	r := measure(t, log, Options{})
	if r.Proposal.Finding != TooLittleData || r.Proposal.Policy != "" || !strings.Contains(r.Proposal.Text[0], "1000") {
		t.Errorf("proposal %+v", r.Proposal)
	}
	if r := measure(t, "", Options{}); r.Proposal.Finding != NoPages {
		t.Errorf("empty log: %+v", r.Proposal)
	}
}

// TestEmbeddedImages: a page and 40 images without extension that name it as
// referrer within a second are one page.
func TestEmbeddedImages(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(line("198.51.100.40", 1, 10, "/gallery", "-", browserUA(1), 200))
	for i := range 40 {
		b.WriteString(line("198.51.100.40", 1, 10+i%2, fmt.Sprintf("/media/%d", i), "https://www.example.org/gallery", browserUA(1), 200))
	}
	b.WriteString(line("198.51.100.40", 1, 50, "/next", "https://www.example.org/gallery", browserUA(1), 200))
	r := measure(t, b.String(), Options{})
	if r.Traffic.Pages != 2 || r.Traffic.Embedded != 40 || r.Everyone.PerHour.Max != 2 || r.Everyone.PerDay.Max != 2 {
		t.Errorf("traffic %+v, per hour %v", r.Traffic, r.Everyone.PerHour)
	}
}

// TestPolicyFile: the proposal is a policy that package policy reads, with the
// limits and the measured numbers in it.
func TestPolicyFile(t *testing.T) {
	t.Parallel()
	log, truth := generate(t, planted(3))
	r := measure(t, log, Options{})
	f, _, err := policy.Parse("proposed.yaml", []byte(r.Proposal.Policy), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Proposal.Policy)
	}
	p, err := f.Core(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Observe || len(p.Buckets) != 2 || p.Buckets[0].Limit != int64(r.Proposal.Hour) || p.Buckets[1].Limit != int64(r.Proposal.Day) {
		t.Errorf("policy %+v", p)
	}
	if n, ok := p.Networks.LookupNetwork(netip.MustParseAddr(truth.University.Address)); !ok || !n.Exempt || !strings.Contains(n.Reason, "browsers") {
		t.Errorf("the university's exception: %+v %v", n, ok)
	}
}

// TestNoGap: a program that stays below what people load in a day cannot be
// parted from them by a number, and the report says so.
func TestNoGap(t *testing.T) {
	t.Parallel()
	log, _ := generate(t, loggen.Config{Seed: 4, Days: 2, Humans: 1500, SessionsPerDay: 900, Assets: 2})
	before := measure(t, log, Options{})
	if before.Proposal.Finding != Limits || before.Proposal.AbuserDay != 0 || !strings.Contains(strings.Join(before.Proposal.Text, " "), "No abuser stands out") {
		t.Fatalf("without a program: %+v", before.Proposal)
	}
	n := before.Humans.PerHour.P999 + 1
	if n > before.Humans.PerDay.P999 {
		t.Fatalf("this seed leaves no room between %d an hour and %d a day", n, before.Humans.PerDay.P999)
	}
	var b strings.Builder
	b.WriteString(log)
	for i := range n {
		b.WriteString(strings.Replace(line("198.51.100.60", i%60, 1, fmt.Sprintf("/p%d", i), "-", "python-requests/2", 200), "05/Mar", "02/Mar", 1))
	}
	r := measure(t, b.String(), Options{})
	if r.Proposal.Finding != NoGap || r.Proposal.Policy != "" || len(r.Abusers) != 1 || !strings.Contains(r.Proposal.Text[0], fmt.Sprintf("stays at %d", n)) {
		t.Errorf("%+v, abusers %+v", r.Proposal, r.Abusers)
	}
}
