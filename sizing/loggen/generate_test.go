package loggen

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
)

func full(seed uint64) Config {
	return Config{
		Seed: seed, Days: 3, Humans: 400,
		Abuser:     &Abuser{PagesPerDay: 500, Browser: seed%2 == 0},
		University: &University{Users: 120, SessionsPerDay: 150},
		Crawl:      &Crawl{Addresses: 200, Pages: 3, Within: 10 * time.Minute},
		Crawlers:   2, Fakes: 1, Monitors: 1, Feeds: 1, Previews: 1,
	}
}

// TestTruth counts a generated log independently and compares.
func TestTruth(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	truth, err := Generate(&log, full(7))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int64{}
	hours := map[string]map[int64]int{}
	var last time.Time
	s, err := accesslog.Scan(context.Background(), []accesslog.Input{accesslog.Reader("gen", &log)}, accesslog.Options{Workers: 1}, func(int) accesslog.Sink {
		return accesslog.SinkFunc(func(r *accesslog.Record) {
			if r.Time.Before(last) {
				t.Errorf("time goes back at %v", r.Time)
			}
			last = r.Time
			c := r.Client.String()
			lines[c]++
			if c == truth.Abuser.Address || c == truth.University.Address && len(r.Path) > 9 && r.Path[:9] == "/articles" {
				if hours[c] == nil {
					hours[c] = map[int64]int{}
				}
				hours[c][r.Time.Unix()/3600]++
			}
		})
	})
	if err != nil || s.Faults() > 0 {
		t.Fatalf("%v, faults %v", err, s.Examples)
	}
	if s.Records != truth.Lines || len(lines) != truth.Clients || !last.Equal(truth.To) {
		t.Errorf("%d lines of %d clients to %v, truth %d, %d, %v", s.Records, len(lines), last, truth.Lines, truth.Clients, truth.To)
	}
	if a := truth.Abuser; lines[a.Address] != a.Pages || a.PeakDay < 499 || a.PeakDay > 501 || a.PeakHour != 21 {
		t.Errorf("abuser %+v, %d lines", a, lines[a.Address])
	}
	peak := 0
	for _, n := range hours[truth.Abuser.Address] {
		peak = max(peak, n)
	}
	if peak != truth.Abuser.PeakHour {
		t.Errorf("abuser's peak hour %d, truth %d", peak, truth.Abuser.PeakHour)
	}
	if u := truth.University; u.Pages < 300 || u.Agents != 120 || u.PeakHour < 20 {
		t.Errorf("university %+v", u)
	}
	if truth.CrawlPages != 600 {
		t.Errorf("crawl pages %d", truth.CrawlPages)
	}
	h := truth.Human
	if h.Engaged < 150 || h.Engaged > h.Addresses || h.Addresses > 400 {
		t.Errorf("people %+v", h.Addresses)
	}
	p50, p999 := Quantile(h.PerHour[:], .5), Quantile(h.PerHour[:], .999)
	if p50 < 2 || p50 > 4 || p999 < 10 {
		t.Errorf("pages per hour: median %d, p99.9 %d", p50, p999)
	}
	for _, c := range slices.Concat(truth.Crawlers, truth.Fakes, truth.Monitors, truth.Feeds, truth.Previews) {
		if lines[c] == 0 {
			t.Errorf("robot %s wrote nothing", c)
		}
	}
}

// TestRepeatable: the same configuration is the same log; another seed is not;
// and a planted abuser leaves the people's lines untouched.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	gen := func(c Config) (string, Truth) {
		var b bytes.Buffer
		truth, err := Generate(&b, c)
		if err != nil {
			t.Fatal(err)
		}
		return b.String(), truth
	}
	a, ta := gen(full(1))
	b, _ := gen(full(1))
	c, _ := gen(full(2))
	if a != b || a == c {
		t.Error("the log does not follow its seed")
	}
	without := full(1)
	without.Abuser = nil
	_, tw := gen(without)
	if tw.Human != ta.Human || tw.University != ta.University {
		t.Error("the abuser changes the people")
	}
	if ta.Pages-tw.Pages != ta.Abuser.Pages {
		t.Errorf("pages with %d, without %d, abuser %d", ta.Pages, tw.Pages, ta.Abuser.Pages)
	}
}

// TestPortAndBound: ip:port clients, and an exact number of lines.
func TestPortAndBound(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	truth, err := Generate(&b, Config{Seed: 3, Humans: 50, Port: true, MaxLines: 1000, SessionsPerDay: 200})
	if err != nil || truth.Lines != 1000 || truth.Human.Pages == 0 || bytes.Count(b.Bytes(), []byte("\n")) != 1000 {
		t.Fatalf("%d lines, %v", truth.Lines, err)
	}
	clients := map[string]bool{}
	s, err := accesslog.Scan(context.Background(), []accesslog.Input{accesslog.Reader("gen", &b)}, accesslog.Options{Workers: 1}, func(int) accesslog.Sink {
		return accesslog.SinkFunc(func(r *accesslog.Record) { clients[r.Client.String()] = true })
	})
	if err != nil || s.Records != 1000 || s.NoAddress != 0 || len(clients) != truth.Clients {
		t.Errorf("%d records, %d clients of %d, %v", s.Records, len(clients), truth.Clients, err)
	}
}

func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		truth, err := Generate(io.Discard, Config{Seed: 1, Humans: 5000, SessionsPerDay: 5000, Days: 1})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(truth.Lines), "lines/op")
	}
}
