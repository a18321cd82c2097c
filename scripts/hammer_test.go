// Package scripts tests the shell scripts beside it.
package scripts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/require"
)

// A site is a limited site with some faults. It is written apart from the
// limiter, so that the script is judged by what it promises to notice.
type site struct {
	faults string // comma separated
	limit  int

	mu   sync.Mutex
	seen map[string]int // navigations admitted, by client
	wait int
	last time.Time // of the last request
}

const crawlerAddress = "66.249.66.1"

func (s *site) has(fault string) bool { return strings.Contains(s.faults+",", fault+",") }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has("forgives those who wait") && time.Since(s.last) > 2500*time.Millisecond {
		clear(s.seen)
	}
	s.last = time.Now()
	client := r.Header.Get("X-Forwarded-For")
	asset := strings.HasSuffix(r.URL.Path, ".css") || strings.HasSuffix(r.URL.Path, ".woff2")
	prefetch := r.Header.Get("Sec-Purpose") == "prefetch"
	hop := r.URL.Path == "/hop" // the chain's second answer
	exempt := client == crawlerAddress && !s.has("crawler is limited")
	counted := r.Header.Get("Sec-Fetch-Dest") == "document" && !prefetch && !asset && !hop
	if client == crawlerAddress && r.Header.Get("Sec-Fetch-Dest") == "" {
		counted = true // the script's crawler sends no fetch metadata, as crawlers do
	}
	if s.has("counts assets") && asset || s.has("counts prefetches") && prefetch || s.has("counts redirects") && hop {
		counted = true
	}
	if s.has("believes names") && strings.Contains(r.UserAgent(), "Googlebot") {
		exempt = true
	}
	if s.has("one client for all") && !exempt {
		client = ""
	}
	limited := s.seen[client] >= s.limit && !exempt && !s.has("no limiter")
	switch {
	case counted && limited:
		s.refuse(w, r)
		return
	case counted && !exempt:
		s.seen[client]++
	case limited && prefetch && s.has("204 to a prefetch"):
		w.WriteHeader(http.StatusNoContent)
		return
	case limited && prefetch, limited && asset && s.has("refuses assets later"):
		s.refuse(w, r)
		return
	}
	switch {
	case s.has("errors under load") && counted && s.seen[client] == s.limit/2:
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	case asset:
		w.Header().Set("Content-Type", "text/css")
		fmt.Fprint(w, "/* */")
	case r.URL.Path == "/chain":
		http.Redirect(w, r, "/hop", http.StatusFound)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><link rel="stylesheet" href="/a.css?v=1&amp;x=2"><link href='/f.woff2'><script src="http://elsewhere.invalid/x.js"></script>`)
	}
}

func (s *site) refuse(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	switch {
	case s.has("no retry-after"):
	case s.has("retry-after is a date"):
		h.Set("Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
	case s.has("retry-after zero"):
		h.Set("Retry-After", "0")
	case s.has("forgives those who wait"):
		h.Set("Retry-After", "3")
	case s.has("retry-after is 1 and means 60"):
		h.Set("Retry-After", "1")
	case s.has("retry-after fraction"):
		h.Set("Retry-After", "1.5")
	case s.has("refusals lengthen"):
		s.wait++
		h.Set("Retry-After", strconv.Itoa(60+s.wait))
	default:
		h.Set("Retry-After", "60")
	}
	if !s.has("cacheable") {
		h.Set("Cache-Control", "private, No-Store")
	}
	status := http.StatusTooManyRequests
	if s.has("503") {
		status = http.StatusServiceUnavailable
	}
	if strings.HasPrefix(r.Header.Get("Accept"), "application/json") && !s.has("no json") {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": "RATE_LIMITED", "retry_after": 60}})
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	switch {
	case s.has("plain text"):
		h.Set("Content-Type", "text/plain")
	case s.has("escape sequences"):
		h.Set("Content-Type", "text/html; \x1b[2J\x9b2J\a")
	}
	w.WriteHeader(status)
	if s.has("no contact") {
		fmt.Fprint(w, "<!DOCTYPE html><p>Too many pages.")
		return
	}
	fmt.Fprint(w, `<!DOCTYPE html><p>Too many pages. <a href="mailto:ops@example.org">Write to us</a>.`)
}

// hammer runs the script and returns its output and exit status.
func hammer(t *testing.T, args ...string) (string, int) {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		_, err := exec.LookPath(tool)
		require.Server(t, tool, err == nil, "hammer.sh needs it")
	}
	cmd := exec.Command("bash", append([]string{"./hammer.sh"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// fresh is the limit of the tests' sites and the headers that make clients.
func fresh(url string, more ...string) []string {
	return append([]string{
		"--url", url, "--limit", "6", "--timeout", "10",
		"--client-header", "X-Forwarded-For: 198.51.100.1",
		"--second-client-header", "X-Forwarded-For: 198.51.100.9",
		"--crawler-header", "X-Forwarded-For: " + crawlerAddress,
		"--redirect", "/chain",
	}, more...)
}

func serve(t *testing.T, faults string) string {
	t.Helper()
	srv := httptest.NewServer(&site{faults: faults, limit: 6, seen: map[string]int{}})
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestHammerPasses(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--parallel", "4"}, {"--contact", "mailto:ops@example.org", "--asset=/a.css"}} {
		out, code := hammer(t, fresh(serve(t, ""), more...)...)
		if code != 0 || !strings.Contains(out, " 0 missed, 0 not run") {
			t.Errorf("%v: exit %d\n%s", more, code, out)
		}
	}
}

// TestHammerNotices gives the script faulty sites: each fault must be missed in
// the row that is about it, and in no row that is about something else. Faults
// that do not touch each other share a run.
func TestHammerNotices(t *testing.T) {
	t.Parallel()
	for faults, rows := range map[string][]string{
		"no limiter": {"the next navigation", "Retry-After", "Cache-Control", "a page for people", "with a contact", "JSON when asked for",
			"further navigations", "refusals do not lengthen", "a crawler's name alone"},
		"counts assets":     {"navigations up to the limit", "assets pass while pages are refused"},
		"counts prefetches": {"prefetches are not refused", "navigations up to the limit", "a redirect chain"},
		"counts redirects":  {"navigations up to the limit"},
		"errors under load": {"navigations up to the limit"},
		"refuses assets later,204 to a prefetch,believes names": {"assets pass while pages are refused", "a prefetch while refused", "a crawler's name alone"},
		"no retry-after,cacheable,no json,plain text":           {"Retry-After", "Cache-Control", "JSON when asked for", "a page for people", "refusals do not lengthen"},
		"retry-after is a date,no contact":                      {"Retry-After", "with a contact", "refusals do not lengthen"},
		"retry-after zero,one client for all":                   {"Retry-After", "a second client", "refusals do not lengthen"},
		"retry-after fraction,crawler is limited":               {"Retry-After", "a verified crawler's address", "refusals do not lengthen"},
		"refusals lengthen":                                     {"refusals do not lengthen"},
	} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			out, code := hammer(t, fresh(serve(t, faults))...)
			if code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			missed := map[string]bool{}
			for line := range strings.Lines(out) {
				if !strings.HasPrefix(line, "MISS") {
					continue
				}
				row := ""
				for _, r := range rows {
					if strings.HasPrefix(strings.TrimLeft(line[len("MISS"):], " "), r) {
						row = r
					}
				}
				if row == "" {
					t.Errorf("a row is missed for no reason: %s", line)
				}
				missed[row] = true
			}
			for _, r := range rows {
				if !missed[r] {
					t.Errorf("no MISS in the row %q", r)
				}
			}
			if t.Failed() {
				t.Log("\n" + out)
			}
		})
	}
}

// TestHammerTells503FromALimit: an outage is not a refusal.
func TestHammerTells503FromALimit(t *testing.T) {
	t.Parallel()
	out, code := hammer(t, fresh(serve(t, "503"))...)
	if code != 1 || !strings.Contains(out, "MISS  the next navigation ") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestHammerSaysWhatItDidNotRun(t *testing.T) {
	t.Parallel()
	out, code := hammer(t, "--url", serve(t, ""), "--limit", "6")
	if code != 0 || !strings.Contains(out, "2 not run") || strings.Contains(out, "MISS") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestHammerShowsPlainText: what a site sends never reaches the terminal raw.
func TestHammerShowsPlainText(t *testing.T) {
	t.Parallel()
	out, code := hammer(t, fresh(serve(t, "escape sequences"))...)
	if code != 0 || strings.ContainsAny(out, "\x1b\a") || strings.Contains(out, "\x9b") || !strings.Contains(out, "text/html; [2J") {
		t.Errorf("exit %d\n%q", code, out)
	}
}

// TestHammerWaits sleeps, since that is what the option does. The site is lenient
// by half a second.
func TestHammerWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		faults, wait, row string
		code              int
	}{
		{"forgives those who wait", "3", "ok    after Retry-After (3 s)", 0},
		{"retry-after is 1 and means 60", "1", "MISS  after Retry-After (1 s)", 1},
		{"", "59", "-     after Retry-After", 0}, // longer than one is ready to wait
	} {
		t.Run(c.faults, func(t *testing.T) {
			t.Parallel()
			out, code := hammer(t, fresh(serve(t, c.faults), "--wait", c.wait)...)
			if code != c.code || !strings.Contains(out, c.row) {
				t.Errorf("exit %d, want %d with %q\n%s", code, c.code, c.row, out)
			}
		})
	}
}

func TestHammerUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--help", 0, "Usage: hammer.sh"},
		{"", 2, "no --url"},
		{"--url ftp://x/ --limit 3", 2, "want http://"},
		{"--url http://127.0.0.1/ --limit 1", 2, "at least 2"},
		{"--url http://127.0.0.1/ --limit 08x", 2, "whole number"},
		{"--url http://127.0.0.1/ --limit", 2, "needs a value"},
		{"--url http://127.0.0.1/ --limit 3 --client-header nonsense", 2, "Name: value"},
		{"--url http://127.0.0.1/ --limit 3 --frob 1", 2, "unknown option"},
		{"--url http://127.0.0.1:1/ --limit 3 --timeout 2", 3, "no answer"},
	} {
		out, code := hammer(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, want %d with %q\n%s", c.args, code, c.code, c.want, out)
		}
	}
}

// TestShellcheck holds the scripts to the linter where it is installed.
func TestShellcheck(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("shellcheck")
	require.Server(t, "shellcheck", err == nil, "apt-get install shellcheck")
	out, err := exec.Command("shellcheck", "hammer.sh").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
