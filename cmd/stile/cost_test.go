package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCostGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		code int
		args string
	}{
		{"cost.golden", exitFine, ""},
		{"cost-hot.golden", exitFine, "--on gcp --navigations 5000000 --hot global=9 --hot address=2 --page-cost 0.0005 --crawler-pages 400000"},
		{"cost-eu.golden", exitBadNews, "--region eu-west-1 --on aws"}, // half of its prices are unknown
		{"cost-zero.golden", exitFine, "--navigations 0 --on own"},
	} {
		r := command(t, nil, "", append([]string{"cost", "--results", "testdata/results"}, strings.Fields(c.args)...)...)
		if r.code != c.code || r.stderr != "" {
			t.Errorf("%s: exit %d, want %d: %s", c.name, r.code, c.code, r.stderr)
		}
		golden(t, c.name, r.stdout)
	}
}

// TestCostPage: docs/choosing-a-store.md is in step with the command.
func TestCostPage(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/choosing-a-store.md", "<!-- stile cost --markdown -->\n", "<!-- end -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the marks of the table are gone")
	}
	r := command(t, nil, "", "cost", "--markdown")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+r.stdout+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != r.stdout {
		t.Errorf("%s is out of step; run with -update. It has:\n%s\nwant:\n%s", path, table, r.stdout)
	}
	// The worked examples are the model's.
	for _, c := range []struct{ line, id, field string }{
		{"| DynamoDB on demand, 1 M |", "dynamodb-on-demand", "month"},
		{"| Firestore Standard, 1 M |", "firestore-standard", "month"},
		{"| the same with free quantities |", "firestore-standard", "month_free"},
		{"| Firestore Enterprise, 1 M |", "firestore-enterprise", "month"},
		{"| ElastiCache t4g.micro, any |", "elasticache-node", "month"},
		{"| REST authorizer, 1 M, store apart |", "rest-authorizer", "month"},
	} {
		_, after, ok := strings.Cut(string(page), c.line)
		line, _, _ := strings.Cut(after, "\n")
		if got := "$" + cents(t, c.id, c.field); !ok || !strings.HasSuffix(line, "| "+got+" |") {
			t.Errorf("%s reads %q, and the model says %s", c.line, line, got)
		}
	}
}

// cents returns a sum of the default month.
func cents(t *testing.T, id, field string) string {
	t.Helper()
	var list struct{ Stores, Placements []map[string]any }
	r := command(t, nil, "", "cost", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(list.Stores, list.Placements...) {
		if s["id"] == id {
			var f float64
			if _, err := fmt.Sscan(s[field].(string), &f); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%.2f", f)
		}
	}
	t.Fatalf("no %s", id)
	return ""
}

func TestCostWrongly(t *testing.T) {
	t.Parallel()
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "redis.json"), []byte(`{"schema":99,"store":{"name":"redis"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"--results /does/not/exist", exitFailed, "no such file"},
		{"--results cost.go", exitMisuse, "want a folder"},
		{"--results " + old, exitFailed, "another version"},
		{"--results " + t.TempDir(), exitFailed, "no bench result"},
		{"--navigations 2000000000000", exitMisuse, "navigations"},
		{"--refused 2", exitMisuse, "0 to 1"},
		{"--refused x", exitMisuse, "--refused"},
		{"--page-cost 1e99999999", exitMisuse, "--page-cost"},
		{"--page-cost -1", exitMisuse, "--page-cost"},
		{"--hot frob=1", exitMisuse, "--hot"},
		{"--hot address", exitMisuse, "--hot"},
		{"--on mars", exitMisuse, "gcp, aws or own"},
		{"--prices /does/not/exist", exitFailed, "no such file"},
		{"--prices cost_test.go", exitBadNews, "cannot be used"},
		{"--size-report cost_test.go", exitFailed, "stile size --json"},
		{"--size-report x --log y", exitMisuse, "exclude"},
		{"--origin-ms -1", exitMisuse, "--origin-ms"},
		{"--region africa-south1 --on gcp", exitBadNews, ""},
	} {
		r := command(t, nil, "", append([]string{"cost"}, strings.Fields(c.args)...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("stile cost %s: exit %d, want %d; stderr, want %q: %s", c.args, r.code, c.code, c.stderr, r.stderr)
		}
	}
}

// TestCostOtherVersion: a result of another version is told and left out; the
// others are used.
func TestCostOtherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"redis.json", "dynamodb.json"} {
		data, err := os.ReadFile("testdata/results/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "dynamodb.json" {
			data = []byte(strings.Replace(string(data), `"schema": 1`, `"schema": 2`, 1))
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := command(t, nil, "", "cost", "--results", dir)
	if r.code != 0 || !strings.Contains(r.stderr, "dynamodb.json") || !strings.Contains(r.stdout, "DynamoDB, on demand cannot be taken: no bench result") {
		t.Errorf("exit %d: %s\n%s", r.code, r.stderr, r.stdout)
	}
}

// TestCostFromLog reckons a month from a day's log.
func TestCostFromLog(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	const pages = 2400 // in a day: 73,000 a month
	for i := range pages {
		at := begin.Add(time.Duration(i) * 24 * time.Hour / (pages - 1))
		fmt.Fprintf(&b, "198.51.100.%d - - [%s] \"GET /articles/%d HTTP/1.1\" 200 5000 \"-\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\"\n",
			i%200, at.Format("02/Jan/2006:15:04:05 -0700"), i)
	}
	log := write(t, "access.log", b.String())
	html := filepath.Join(t.TempDir(), "cost.html")
	r := command(t, nil, "", "cost", "--log", log, "--on", "aws", "--html", html, "--json")
	var got struct {
		Traffic struct {
			Navigations int64
			From        string
			PerClient   string `json:"navigations_per_client_and_day"`
		}
		Recommended struct{ ID string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != 0 {
		t.Fatalf("exit %d, %v: %s", r.code, err, r.stderr)
	}
	if n := got.Traffic.Navigations; n < 72_900 || n > 73_100 || got.Traffic.From != "the log" || !strings.HasPrefix(got.Traffic.PerClient, "1") {
		t.Errorf("%+v", got)
	}
	if page, err := os.ReadFile(html); err != nil || !strings.Contains(string(page), "<svg") {
		t.Errorf("the page: %v", err)
	}
}

// TestCostPolicy: a policy bounds its own keys, and an outer bucket is an operation.
func TestCostPolicy(t *testing.T) {
	t.Parallel()
	policy := write(t, "stile.yaml", `version: 1
site: x
client: {from: remote}
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: 60, window: 1h}
  - {name: network-day, key: network, algorithm: fixed-window, limit: 2000, window: 24h, flush_every: 10m}
`)
	r := command(t, nil, "", "cost", "--policy", policy, "--hot", "address=30", "--hot", "network=20", "--on", "gcp")
	for _, want := range []string{
		"its limit of 60 in 1h0m0s lets no more through", "coalesced: 4 instances report up to 15 at once, or after 10m0s",
		"network: BREAKS: 1 writes a second", "Recommended: Upstash",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in:\n%s%s", want, r.stdout, r.stderr)
		}
	}
}
