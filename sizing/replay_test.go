package sizing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"html/template"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/sizing/accesslog"
	"github.com/stilehq/stile/sizing/loggen"
	"github.com/stilehq/stile/stores/memory"
)

func hourDay(hour, day int) core.Policy {
	return core.Policy{Site: "test", Claims: core.ClaimsOff, Buckets: []core.Bucket{
		{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: int64(hour), Window: time.Hour},
		{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: int64(day), Window: 24 * time.Hour},
	}}
}

func replay(t testing.TB, log string, o ReplayOptions) *Replayed {
	t.Helper()
	o.Log.Now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	o.NewStore = func() core.Store { return memory.New(memory.Config{}) }
	r, err := Replay(context.Background(), []accesslog.Input{accesslog.Reader("test", strings.NewReader(log))}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// network is one exempt range.
type network core.Network

func (n network) LookupNetwork(a netip.Addr) (core.Network, bool) {
	return core.Network(n), n.Prefix.Contains(a)
}

func (r *Replayed) class(name string) ReplayClass {
	for _, c := range r.Classes {
		if c.Name == name {
			return c
		}
	}
	return ReplayClass{}
}

func (r *Replayed) client(addr string) ReplayClient {
	for _, c := range r.Limited {
		if c.Address == addr {
			return c
		}
	}
	return ReplayClient{}
}

// TestReplayProposal: the proposed limits, played over the log that they came
// from, cut the abuser to the day limit and touch no engaged visitor and, with
// the proposed exception, not the university.
func TestReplayProposal(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4} {
		log, truth := generate(t, planted(seed))
		m := measure(t, log, Options{})
		p := hourDay(m.Proposal.Hour, m.Proposal.Day)
		p.Networks = network{Prefix: netip.MustParsePrefix(truth.University.Address + "/32"), Exempt: true, Reason: "university"}
		r := replay(t, log, ReplayOptions{Policy: p})
		if r.Pages != truth.Pages {
			t.Errorf("seed %d: %d pages replayed, %d written", seed, r.Pages, truth.Pages)
		}
		abuser := r.client(truth.Abuser.Address)
		want := truth.Abuser.Pages - plantedDays*int64(m.Proposal.Day)
		if abuser.Class != "robotic" || abuser.Refused != want || abuser.ByBucket["day"] != want {
			t.Errorf("seed %d: abuser %+v, want %d refused by the day limit of %d", seed, abuser, want, m.Proposal.Day)
		}
		if c := r.class("engaged"); c.Limited != 0 {
			t.Errorf("seed %d: %v", seed, c)
		}
		if c := r.class("shared"); c.Refused != 0 || c.Addresses != 1 {
			t.Errorf("seed %d: university: %v", seed, c)
		}
		if len(r.Exceptions) != 1 || r.Exceptions[0].Pages != truth.University.Pages || !strings.Contains(r.Exceptions[0].Name, "university") {
			t.Errorf("seed %d: exceptions %+v", seed, r.Exceptions)
		}
		bare := replay(t, log, ReplayOptions{Policy: hourDay(m.Proposal.Hour, m.Proposal.Day)})
		if got := bare.class("shared").Refused; got != r.Exceptions[0].Saved {
			t.Errorf("seed %d: the exception saves %d, without it %d are refused", seed, r.Exceptions[0].Saved, got)
		}
	}
}

// TestReplayWrittenProposal: the policy as it is written, exceptions and all,
// refuses neither engaged visitors nor the university nor the site's own monitor
// and office, over several seeds.
func TestReplayWrittenProposal(t *testing.T) {
	t.Parallel()
	for seed := uint64(5); seed <= 8; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			log, truth := generate(t, planted(seed))
			var b strings.Builder
			b.WriteString(log)
			for i := range 300 { // the office's own script, and a scraper that calls itself a monitor
				b.WriteString(strings.Replace(line("198.51.100.77", i/60, i%60, fmt.Sprintf("/o/%d", i), "-", "smoke-test/1", 200), "05/Mar", "02/Mar", 1))
				b.WriteString(strings.Replace(line("198.51.100.88", i/60, i%60, fmt.Sprintf("/s/%d", i), "-", "Pingdom.com_bot_version_1.4", 200), "05/Mar", "02/Mar", 1))
			}
			o := Options{Monitoring: []netip.Prefix{netip.MustParsePrefix("198.51.100.76/30")}}
			m := measure(t, b.String(), o)
			f, _, err := policy.Parse("proposed.yaml", []byte(m.Proposal.Policy), nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, m.Proposal.Policy)
			}
			p, err := f.Core(time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
			if err != nil {
				t.Fatal(err)
			}
			r := replay(t, b.String(), ReplayOptions{Options: o, Policy: p})
			for _, class := range []string{"engaged", "shared"} {
				if c := r.class(class); c.Refused != 0 || c.Addresses == 0 {
					t.Errorf("%v; %d an hour, %d a day", c, m.Proposal.Hour, m.Proposal.Day)
				}
			}
			if c := r.class("monitoring"); c.Limited != 1 || r.client("198.51.100.88").Refused != int64(300-min(m.Proposal.Hour, m.Proposal.Day)) {
				t.Errorf("%v; want the false monitor alone limited", c)
			}
			if want := "# not exempt: 198.51.100.88/32 says to be Pingdom but asks for"; !strings.Contains(m.Proposal.Policy, want) ||
				!strings.Contains(m.Proposal.Policy, "198.51.100.76/30") || !strings.Contains(m.Proposal.Policy, truth.Monitors[0]+"/32") {
				t.Errorf("want %q and the exceptions in\n%s", want, m.Proposal.Policy)
			}
			if got := r.client(truth.Abuser.Address).Refused; got != truth.Abuser.Pages-plantedDays*int64(m.Proposal.Day) {
				t.Errorf("the abuser lost %d", got)
			}
		})
	}
}

