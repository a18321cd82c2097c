package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/sizing"
	"github.com/stilehq/stile/sizing/loggen"
)

// siteLog is a small site with everything planted: enough people for a p99.9, an
// abuser, a university, robots.
func siteLog(t testing.TB) (string, loggen.Truth) {
	t.Helper()
	s := generated()
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.log, s.truth
}

type site struct {
	log   string
	truth loggen.Truth
	err   error
}

var generated = sync.OnceValue(func() site {
	var b bytes.Buffer
	truth, err := loggen.Generate(&b, loggen.Config{
		Seed: 7, Days: 3, Humans: 1200, SessionsPerDay: 600, Assets: 2,
		Abuser: &loggen.Abuser{PagesPerDay: 500, Browser: true}, University: &loggen.University{Users: 120, SessionsPerDay: 220},
		Crawlers: 1, Fakes: 1, Monitors: 1, Feeds: 1, Previews: 1,
	})
	return site{b.String(), truth, err}
})

func TestSizeText(t *testing.T) {
	t.Parallel()
	log, truth := siteLog(t)
	r := command(t, nil, log, "size", "-")
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if !strings.Contains(r.stdout, truth.Abuser.Address) || !strings.Contains(r.stdout, truth.University.Address) {
		t.Errorf("abuser %s or university %s is missing", truth.Abuser.Address, truth.University.Address)
	}
	golden(t, "size.golden", r.stdout)
}

