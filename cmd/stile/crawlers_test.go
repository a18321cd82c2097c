package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bytes"
)

// lists answers requests for published lists from a table of host and path; what
// is not in it fails.
type lists map[string]string

func (l lists) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := l[r.URL.Host+r.URL.Path]
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	return &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// zone is a DNS of two hosts.
type zone struct{}

func (zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	switch addr {
	case "11.22.33.44":
		return []string{"crawl-11-22-33-44.googlebot.com."}, nil
	case "11.22.33.55": // an attacker's own reverse zone
		return []string{"crawl-11-22-33-44.googlebot.com."}, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func (zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "crawl-11-22-33-44.googlebot.com" || host == "crawl-11-22-33-44.googlebot.com." {
		return []netip.Addr{netip.MustParseAddr("11.22.33.44")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// online is command with lists and names to be had.
func online(t *testing.T, l lists, args ...string) run {
	t.Helper()
	var out, errs bytes.Buffer
	term := &terminal{
		lookup: func(string) (string, bool) { return "", false }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
		now:       func() time.Time { return time.Date(2026, 10, 5, 12, 20, 0, 0, time.UTC) },
		transport: l, resolver: zone{},
	}
	return run{term.exec(context.Background(), args), out.String(), errs.String()}
}

const googleList = "developers.google.com/static/crawling/ipranges/common-crawlers.json"

// TestCrawlersUpdate writes what it had, keeps what it had not, and says so.
func TestCrawlersUpdate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ranges.txt")
	r := online(t, lists{}, "crawlers", "update", file)
	if _, err := os.Stat(file); r.code != 3 || err == nil || !strings.Contains(r.stderr, "no list could be fetched") {
		t.Errorf("nothing to be had: exit %d, file %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	found := lists{googleList: `{"creationTime":"2026-10-04T00:00:00.000000","prefixes":[{"ipv4Prefix":"11.22.44.0/24"}]}`}
	r = online(t, found, "crawlers", "update", file)
	if r.code != 1 || !strings.Contains(r.stdout, "kept: ") || !strings.Contains(r.stdout, "crawlers: {file: ") {
		t.Errorf("one list of all: exit %d, want 1 and what was kept\n%s%s", r.code, r.stdout, r.stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "11.22.44.0/24") || !strings.Contains(string(text), "list bing") {
		t.Errorf("%v: the new range or the old lists are missing:\n%.300s", err, text)
	}
	// A second run begins with the file: what cannot be had now stays.
	found["developers.google.com/x"] = ""
	delete(found, googleList)
	found["openai.com/gptbot.json"] = `{"creationTime":"2026-10-04T00:00:00.000000","prefixes":[{"ipv4Prefix":"11.22.55.0/24"}]}`
	r = online(t, found, "crawlers", "update", "--json", file)
	var result struct {
		Written bool
		Lists   []struct {
			List, Error   string
			Before, After int
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil || !result.Written || len(result.Lists) < 10 {
		t.Fatalf("exit %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	text, _ = os.ReadFile(file)
	for _, p := range []string{"11.22.44.0/24", "11.22.55.0/24"} {
		if !strings.Contains(string(text), p) {
			t.Errorf("%s is missing after a second run", p)
		}
	}
	if r := online(t, nil, "crawlers", "verify", "11.22.44.5", "--file", file); r.code != 0 || !strings.Contains(r.stdout, "verified: Googlebot") {
		t.Errorf("the file proves nothing: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// And an instance uses it.
	policy := write(t, "stile.yaml", limit(1)+"crawlers: {file: "+file+"}\n")
	if r := online(t, nil, "explain", "--policy", policy, "--client", "11.22.44.5", "GET", "/"); r.code != 0 || !strings.Contains(r.stdout, "verified crawler Googlebot") {
		t.Errorf("the policy's file proves nothing: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

func TestCrawlersList(t *testing.T) {
	t.Parallel()
	r := command(t, nil, "", "crawlers", "list")
	if r.code != 0 || !strings.Contains(r.stdout, "google-common") || !strings.Contains(r.stdout, "shipped") || !strings.Contains(r.stdout, "old") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = command(t, nil, "", "crawlers", "list", "--json")
	var all []struct{ ID string }
	if err := json.Unmarshal([]byte(r.stdout), &all); err != nil || len(all) < 10 {
		t.Errorf("%v\n%.200s", err, r.stdout)
	}
	for _, args := range [][]string{{"crawlers", "list", "/does/not/exist"}, {"crawlers", "list", write(t, "x", "<html>")}} {
		if r := command(t, nil, "", args...); r.code != 3 {
			t.Errorf("%v: exit %d, want 3\n%s", args, r.code, r.stderr)
		}
	}
}

// TestCrawlersVerify: an address proves, by range or by a name that leads back;
// a User-Agent, and a name that somebody else's zone claims, prove nothing.
func TestCrawlersVerify(t *testing.T) {
	t.Parallel()
	googlebot := "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	for _, c := range []struct {
		name string
		code int
		args []string
	}{
		{"verify-range", 0, []string{"66.249.66.1"}},
		{"verify-impostor", 1, []string{"203.0.113.9", "--user-agent", googlebot}},
		{"verify-name", 0, []string{"11.22.33.44", "--user-agent", googlebot}},
		{"verify-false-name", 1, []string{"11.22.33.55", "--user-agent", googlebot}},
		{"verify-offline", 1, []string{"11.22.33.44", "--offline", "--user-agent", googlebot}},
		{"verify-browser", 1, []string{"203.0.113.9", "--user-agent", "Mozilla/5.0 Firefox/140.0"}},
		{"verify-hostile", 1, []string{"203.0.113.9", "--user-agent", "\x1b[31mGooglebot"}},
		{"verify-json", 0, []string{"66.249.66.1", "--json"}},
	} {
		r := online(t, nil, append([]string{"crawlers", "verify"}, c.args...)...)
		if r.code != c.code || r.stderr != "" || strings.ContainsRune(r.stdout, 0x1b) {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.name, r.code, c.code, r.stdout, r.stderr)
		}
		golden(t, c.name+".golden", r.stdout)
	}
	if r := command(t, nil, "", "crawlers", "verify", "nonsense"); r.code != 2 {
		t.Errorf("no address: exit %d", r.code)
	}
}
