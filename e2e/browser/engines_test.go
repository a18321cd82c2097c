package browser_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/hitlog"
)

// An engine is a browser other than Chromium, driven from here.
type engine struct {
	t    *testing.T
	name string
	wire transport
}

// homeOf is a directory for a browser's own files. It is not t.TempDir, whose end
// fails a test when a child that was just killed still holds a file.
func homeOf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stile-e2e-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 20 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("%s stays: %v", dir, err)
	})
	return dir
}

// do plays one command; what it cannot do fails the test.
func (e *engine) do(command string, p params) json.RawMessage {
	e.t.Helper()
	out, err := e.wire.do(command, p)
	if err != nil {
		e.t.Fatalf("%s: %s: %v", e.name, command, err)
	}
	return out
}

// find returns the id of an element.
func (e *engine) find(selector string) string {
	e.t.Helper()
	var ref map[string]string
	if err := json.Unmarshal(e.do("FindElement", params{"using": "css selector", "value": selector}), &ref); err != nil {
		e.t.Fatal(err)
	}
	for _, id := range ref {
		return id
	}
	e.t.Fatalf("%s: no %s", e.name, selector)
	return ""
}

func (e *engine) click(selector string) {
	e.t.Helper()
	e.do("ElementClick", params{"id": e.find(selector)})
}

// look returns the path, the readiness, the title and the countdown of the page;
// ok is false while there is no page to ask.
func (e *engine) look() (path, state, title, timer string, ok bool) {
	out, err := e.wire.do("ExecuteScript", params{"args": []any{}, "script": `const t = document.querySelector("[role=timer]");
return [location.pathname, document.readyState, document.title, t ? t.textContent : ""]`})
	var found [4]string
	if err != nil || json.Unmarshal(out, &found) != nil {
		return "", "", "", "", false
	}
	return found[0], found[1], found[2], found[3], true
}

