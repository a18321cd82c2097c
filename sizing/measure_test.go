package sizing

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
	"github.com/stilehq/stile/sizing/loggen"
)

func measure(t testing.TB, log string, o Options) *Report {
	t.Helper()
	o.Log.Now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	r, err := Measure(context.Background(), []accesslog.Input{accesslog.Reader("test", strings.NewReader(log))}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func generate(t testing.TB, c loggen.Config) (string, loggen.Truth) {
	t.Helper()
	var b bytes.Buffer
	truth, err := loggen.Generate(&b, c)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), truth
}

const plantedDays = 2

// planted is a site with everything that a measurement must tell apart.
func planted(seed uint64) loggen.Config {
	return loggen.Config{
		Seed: seed, Days: plantedDays, Humans: 1500, SessionsPerDay: 850, Assets: 2,
		Abuser:     &loggen.Abuser{PagesPerDay: 500, Browser: seed%2 == 0},
		University: &loggen.University{Users: 120, SessionsPerDay: 130},
		Crawlers:   2, Fakes: 1, Monitors: 1, Feeds: 1, Previews: 1,
	}
}

// TestPlantedTruth holds the measurement against a log whose truth is known,
// over twenty seeds: quantiles, abuser, university, robots, and that adding the
// abuser moves the people's p99.9 by at most one page.
func TestPlantedTruth(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 20; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			log, truth := generate(t, planted(seed))
			r := measure(t, log, Options{})
			// The generator draws people apart from everything else (its own test), so
			// the log without the abuser is the log without the abuser's lines.
			var without strings.Builder
			for l := range strings.Lines(log) {
				if !strings.HasPrefix(l, truth.Abuser.Address+" ") {
					without.WriteString(l)
				}
			}
			r2 := measure(t, without.String(), Options{})

			if d := r.Humans.PerHour.P999 - r2.Humans.PerHour.P999; d < -1 || d > 1 {
				t.Errorf("p99.9 per hour: %d with the abuser, %d without", r.Humans.PerHour.P999, r2.Humans.PerHour.P999)
			}
			if d := r.Humans.PerDay.P999 - r2.Humans.PerDay.P999; d < -1 || d > 1 {
				t.Errorf("p99.9 per day: %d with the abuser, %d without", r.Humans.PerDay.P999, r2.Humans.PerDay.P999)
			}
			h := truth.Human
			for _, q := range []struct {
				what string
				got  int
				want int
			}{
				{"p50/h", r.Humans.PerHour.P50, loggen.Quantile(h.PerHour[:], .5)},
				{"p90/h", r.Humans.PerHour.P90, loggen.Quantile(h.PerHour[:], .9)},
				{"p99/h", r.Humans.PerHour.P99, loggen.Quantile(h.PerHour[:], .99)},
				{"p99.9/h", r.Humans.PerHour.P999, loggen.Quantile(h.PerHour[:], .999)},
				{"p99.9/d", r.Humans.PerDay.P999, loggen.Quantile(h.PerDay[:], .999)},
			} {
				if d := q.got - q.want; d < -1 || d > 1 {
					t.Errorf("%s: measured %d, truth %d", q.what, q.got, q.want)
				}
			}
			if len(r.Abusers) != 1 || r.Abusers[0].Address != truth.Abuser.Address || r.Abusers[0].Pages != truth.Abuser.Pages ||
				r.Abusers[0].PeakHour != truth.Abuser.PeakHour || r.Abusers[0].PeakDay != truth.Abuser.PeakDay || !r.Abusers[0].Infinite {
				t.Errorf("abusers %+v, truth %+v", r.Abusers, truth.Abuser)
			}
			if len(r.Shared) != 1 || r.Shared[0].Address != truth.University.Address || r.Shared[0].PeakHour != truth.University.PeakHour {
				t.Errorf("shared %+v, truth %+v", r.Shared, truth.University)
			}
			if p := r.Proposal; p.Finding != Limits || p.Day >= truth.Abuser.PeakDay || p.Day <= r.Humans.PerDay.P999 || p.Hour <= r.Humans.PerHour.P999 {
				t.Errorf("proposal %+v", p)
			}
			if !strings.Contains(r.Proposal.Policy, fmt.Sprintf("human_p999_per_day: %d", r.Humans.PerDay.P999)) ||
				!strings.Contains(r.Proposal.Policy, "abuser_per_day: "+fmt.Sprint(truth.Abuser.PeakDay)) ||
				!strings.Contains(r.Proposal.Policy, truth.University.Address+"/32") {
				t.Errorf("policy\n%s", r.Proposal.Policy)
			}
			if r.Traffic.Pages != truth.Pages {
				t.Errorf("%d pages, truth %d", r.Traffic.Pages, truth.Pages)
			}
		})
	}
}

const at = "05/Mar/2026:10:%02d:%02d +0000"