// TestReplayModes: observing and enforcing give the same numbers, and so does a
// log whose lines are a minute out of order.
func TestReplayModes(t *testing.T) {
	t.Parallel()
	log, _ := generate(t, loggen.Config{Seed: 6, Days: 1, Humans: 200, Abuser: &loggen.Abuser{PagesPerDay: 900}})
	p := hourDay(20, 100)
	enforce := replay(t, log, ReplayOptions{Policy: p})
	p.Observe = true
	observe := replay(t, log, ReplayOptions{Policy: p})
	if enforce.Refused != observe.Refused || enforce.Refused == 0 || enforce.LimitedAddresses != observe.LimitedAddresses {
		t.Errorf("enforce refuses %d, observe %d", enforce.Refused, observe.Refused)
	}
	lines := strings.SplitAfter(log, "\n")
	for i := 0; i+1 < len(lines)-1; i += 2 {
		lines[i], lines[i+1] = lines[i+1], lines[i]
	}
	p.Observe = false
	if shuffled := replay(t, strings.Join(lines, ""), ReplayOptions{Policy: p}); shuffled.Refused != enforce.Refused {
		t.Errorf("in order %d refused, swapped in pairs %d", enforce.Refused, shuffled.Refused)
	}
}

// TestReplayNeverFires: a threshold that nothing reaches is said to be one.
func TestReplayNeverFires(t *testing.T) {
	t.Parallel()
	log, _ := generate(t, loggen.Config{Seed: 6, Days: 1, Humans: 100})
	p := core.Policy{Site: "test", Claims: core.ClaimsOff, Buckets: []core.Bucket{
		{Name: "flood", Key: rows.Address, Algorithm: core.FixedWindow, Limit: 250_000, Window: 5 * time.Minute}}}
	r := replay(t, log, ReplayOptions{Policy: p})
	if r.Refused != 0 || !r.Buckets[0].Never || r.Buckets[0].Window != "5m" || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "never fires on this log") || r.BadNews() {
		t.Errorf("%+v", r)
	}
}

