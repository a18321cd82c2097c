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

// A site is a limited site with one fault at most. It is written apart from the
// limiter, so that the script is judged by what it promises to notice.
type site struct {
	fault string
	limit int

	mu   sync.Mutex
	seen map[string]int // navigations admitted, by client
	wait int
}

const crawlerAddress = "66.249.66.1"

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	client := r.Header.Get("X-Forwarded-For")
	asset := strings.HasSuffix(r.URL.Path, ".css") || strings.HasSuffix(r.URL.Path, ".woff2")
	prefetch := r.Header.Get("Sec-Purpose") == "prefetch"
	counted := r.Header.Get("Sec-Fetch-Dest") == "document" && !prefetch && !asset
	exempt := client == crawlerAddress
	hop := r.URL.Path == "/hop" && r.Header.Get("Referer") == "" // the chain's second answer
	switch {
	case s.fault == "counts assets" && asset, s.fault == "counts prefetches" && prefetch, s.fault == "counts redirects" && hop:
		counted = true
	case hop:
		counted = false
	}
	switch s.fault {
	case "one client for all":
		client = ""
	case "crawler is limited":
		exempt = false
	case "believes names":
		exempt = exempt || strings.Contains(r.UserAgent(), "Googlebot")
	}
	if client == crawlerAddress && r.Header.Get("Sec-Fetch-Dest") == "" {
		counted = true // the script's crawler sends no fetch metadata, as crawlers do
	}
	limited := s.seen[client] >= s.limit && !exempt
	if counted && !exempt {
		if !limited {
			s.seen[client]++
		}
		if limited && s.fault != "no limiter" {
			s.refuse(w, r)
			return
		}
	}
	if limited && prefetch {
		switch s.fault {
		case "204 to a prefetch":
			w.WriteHeader(http.StatusNoContent)
			return
		case "":
			s.refuse(w, r)
			return
		}
	}
	if limited && asset && s.fault == "refuses assets later" {
		s.refuse(w, r)
		return
	}
	switch {
	case s.fault == "errors under load" && counted && s.seen[client] == s.limit/2:
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
	switch s.fault {
	case "no retry-after":
	case "retry-after is a date":
		h.Set("Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
	case "retry-after zero":
		h.Set("Retry-After", "0")
	case "retry-after fraction":
		h.Set("Retry-After", "1.5")
	case "refusals lengthen":
		s.wait++
		h.Set("Retry-After", strconv.Itoa(60+s.wait))
	default:
		h.Set("Retry-After", "60")
	}
	if s.fault != "cacheable" {
		h.Set("Cache-Control", "private, No-Store")
	}
	status := http.StatusTooManyRequests
	if s.fault == "503" {
		status = http.StatusServiceUnavailable
	}
	if strings.HasPrefix(r.Header.Get("Accept"), "application/json") && s.fault != "no json" {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": "RATE_LIMITED", "retry_after": 60}})
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	if s.fault == "plain text" {
		h.Set("Content-Type", "text/plain")
	}
	w.WriteHeader(status)
	if s.fault == "no contact" {
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

func serve(t *testing.T, fault string) string {
	t.Helper()
	srv := httptest.NewServer(&site{fault: fault, limit: 6, seen: map[string]int{}})
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

// TestHammerNotices gives the script one fault at a time: every one of them
// must be missed in the row that is about it.
func TestHammerNotices(t *testing.T) {
	t.Parallel()
	for fault, row := range map[string]string{
		"no limiter":            "the next navigation",
		"counts assets":         "navigations up to the limit",
		"counts prefetches":     "navigations up to the limit",
		"counts redirects":      "navigations up to the limit",
		"refuses assets later":  "assets pass while pages are refused",
		"204 to a prefetch":     "a prefetch while refused",
		"no retry-after":        "Retry-After",
		"retry-after is a date": "Retry-After",
		"retry-after zero":      "Retry-After",
		"retry-after fraction":  "Retry-After",
		"refusals lengthen":     "refusals do not lengthen",
		"cacheable":             "Cache-Control",
		"503":                   "the next navigation",
		"no json":               "JSON when asked for",
		"plain text":            "a page for people",
		"no contact":            "with a contact",
		"one client for all":    "a second client",
		"crawler is limited":    "a verified crawler's address",
		"believes names":        "a crawler's name alone",
		"errors under load":     "navigations up to the limit",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			out, code := hammer(t, fresh(serve(t, fault))...)
			if code != 1 {
				t.Fatalf("exit %d, want 1\n%s", code, out)
			}
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "MISS") && strings.Contains(line, row) {
					return
				}
			}
			t.Errorf("no MISS in the row %q\n%s", row, out)
		})
	}
}

func TestHammerSaysWhatItDidNotRun(t *testing.T) {
	t.Parallel()
	out, code := hammer(t, "--url", serve(t, ""), "--limit", "6")
	if code != 0 || !strings.Contains(out, "2 not run") || strings.Contains(out, "MISS") {
		t.Errorf("exit %d\n%s", code, out)
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