// until asks the page again and again; what never comes fails the test.
func (e *engine) until(what string, there func(path, title, timer string) bool) {
	e.t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		path, state, title, timer, ok := e.look()
		if ok && state == "complete" && there(path, title, timer) {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("%s: never %s, but at %q (%s), title %q, timer %q", e.name, what, path, state, title, timer)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (e *engine) arrived(at string) {
	e.t.Helper()
	e.until("at "+at, func(path, _, _ string) bool { return path == at })
}

// shoot keeps a picture of the page.
func (e *engine) shoot(name string) {
	e.t.Helper()
	var text string
	err := json.Unmarshal(e.do("TakeScreenshot", params{"full": false}), &text)
	var picture []byte
	if err == nil {
		picture, err = base64.StdEncoding.DecodeString(text)
	}
	dir, dirErr := shots()
	if err == nil && dirErr == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil || dirErr != nil {
		e.t.Fatal(err, dirErr)
	}
	if err := os.WriteFile(filepath.Join(dir, name), picture, 0o644); err != nil {
		e.t.Fatal(err)
	}
}

// habits are what engines do not have in common.
type habits struct {
	prefetches bool // follows rel=prefetch
	downloads  int  // counted of a page and its two downloads
}

// A stage is an engine in front of a Stile and a site, both of which say what came.
type stage struct {
	*engine
	stile  *stand.Binary
	own    *site
	logged int
	sent   int
}

// play plays one step and returns what came of it once nothing comes any more.
func (s *stage) play(name string, step func()) (hits int, dests []string, visits []visit) {
	s.t.Helper()
	step()
	came := func() int { return len(s.stile.Log()) + len(s.own.since(0)) }
	for last, still := came(), 0; still < 8; still++ {
		time.Sleep(50 * time.Millisecond)
		if now := came(); now != last {
			last, still = now, 0
		}
	}
	log := s.stile.Log()
	for _, e := range log[s.logged:] {
		if e.Event != hitlog.Hit {
			s.t.Errorf("%s, %s: %s of %s", s.name, name, e.Event, e.Path)
			continue
		}
		hits++
		dests = append(dests, e.SecFetchDest)
	}
	visits = s.own.since(s.sent)
	s.logged, s.sent = len(log), s.sent+len(visits)
	slices.Sort(dests)
	s.t.Logf("%-8s %-22s %2d counted %q, %2d requests at the site", s.name, name, hits, slices.Compact(slices.Clone(dests)), len(visits))
	return hits, dests, visits
}

// expect plays a step that counts so many documents.
func (s *stage) expect(name string, want int, step func()) []visit {
	s.t.Helper()
	hits, dests, visits := s.play(name, step)
	if hits != want || slices.ContainsFunc(dests, func(d string) bool { return d != "document" }) {
		s.t.Errorf("%s, %s: %d counted, want %d documents; dests %q", s.name, name, hits, want, dests)
	}
	return visits
}

// walk opens the static site in every way that a person has.
func walk(t *testing.T, e *engine, h habits) {
	own := newSite(t)
	s := &stage{engine: e, stile: serve(t, wide, own.url), own: own}
	goTo := func(path string) {
		e.do("Navigate", params{"url": s.stile.URL + path})
		e.arrived(path)
	}
	back := func(path string) {
		e.do("Back", params{})
		e.arrived(path)
	}
	s.expect("typed address", 1, func() { goTo("/") })
	s.expect("reload", 1, func() { e.do("Refresh", params{}); e.arrived("/") })
	hits, _, visits := s.play("ten links and back", func() {
		for _, n := range strings.Split("0123456789", "") {
			e.click("#link-" + n)
			e.arrived("/page/" + n)
			back("/")
		}
	})
	// Back comes out of a cache, which a browser may drop when memory is short.
	again := 0
	for _, v := range visits {
		if v.path == "/" {
			again++
		}
	}
	if hits != 10+again || again > 5 {
		t.Errorf("%s: ten links and back: %d counted, %d pages gone back to were asked for again", e.name, hits, again)
	}
	s.expect("link, back, forward", 1, func() {
		e.click("#link-0")
		e.arrived("/page/0")
		back("/")
		e.do("Forward", params{})
		e.arrived("/page/0")
		back("/")
	})
	s.expect("new tab", 1, func() {
		var tab struct{ Handle string }
		first := handle(e)
		if err := json.Unmarshal(e.do("NewWindow", params{"type": "tab"}), &tab); err != nil {
			t.Fatal(err)
		}
		e.do("SwitchToWindow", params{"handle": tab.Handle})
		goTo("/page/1")
		e.do("CloseWindow", params{})
		e.do("SwitchToWindow", params{"handle": first})
	})
	s.expect("form", 1, func() {
		e.do("ElementSendKeys", params{"id": e.find("#q"), "text": "hedges\uE007"}) // Enter
		e.arrived("/search")
	})
	s.expect("back from the form", 0, func() { back("/") })
	if v := s.expect("redirect chain", 1, func() { e.click("#chain"); e.arrived("/page/29") }); len(pagesOf(step{Visits: v})) != 4 {
		t.Errorf("%s: the chain has three hops and an end: %+v", e.name, v)
	}
	if v := s.expect("frames", 1, func() { goTo("/frames") }); !slices.Contains(destsOf(step{Visits: v}), "iframe") {
		t.Errorf("%s: no frame reached the site: %+v", e.name, v)
	}
	ahead := step{Visits: s.expect("rel=prefetch", 1, func() { goTo("/prefetch") })}.speculated()
	if ahead != 0 && !h.prefetches || ahead != 1 && h.prefetches {
		t.Errorf("%s: %d prefetches reached the site", e.name, ahead)
	}
	hits, _, visits = s.play("download", func() {
		goTo("/downloads")
		e.click("#marked")
		s.visited("/page/22")
		e.click("#attachment")
		s.visited("/attachment")
	})
	if hits != h.downloads {
		t.Errorf("%s: %d counted of a page and two downloads, want %d: %+v", e.name, hits, h.downloads, visits)
	}
	s.limited()
}

func handle(e *engine) string {
	e.t.Helper()
	var name string
	if err := json.Unmarshal(e.do("GetWindowHandle", params{}), &name); err != nil {
		e.t.Fatal(err)
	}
	return name
}

// visited waits until the site was asked for a path.
func (s *stage) visited(path string) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if slices.ContainsFunc(s.own.since(s.sent), func(v visit) bool { return v.path == path }) {
			return
		}
	}
	s.t.Fatalf("%s never asked for %s", s.name, path)
}

// brief admits one page in fifteen seconds, so that a refusal can be waited out.
const brief = `
version: 1
site: browsers
contact: mailto:ops@example.org
exempt: {crawlers: {search: ordinary, preview: ordinary}} # so that no list is fetched
buckets: [{name: burst, key: address, algorithm: fixed-window, limit: 1, window: 15s}]
`

// limited: the page is shown, it counts down, and what it promises comes true.
func (s *stage) limited() {
	s.t.Helper()
	e, stile := s.engine, serve(s.t, brief, s.own.url)
	var first string
	refused := func(_, title, timer string) bool {
		first = timer
		return strings.HasPrefix(title, "Too many pages") && timer != ""
	}
	for tries := 0; ; tries++ { // a window may end between the two
		e.do("Navigate", params{"url": stile.URL + "/page/1"})
		if _, _, title, timer, ok := e.look(); ok && refused("", title, timer) {
			break
		}
		if tries == 20 {
			s.t.Fatalf("%s was never limited", e.name)
		}
	}
	e.shoot("limited-" + e.name + ".png")
	e.until("another time on the countdown", func(_, _, timer string) bool { return timer != first })
	e.until("at the end of the countdown", func(_, _, timer string) bool { return timer == "now" })
	e.click("main a")
	e.until("at the page", func(_, title, _ string) bool { return title == "page/1" })
	log := stile.Log()
	i := slices.IndexFunc(log, func(l hitlog.Entry) bool { return l.Event == hitlog.Limited })
	if i < 0 || log[i].Status != 429 || stand.Count(log, hitlog.Limited) != 1 || log[len(log)-1].Event != hitlog.Hit {
		s.t.Errorf("%s: the log of a refusal that ends: %+v", e.name, log)
	}
}