// verifier proves the crawler of one range.
type verifier struct{}

func (verifier) VerifyCrawler(r *core.Request, client netip.Addr) core.Crawler {
	if v := r.Header.Values("User-Agent"); len(v) == 0 || !strings.Contains(v[0], "Googlebot") {
		return core.Crawler{}
	}
	return core.Crawler{Name: "Googlebot", Class: "search", Claimed: true, Verified: netip.MustParsePrefix("66.249.64.0/19").Contains(client), Proof: "range"}
}

// TestReplayCrawlers: claimed and verified apart; a policy that would refuse a
// verified crawler is bad news, and an exemption says what it saves.
func TestReplayCrawlers(t *testing.T) {
	t.Parallel()
	log, truth := generate(t, planted(1))
	o := ReplayOptions{Options: Options{Crawlers: verifier{}}, Policy: hourDay(60, 200)}
	r := replay(t, log, o)
	if c := r.class(ClassVerified); c.Addresses != len(truth.Crawlers) || c.Refused == 0 || !r.BadNews() {
		t.Errorf("verified: %v, bad news %v", c, r.BadNews())
	}
	if c := r.class(ClassClaimed); c.Addresses != len(truth.Fakes) {
		t.Errorf("claimed: %v", c)
	}
	refused := r.class(ClassVerified).Refused
	o.Policy.Crawlers = map[string]core.Treatment{"search": {Exempt: true}}
	r = replay(t, log, o)
	if c := r.class(ClassVerified); c.Refused != 0 || r.BadNews() {
		t.Errorf("exempt: %v, bad news %v", c, r.BadNews())
	}
	if len(r.Exceptions) != 1 || r.Exceptions[0].Saved != refused {
		t.Errorf("exceptions %+v, want %d saved", r.Exceptions, refused)
	}
	m := measure(t, log, Options{Crawlers: verifier{}})
	for _, c := range m.Crawlers {
		if c.Name == "Googlebot" && (c.Verified != plantedDays*2*300 || c.Refuted != plantedDays*100 || !c.Asked) {
			t.Errorf("%+v", c)
		}
	}
}

// TestReplayEdges: no store is an error, an impossible policy is core's error,
// and IPv6 addresses of one /64 share a limit.
func TestReplayEdges(t *testing.T) {
	t.Parallel()
	if _, err := Replay(context.Background(), nil, ReplayOptions{}); !errors.Is(err, ErrNoStore) {
		t.Errorf("error %v", err)
	}
	_, err := Replay(context.Background(), nil, ReplayOptions{Policy: hourDay(0, 1), NewStore: func() core.Store { return memory.New(memory.Config{}) }})
	if err == nil {
		t.Error("a limit of 0 was accepted")
	}
	var b strings.Builder
	for i := range 50 {
		b.WriteString(line(fmt.Sprintf("2001:db8:1:2::%x", i+1), i, 1, fmt.Sprintf("/p%d", i), "-", browserUA(1), 200))
	}
	for i := range 10 {
		b.WriteString(line("host.example.net", i, 2, "/p", "-", browserUA(1), 200))
		b.WriteString(line("-", i, 2, "/p", "-", browserUA(1), 200))
	}
	r := replay(t, b.String(), ReplayOptions{Policy: hourDay(10, 100)})
	if r.Pages != 60 || r.Refused != 40 || r.LimitedAddresses != 1 || r.Limited[0].Address != "2001:db8:1:2::/64" {
		t.Errorf("%+v", r)
	}
}