func line(client string, min, sec int, target, ref, ua string, status int) string {
	return fmt.Sprintf("%s - - ["+at+"] \"GET %s HTTP/1.1\" %d 900 \"%s\" \"%s\"\n", client, min, sec, target, status, ref, ua)
}

func browserUA(i int) string {
	return fmt.Sprintf("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", 100+i)
}

// TestHoursAndDays: one instant in two offsets is one hour; the zone moves day
// totals and never hour totals; a clock that goes back changes nothing.
func TestHoursAndDays(t *testing.T) {
	t.Parallel()
	l := func(stamp string) string {
		return fmt.Sprintf("198.51.100.50 - - [%s] \"GET /p HTTP/1.1\" 200 1 \"-\" \"%s\"\n", stamp, browserUA(1))
	}
	log := l("05/Mar/2026:16:49:16 +0800") + l("05/Mar/2026:08:49:16 +0000") + l("05/Mar/2026:08:39:16 +0000") + l("05/Mar/2026:08:50:00 +0000")
	r := measure(t, log, Options{})
	if r.Everyone.PerHour.Max != 4 || r.Everyone.PerHour.Count != 1 || r.Everyone.PerDay.Max != 4 {
		t.Errorf("per hour %v, per day %v", r.Everyone.PerHour, r.Everyone.PerDay)
	}
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	midnight := l("05/Mar/2026:18:15:00 +0000") + l("05/Mar/2026:18:45:00 +0000") // 23:45 and 00:15 in Kolkata
	utc, local := measure(t, midnight, Options{}), measure(t, midnight, Options{Zone: kolkata})
	if utc.Everyone.PerDay.Max != 2 || local.Everyone.PerDay.Max != 1 || local.Everyone.PerDay.Count != 2 {
		t.Errorf("per day in UTC %v, in Kolkata %v", utc.Everyone.PerDay, local.Everyone.PerDay)
	}
	if utc.Everyone.PerHour.String() != local.Everyone.PerHour.String() {
		t.Errorf("per hour in UTC %v, in Kolkata %v", utc.Everyone.PerHour, local.Everyone.PerHour)
	}
}

// TestClientsWithPorts: thousands of ip:port strings are as many clients as
// there are addresses, and an IPv6 /64 is one.
func TestClientsWithPorts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	const clients, lines = 8352, 25_000
	for i := range lines {
		c := i % clients
		fmt.Fprintf(&b, "81.%d.%d.7:%d - - ["+at+"] \"GET /p%d HTTP/1.1\" 200 1 \"-\" \"%s\"\n", c>>8, c&255, 1024+i, i%60, i%60, i, browserUA(1))
	}
	r := measure(t, b.String(), Options{})
	if r.Traffic.Addresses != clients || r.Everyone.Pages != lines {
		t.Errorf("%d clients, %d pages", r.Traffic.Addresses, r.Everyone.Pages)
	}
	var v6 strings.Builder
	for i := range 1000 {
		v6.WriteString(line(fmt.Sprintf("2001:db8:1:2::%x", i+1), i/60%60, i%60, "/p", "-", browserUA(1), 200))
	}
	v6.WriteString(line("2001:db8:1:2:3:4:5:f215:50718", 1, 1, "/p", "-", browserUA(1), 200))
	if r := measure(t, v6.String(), Options{}); r.Traffic.Addresses != 1 || r.Everyone.Pages != 1001 {
		t.Errorf("%d clients, %d pages in one /64", r.Traffic.Addresses, r.Everyone.Pages)
	}
}

// TestNamesAndMissing: a host name is a key of its own, a line without any
// client is in the totals and in no distribution.
func TestNamesAndMissing(t *testing.T) {
	t.Parallel()
	log := line("a.example.net", 1, 1, "/p", "-", browserUA(1), 200) + line("b.example.net", 1, 1, "/p", "-", browserUA(1), 200) +
		line("-", 1, 1, "/p", "-", browserUA(1), 200)
	r := measure(t, log, Options{})
	if r.Traffic.Opaque != 2 || r.Traffic.NoAddress != 1 || r.Everyone.Addresses != 2 || r.Traffic.Requests != 3 {
		t.Errorf("traffic %+v, everyone %+v", r.Traffic, r.Everyone)
	}
}

// TestBoundedTable: beyond the bound, further addresses are counted together and
// the report says so.
func TestBoundedTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 500 {
		b.WriteString(line(fmt.Sprintf("81.1.%d.%d", i>>8, i&255), 1, i%60, "/p", "-", browserUA(1), 200))
	}
	r := measure(t, b.String(), Options{MaxClients: 100, Log: accesslog.Options{Workers: 1}})
	if r.Traffic.Addresses != 100 || r.Traffic.NotTabulated != 400 || !strings.Contains(strings.Join(r.Notes, "\n"), "was full") {
		t.Errorf("addresses %d, not tabulated %d", r.Traffic.Addresses, r.Traffic.NotTabulated)
	}
}
