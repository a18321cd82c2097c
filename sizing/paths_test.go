package sizing

import (
	"fmt"
	"testing"
)

// TestPatterns: what varies becomes a mark, what names a thing stays.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{
		{"/", ""}:                   "/",
		{"/about", ""}:              "/about",
		{"/history/2019-03-04", ""}: "/history/N",
		{"/articles/2019/03/some-long-title-of-it", ""}: "/articles/N/N/TEXT",
		{"/archive", "before=12"}:                       "/archive?before=*",
		{"/p", "a=1&b&c=2&d=3&e=4"}:                     "/p?a=*&b&c=*&d=*&…",
		{"/x/a1b2c3d4e5", ""}:                           "/x/ID",
		{"/a/b/c/d/e/f/g/h", ""}:                        "/a/b/c/d/e/f/…",
	} {
		if got := pattern(in[0], in[1]); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestDistinct: the estimate is within a tenth, merged sketches included.
func TestDistinct(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 40, 700, 5_000, 60_000} {
		var a, b pathSketch
		for i := range n {
			p := fmt.Sprintf("/p/%d", i)
			for range 2 { // repeats change nothing
				if i%2 == 0 {
					a.add(p, "", hash(p, ""))
				} else {
					b.add(p, "", hash(p, ""))
				}
			}
		}
		a.merge(&b)
		if d := a.distinct(); float64(d) < 0.9*float64(n) || float64(d) > 1.1*float64(n) {
			t.Errorf("%d of %d distinct", d, n)
		}
		if a.total != int64(2*n) || len(a.patterns) != 1 || a.patterns[0].count != int64(2*n) {
			t.Errorf("%d pages, patterns %v", a.total, a.patterns)
		}
	}
}

// TestDistribution: nearest rank, and a histogram that loses nobody.
func TestDistribution(t *testing.T) {
	t.Parallel()
	var v []int
	for i := range 1000 {
		v = append(v, 1000-i)
	}
	d := distribute(v)
	if d.P50 != 500 || d.P90 != 900 || d.P99 != 990 || d.P999 != 999 || d.Max != 1000 {
		t.Errorf("%v", d)
	}
	var sum int64
	for i, b := range d.Histogram {
		sum += b.Count
		if i > 0 && b.From != d.Histogram[i-1].To {
			t.Errorf("a gap before %v", b)
		}
	}
	if sum != 1000 {
		t.Errorf("%d in the histogram", sum)
	}
	if d := distribute(nil); d.Count != 0 || d.Max != 0 || d.Histogram != nil {
		t.Errorf("%v", d)
	}
}

// TestAgents: who says what it is, and who does not.
func TestAgents(t *testing.T) {
	t.Parallel()
	for ua, want := range map[string]struct {
		group   group
		name    string
		browser bool
	}{
		browserUA(1): {visitors, "", true},
		"":           {visitors, "", false},
		"curl/8.0":   {visitors, "", false},
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": {crawlers, "Googlebot", false},
		"Mozilla/5.0 (compatible; SuperBot/1.0)":                                   {crawlers, "SuperBot", false},
		"my-crawler":                                                               {crawlers, "my-crawler", false},
		"Mozilla/5.0 (Linux; Android 9; CUBOT X19)":                                {visitors, "", true},
		"Mozilla/5.0 (X11) AppleWebKit/537.36 HeadlessChrome/100":                  {visitors, "", false},
		"Mozilla/5.0+(compatible; UptimeRobot/2.0)":                                {monitoring, "UptimeRobot", false},
		"GoogleHC/1.0":                     {monitoring, "GoogleHC", false},
		"facebookexternalhit/1.1":          {previews, "facebookexternalhit", false},
		"Feedly/1.0":                       {feedReaders, "Feedly", false},
		"WordPress/6.1; https://a.example": {monitoring, "WordPress (itself)", false},
	} {
		a := classifyAgent(ua)
		if a.group != want.group || a.name != want.name || a.browser != want.browser {
			t.Errorf("%q: %v %q %v, want %v", ua, a.group, a.name, a.browser, want)
		}
	}
}