// TestOutput: the text, the comparison and the page hold the numbers, and
// nothing that a visitor wrote gets through as markup or control character.
func TestOutput(t *testing.T) {
	t.Parallel()
	log, truth := generate(t, planted(2))
	evil := "Mozilla/5.0 (<script>alert(1)</script>\x1b[31m) \u202e"
	var b strings.Builder
	b.WriteString(log)
	for i := range 400 {
		b.WriteString(strings.Replace(line("203.0.113.66", i/60, i%60, fmt.Sprintf("/<b>%d</b>", i), "-", evil, 200), "2026:10", fmt.Sprintf("2026:%02d", 9+i/60), 1))
	}
	m := measure(t, b.String(), Options{})
	r := replay(t, b.String(), ReplayOptions{Policy: hourDay(m.Proposal.Hour, m.Proposal.Day)})
	var text, cmp, page bytes.Buffer
	if err := errors.Join(m.WriteText(&text), r.WriteText(&text), WriteComparison(&cmp, "a", r, "b", r), m.WriteHTML(&page, r)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{truth.Abuser.Address, truth.University.Address, "203.0.113.66", fmt.Sprint(m.Humans.PerDay.P999), "infinite space"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("text or page lacks %q", want)
		}
	}
	for _, not := range []string{"\x1b", "\u202e"} {
		if strings.Contains(text.String(), not) || strings.Contains(page.String(), not) {
			t.Errorf("output holds %q", not)
		}
	}
	for _, not := range []string{"<script", "<b>", "http-equiv", "<link", "src=", "url(", "@import"} {
		if strings.Contains(page.String(), not) {
			t.Errorf("the page holds %q", not)
		}
	}
	if n := strings.Count(page.String(), "<svg"); n < 4 {
		t.Errorf("%d plots", n)
	}
	var strict bytes.Buffer
	if err := m.WriteHTML(&strict, replay(t, log, ReplayOptions{Policy: hourDay(3, 7)})); err != nil || strings.Count(strict.String(), ">limit 3</text>") != 1 ||
		strings.Count(strict.String(), ">limit 7</text>") != 1 || strings.Contains(strict.String(), fmt.Sprintf(">limit %d</text>", m.Proposal.Day)) || !strings.Contains(strict.String(), "hourly limit 3") {
		t.Errorf("%v; the page of a replay draws other limits than those played", err)
	}
	if !strings.Contains(cmp.String(), "engaged") {
		t.Errorf("comparison:\n%s", cmp.String())
	}
}

var svgText = regexp.MustCompile(`<text x="([-0-9.]+)" y="([-0-9.]+)" text-anchor="(\w+)" class="\w+">([^<]*)</text>`)

// TestPlotLabels: no label leaves its drawing, wherever the numbers lie and
// however long the names are.
func TestPlotLabels(t *testing.T) {
	t.Parallel()
	var plots []template.HTML
	for _, most := range []int{1, 10, 1000, 3_000_000} {
		d := distribute([]int{1, most})
		for _, limit := range []int{0, 1, most, 4 * most} {
			plots = append(plots, distributionPlot("x", d, d, limit))
			plots = append(plots, timelinePlot(Heavy{PeakHour: most, Days: []Point{{0, most}}}, time.Unix(0, 0), time.Unix(7200, 0), limit))
		}
	}
	long := strings.Repeat("long-name-", 4)
	bars := []cutBar{{Name: ClassVerified, Passed: 1_234_567, Cut: map[string]int64{long: 99}}, {Name: "single"}}
	plots = append(plots, cutPlot(bars, []string{long, "day"}), cutPlot(bars, []string{long, long + "b", long + "c", long + "d", "day", "hour"}), cutPlot(nil, nil))
	for _, p := range plots {
		found := svgText.FindAllStringSubmatch(string(p), -1)
		if len(found) < 1 {
			t.Errorf("%d labels in %s", len(found), p)
		}
		for _, m := range found {
			x, errX := strconv.ParseFloat(m[1], 64)
			y, errY := strconv.ParseFloat(m[2], 64)
			w := 6.2 * float64(len([]rune(html.UnescapeString(m[4])))) // wider than the page's font is on average
			from := map[string]float64{"start": x, "middle": x - w/2, "end": x - w}[m[3]]
			if errX != nil || errY != nil || from < 0 || from+w > plotW || y < 8 || y > plotH-2 {
				t.Errorf("clipped: %s (from %.0f to %.0f)", m[0], from, from+w)
			}
		}
	}
}
