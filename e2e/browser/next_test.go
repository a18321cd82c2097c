package browser_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
)

const nextDir = "testdata/next"

// nextSite builds the Next.js site, starts it as in production and returns its
// URL.
func nextSite(t *testing.T) string {
	t.Helper()
	nodeBin, _ := node(t)
	install(t, nextDir)
	next, err := filepath.Abs(filepath.Join(nextDir, "node_modules/next/dist/bin/next"))
	if err != nil {
		t.Fatal(err)
	}
	build(t, nextDir, ".next/BUILD_ID", nodeBin, next, "build")
	addr := stand.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command(nodeBin, next, "start", "-H", "127.0.0.1", "-p", port)
	cmd.Dir, cmd.Env = nextDir, production()
	stand.Run(t, cmd).WaitListen(addr, 30*time.Second)
	return "http://" + addr
}

// TestNext: a production build of Next.js. Thirty links prefetch and the counter
// does not move; ten hard navigations are ten.
func TestNext(t *testing.T) {
	t.Parallel()
	stile := serve(t, wide, nextSite(t))
	steps := play(t, "next.mjs", stile, nil, nil)
	for name, want := range map[string]int{
		"listing": 1, "scroll past thirty links": 0, "ten soft clicks": 0, "five soft clicks without prefetch": 0, "ten hard clicks": 10,
	} {
		s, ok := steps[name]
		if !ok {
			t.Errorf("%s was not played", name)
			continue
		}
		if s.hits() != want+s.Again || s.refused() != 0 || want > 0 && !slices.Equal(s.dests(), []string{"document"}) {
			t.Errorf("%s: %d counted, want %d and %d gone back to; dest %q, %d refused", name, s.hits(), want, s.Again, s.dests(), s.refused())
		}
		t.Logf("%-34s %2d counted, %2d documents, %3d RSC prefetches, %2d RSC navigations, %3d requests", name, s.hits(), s.Documents, s.Prefetches, s.RSC, s.Requests)
	}
	if ahead := steps["listing"].Prefetches + steps["scroll past thirty links"].Prefetches; ahead < 20 {
		t.Errorf("only %d prefetches: this shows nothing", ahead)
	}
	if s := steps["five soft clicks without prefetch"]; s.RSC < 5 || s.Documents != 0 {
		t.Errorf("five soft clicks sent %d RSC requests and %d documents", s.RSC, s.Documents)
	}
}

// narrow has room for two pages and two claims.
const narrow = `
version: 1
site: browsers
contact: mailto:ops@example.org
exempt: {crawlers: {search: ordinary, preview: ordinary}} # so that no list is fetched
count: {claims: enforce, claims_factor: 1}
buckets: [{name: day, key: address, algorithm: fixed-window, limit: 2, window: 24h}]
`

// TestLimitedSoftNavigation: the router's fetch is refused, so that the browser
// asks for the page itself, once: while it has room the person reads on, and then
// sees why not. There is no loop.
func TestLimitedSoftNavigation(t *testing.T) {
	t.Parallel()
	stile := serve(t, narrow, nextSite(t))
	steps := play(t, "softlimited.mjs", stile, nil, nil)
	if s := steps["listing"]; s.hits() != 1 {
		t.Errorf("the listing: %d counted", s.hits())
	}
	s := steps["first soft click"]
	if s.RSC < 1 || s.Documents != 1 || s.hits() != 1 {
		t.Errorf("a refused fetch became %d documents, %d counted (%d RSC)", s.Documents, s.hits(), s.RSC)
	}
	s = steps["second soft click"]
	if s.Documents != 1 || s.hits() != 0 || !strings.HasPrefix(s.Title, "Too many pages") || s.Requests > 6 {
		t.Errorf("at the limit: %d documents, %d counted, %d requests, title %q", s.Documents, s.hits(), s.Requests, s.Title)
	}
	t.Logf("refused soft click: %d RSC, %d document, %d requests in all", s.RSC, s.Documents, s.Requests)
}