// TestSizeToReplay takes the whole way: measure, write the policy, check it, play
// it. The proposal must cut the abuser and be no bad news.
func TestSizeToReplay(t *testing.T) {
	t.Parallel()
	log, truth := siteLog(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "access.log.gz")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(log)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, z.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, page := filepath.Join(dir, "stile.yaml"), filepath.Join(dir, "size.html")
	r := command(t, nil, "", "size", "--json", "--policy-out", out, "--html", page, filepath.Join(dir, "*.gz"))
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	var m sizing.Report
	if err := json.Unmarshal([]byte(r.stdout), &m); err != nil {
		t.Fatal(err)
	}
	if m.Traffic.Pages != truth.Pages || m.Log.Lines != truth.Lines {
		t.Errorf("%d pages in %d lines, truth %d in %d", m.Traffic.Pages, m.Log.Lines, truth.Pages, truth.Lines)
	}
	html := read(t, page)
	for _, want := range []string{"<svg", truth.Abuser.Address, "The policy over this log"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}

	if r := command(t, nil, "", "policy", "check", out); r.code != 0 {
		t.Errorf("the proposal does not pass its check:\n%s%s", r.stdout, r.stderr)
	}
	f, _, err := policy.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	if f.Measured == nil || f.Measured.HumanP999PerHour != int64(m.Humans.PerHour.P999) || f.Measured.HumanP999PerDay != int64(m.Humans.PerDay.P999) ||
		f.Measured.AbuserPerHour != int64(m.Proposal.AbuserHour) || f.Measured.AbuserPerDay != 100 || // the false Googlebot is the lightest
		f.Measured.Period != truth.From.Format("2006-01-02")+"/"+truth.To.Format("2006-01-02") {
		t.Errorf("measured: %+v, want the report's numbers", f.Measured)
	}
	if f.Mode != policy.ModeObserve {
		t.Errorf("mode %s: a proposal begins by observing", f.Mode)
	}

	r = command(t, nil, "", "replay", "--policy", out, "--json", path)
	var p replayResult
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil {
		t.Fatal(err, r.stderr)
	}
	cut := int64(0)
	for _, c := range p.Limited {
		if c.Address == truth.Abuser.Address {
			cut = c.Refused
		}
	}
	if want := truth.Abuser.Pages - 3*int64(m.Proposal.Day); cut != want { // three days of log
		t.Errorf("the abuser lost %d pages, want %d", cut, want)
	}
	if p.BadNews != (r.code == 1) || r.code > 1 {
		t.Errorf("exit %d, bad news %v", r.code, p.BadNews)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSizePseudonymise: no address of the log is in what leaves the house; the
// policy at home keeps them; one key gives one name.
func TestSizePseudonymise(t *testing.T) {
	t.Parallel()
	log, truth := siteLog(t)
	dir := t.TempDir()
	env := map[string]string{"STILE_PSEUDONYM_KEY": "0123456789abcdef"}
	page, out := filepath.Join(dir, "p.html"), filepath.Join(dir, "p.yaml")
	text := command(t, env, log, "size", "--pseudonymise", "--html", page, "--policy-out", out, "-")
	js := command(t, env, log, "size", "--pseudonymise", "--json", "-")
	again := command(t, env, log, "size", "--pseudonymise", "-")
	other := command(t, nil, log, "size", "--pseudonymise", "-")
	if text.code != 0 || js.code != 0 || other.code != 0 {
		t.Fatalf("%+v", text)
	}
	for name, s := range map[string]string{"text": text.stdout, "json": js.stdout, "page": read(t, page)} {
		for _, a := range []string{truth.Abuser.Address, truth.University.Address} {
			if strings.Contains(s, a) {
				t.Errorf("%s holds %s", name, a)
			}
		}
		if !strings.Contains(s, "client-") {
			t.Errorf("%s has no names at all", name)
		}
	}
	if text.stdout != again.stdout || text.stdout == other.stdout {
		t.Error("want one name per key, and other names for a key of the run's own")
	}
	if r := command(t, nil, "", "policy", "check", out); r.code != 0 || !strings.Contains(read(t, out), truth.University.Address) {
		t.Errorf("the policy at home: exit %d\n%s%s", r.code, r.stdout, read(t, out))
	}
	if r := command(t, map[string]string{"STILE_PSEUDONYM_KEY": "short"}, log, "size", "--pseudonymise", "-"); r.code != 2 {
		t.Errorf("a short key: exit %d", r.code)
	}
}

// TestSizeFlags: each flag changes what it names.
func TestSizeFlags(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 12 { // half an hour around midnight in Berlin
		fmt.Fprintf(&b, `10.0.0.1 "203.0.113.%d, 198.51.100.9" [05/Mar/2026:22:%02d:00 +0000] "GET /p%d HTTP/1.1" 200 5`+"\n", i%2+1, 54+i/2, i)
	}
	format := `$remote_addr "$http_x_forwarded_for" [$time_local] "$request" $status $body_bytes_sent`
	size := func(args ...string) sizing.Report {
		t.Helper()
		r := command(t, nil, b.String(), append([]string{"size", "--json", "--format", format, "-"}, args...)...)
		var m sizing.Report
		if err := json.Unmarshal([]byte(r.stdout), &m); err != nil || r.code != 0 {
			t.Fatalf("%v: exit %d, %v: %s", args, r.code, err, r.stderr)
		}
		return m
	}
	if m := size(); m.Traffic.Addresses != 1 || m.Traffic.Pages != 12 || m.Everyone.PerDay.Count != 1 {
		t.Errorf("the peer is the client by default: %+v", m.Traffic)
	}
	if m := size("--xff-hops", "2"); m.Traffic.Addresses != 2 {
		t.Errorf("--xff-hops 2: %d addresses, want 2", m.Traffic.Addresses)
	}
	if m := size("--trusted-proxy", "198.51.100.0/24,10.0.0.0/8"); m.Traffic.Addresses != 2 {
		t.Errorf("--trusted-proxy: %d addresses, want 2", m.Traffic.Addresses)
	}
	if m := size("--xff-hops", "2", "--own", "203.0.113.1", "--own", "192.0.2.0/24"); m.Everyone.Addresses != 1 {
		t.Errorf("--own: %d visitors, want 1", m.Everyone.Addresses)
	}
	if m := size("--tz", "Europe/Berlin"); m.Zone != "Europe/Berlin" {
		t.Errorf("--tz: %q", m.Zone)
	}
	path := write(t, "p.yaml", "version: 1\nbuckets: [{name: h, key: address, limit: 9, window: 1h}]\ncount: {include: [/p1]}\n")
	if m := size("--policy", path); m.Traffic.Pages != 1 {
		t.Errorf("--policy that counts /p1: %d pages, want 1", m.Traffic.Pages)
	}
}

// TestSizeRefusals: what cannot be done is said, with the right status.
func TestSizeRefusals(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "p.yaml")
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"size", 2, "expected"},
		{"size /does/not/exist*", 3, "no such log"},
		{"size .", 3, "is a directory"},
		{"size --tz Mars/Olympus -", 2, "--tz: no zone"},
		{"size --own 300.1.2.3 -", 2, "--own: want a range"},
		{"size --format %q -", 2, "--format"},
		{"size --xff-hops -1 -", 2, "--xff-hops"},
		{"size - -", 2, "given twice"},
		{"size --policy-out " + out + " -", 1, "no limits can be proposed"},
		{"size --html /does/not/exist/p.html -", 3, "no such file"},
		{"replay -", 2, "--policy"},
		{"replay --policy - --compare - x", 2, "standard input"},
		{"replay --policy /does/not/exist -", 3, "no such file"},
	} {
		r := command(t, nil, "", strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("stile %s: exit %d, want %d; stderr, want %q: %s", c.args, r.code, c.code, c.stderr, r.stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a policy was written without a proposal")
	}
	bad := write(t, "cut.gz", "\x1f\x8b\x08broken")
	if r := command(t, nil, "", "size", bad); r.code != 3 || !strings.Contains(r.stderr, "no log could be read") {
		t.Errorf("a broken archive: exit %d, %s", r.code, r.stderr)
	}
}
