package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/sizing"
)

// commandNow runs a command line today, since the log of a live run is of today.
func commandNow(stdin string, args ...string) run {
	var out, errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	term := &terminal{lookup: none, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs, now: time.Now}
	code := term.exec(context.Background(), args)
	return run{code, out.String(), errs.String()}
}

// A liveTally is one client's answers in a live run.
type liveTally struct{ asked, refused int64 }

// liveRun sends the same visits to a running stile and returns what each client
// got: pages, more of them than allowed, with assets, prefetches and an IPv6
// neighbour in between, and a flood.
func liveRun(t *testing.T, url string) map[string]*liveTally {
	t.Helper()
	got := map[string]*liveTally{}
	// The limits are by clock hours and days. Visits that straddle one of them are
	// as valid, but then the numbers below are not.
	if left := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)); left < 20*time.Second {
		time.Sleep(left + time.Second)
	}
	send := func(client, name, path string, header ...string) {
		req, err := http.NewRequest(http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", client)
		req.Header.Set("User-Agent", reader)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if name == "" {
			return
		}
		c := got[name]
		if c == nil {
			c = &liveTally{}
			got[name] = c
		}
		c.asked++
		if res.StatusCode == http.StatusTooManyRequests {
			c.refused++
		}
	}
	for i := range 18 { // more than ten an hour: eight are refused
		send("203.0.113.1", "203.0.113.1", fmt.Sprintf("a/%d", i), "Sec-Fetch-Dest", "document")
		send("203.0.113.1", "", "app.css", "Sec-Fetch-Dest", "style")
		if i < 7 {
			send("203.0.113.2", "203.0.113.2", fmt.Sprintf("b/%d", i))
			send("203.0.113.2", "", "next", "Sec-Fetch-Dest", "document", "Sec-Purpose", "prefetch")
		}
		send([]string{"2001:db8:1:2::1", "2001:db8:1:2::2"}[i%2], "2001:db8:1:2::/64", fmt.Sprintf("c/%d", i))
	}
	for range 4 { // a chain of two: one page
		send("203.0.113.3", "203.0.113.3", "moved")
		send("203.0.113.3", "", "landed")
	}
	for range 2 { // says that it is an image, and gets a page
		send("203.0.113.5", "203.0.113.5", "liar", "Sec-Fetch-Dest", "image")
	}
	for i := range 60 { // so many in one minute that the hit log samples its refusals
		send("203.0.113.4", "203.0.113.4", fmt.Sprintf("d/%d", i))
	}
	return got
}

// TestHitLogFedBack: the hit log of a live run, enforcing or observing, replayed
// with the same policy gives each client the numbers of the live run, and report
// tells the same.
func TestHitLogFedBack(t *testing.T) {
	t.Parallel()
	site := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/landed", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/app.css" {
			w.Header().Set("Content-Type", "text/css")
		}
		fmt.Fprint(w, "page")
	})
	path := write(t, "stile.yaml", "version: 1\nsite: live\ncontact: mailto:ops@example.org\n"+
		"client: {from: xff, trusted_proxies: [127.0.0.0/8], peers: [127.0.0.0/8]}\n"+
		"buckets:\n  - {name: hour, key: address, limit: 10, window: 1h}\n  - {name: day, key: address, algorithm: fixed-window, limit: 40, window: 24h}\n")
	modes := map[string]map[string]*liveTally{}
	for _, mode := range []string{"enforce", "observe"} {
		p := start(t, []string{"STILE_MODE=" + mode}, "--origin", site, "--policy", path)
		live := liveRun(t, p.url)
		if code := p.stop(); code != 0 {
			t.Fatalf("serve: exit %d\n%s", code, p.stderr())
		}
		modes[mode] = live
		log := p.stdout()
		want := modes["enforce"] // observing answers no 429, and must count as if it did

		var played replayResult
		r := commandNow(log, "replay", "--json", "--policy", path, "-")
		if err := json.Unmarshal([]byte(r.stdout), &played); err != nil {
			t.Fatalf("%v %s", err, r.stderr)
		}
		var asked, refused int64
		for _, c := range want {
			asked, refused = asked+c.asked, refused+c.refused
		}
		if played.Pages != asked || played.Refused != refused || refused != 66 {
			t.Errorf("%s: live %d pages, %d refused; replayed %d and %d", mode, asked, refused, played.Pages, played.Refused)
		}
		for _, c := range played.Limited {
			if w := want[c.Address]; w == nil || c.Refused != w.refused || c.Pages != w.asked {
				t.Errorf("%s: %s replayed %d of %d refused, live %+v", mode, c.Address, c.Refused, c.Pages, w)
			}
		}

		var told sizing.HitReport
		r = commandNow(log, "report", "--json", "-")
		if err := json.Unmarshal([]byte(r.stdout), &told); err != nil {
			t.Fatalf("%v %s", err, r.stderr)
		}
		if told.Asked != asked || told.Refused+told.WouldRefuse != refused || (mode == "observe") != (told.WouldRefuse > 0) || told.Limited != 3 {
			t.Errorf("%s: report tells %d asked, %d refused, %d observed, %d clients", mode, told.Asked, told.Refused, told.WouldRefuse, told.Limited)
		}
		if mode == "observe" {
			for name, c := range live {
				if c.refused != 0 || c.asked != want[name].asked {
					t.Errorf("observing refused %d of %s", c.refused, name)
				}
			}
		}
		if r := commandNow(log, "size", "-"); r.code != 0 || !strings.Contains(r.stdout, "read as stile") {
			t.Errorf("%s: size: exit %d\n%s%s", mode, r.code, r.stdout, r.stderr)
		}
	}
}
