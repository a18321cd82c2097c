package browser_test

import (
	"slices"
	"strings"
	"testing"
)

// short ends within seconds: what a limited person sees can be waited out.
const short = `
version: 1
site: browsers
contact: mailto:ops@example.org
exempt: {crawlers: {search: ordinary, preview: ordinary}} # so that no list is fetched
buckets: [{name: burst, key: address, algorithm: fixed-window, limit: 4, window: 12s}]
`

// TestLimitedPage: the page says what happened and when it ends, in every light
// and width, by keyboard and by ear; and it ends then.
func TestLimitedPage(t *testing.T) {
	t.Parallel()
	node(t)
	own := newSite(t)
	stile := serve(t, short, own.url)
	steps := play(t, "limited.mjs", stile, &own.recorder, nil)

	s := steps["limited"]
	if s.Pages < 4 || s.hits() != s.Pages || s.Wait < 1 || s.Wait > 12 || s.refused() != 1 {
		t.Errorf("%d pages, %d counted, then 429 with Retry-After %d and %d refusals in the log: %+v", s.Pages, s.hits(), s.Wait, s.refused(), s.Log)
	}
	if !strings.HasPrefix(s.First, "in ") || s.First == s.Second {
		t.Errorf("the countdown stands still: %q, a second later %q", s.First, s.Second)
	}
	if s.Wide {
		t.Error("a phone has to scroll sideways")
	}
	if !slices.Equal(s.Order[:2], []string{"Try again", "ops@example.org"}) {
		t.Errorf("the tab key goes to %q", s.Order)
	}
	// The order in which it is read out.
	at := -1
	for _, part := range []string{"heading", "Too many pages", "timer", "Try again", "ops@example.org", "Crawlers"} {
		next := strings.Index(s.Aria, part)
		if next <= at && part != "Too many pages" {
			t.Errorf("%q is not where it should be in\n%s", part, s.Aria)
		}
		at = next
	}
	if s := steps["the wait is over"]; s.Status != 200 || !strings.HasPrefix(s.Title, "page/") || s.hits() != 1 || s.refused() != 0 {
		t.Errorf("after the countdown: %d, %q, log %+v", s.Status, s.Title, s.Log)
	}
	if s := steps["without a script"]; s.Status != 429 || !strings.HasPrefix(s.Text, "in ") {
		t.Errorf("without a script: %d, %q", s.Status, s.Text)
	}
	dir, _ := shots()
	t.Logf("screenshots: %s", dir)
}
