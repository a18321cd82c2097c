package main

import (
	"strings"
	"testing"

	"github.com/stilehq/stile/core"
)

const explainPolicy = `version: 1
site: shop
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [10.0.0.0/8]}
buckets:
  - {name: hour, key: address, limit: 60, window: 1h}
  - {name: search, key: address, algorithm: gcra, limit: 30, window: 1h, burst: 5, paths: ["/search/**"]}
  - {name: network-day, key: network, algorithm: fixed-window, limit: 2000, window: 24h}
exempt:
  networks: [{cidr: 192.0.2.0/24, reason: office, until: 2099-01-01}]
  crawlers: {search: ordinary}
`

func TestExplain(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"explain-bot":      {"--client", "203.0.113.9", "GET", "https://example.org/articles/1"},
		"explain-image":    {"--client", "203.0.113.9", "--header", "Sec-Fetch-Dest: image", "GET", "/articles/1"},
		"explain-asset":    {"GET", "/style.css?v=1"},
		"explain-prefetch": {"--header", "Sec-Purpose: prefetch", "--header", "Sec-Fetch-Dest: document", "GET", "/"},
		"explain-crawler":  {"--client", "66.249.66.1", "--header", "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)", "GET", "/"},
		"explain-impostor": {"--client", "203.0.113.9", "--header", "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)", "GET", "/"},
		"explain-chain":    {"--policy", "-", "--peer", "10.0.0.2", "--header", "X-Forwarded-For: 127.0.0.5, 203.0.113.9", "--header", "Sec-Fetch-Dest: document", "GET", "/search/shoes"},
		"explain-stranger": {"--policy", "-", "--peer", "203.0.113.200", "--header", "X-Forwarded-For: 198.51.100.1", "GET", "/"},
		"explain-network":  {"--policy", "-", "--client", "192.0.2.77", "GET", "/"},
		"explain-json":     {"--json", "--client", "203.0.113.9", "GET", "/"},
		"explain-hostile":  {"--header", "Sec-Fetch-Dest: \x1b[2Jdocument", "--header", "Accept: \x1b]0;title\x07", "GET", "/%1b%5b31m"},
		"explain-ipv6":     {"--client", "2001:db8:1:2:3::4", "HEAD", "/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, nil, explainPolicy, append([]string{"explain"}, args...)...)
			if r.code != 0 || r.stderr != "" {
				t.Errorf("exit %d: %s", r.code, r.stderr)
			}
			if strings.ContainsRune(r.stdout, 0x1b) {
				t.Errorf("an escape sequence reached the terminal:\n%q", r.stdout)
			}
			golden(t, name+".golden", r.stdout)
		})
	}
}

func TestExplainRefusesWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	r := command(t, nil, "version: 1\nbuckets: [{name: h, key: address, limit: 9, window: 1h}]\nidentify: {jwt: {jwks_file: none.json, audience: shop, issuer: 'https://id.example.org'}}\n", "explain", "--policy", "-", "GET", "/")
	if r.code != 3 || !strings.Contains(r.stderr, "identify.jwt: ") {
		t.Errorf("exit %d, want 3 and the reason:\n%s", r.code, r.stderr)
	}
	r = command(t, nil, badPolicy, "explain", "--policy", "-", "GET", "/")
	if r.code != 1 || !strings.Contains(r.stderr, "buckets[0].limit") || !strings.Contains(r.stderr, "client") {
		t.Errorf("exit %d, want 1 and all errors:\n%s", r.code, r.stderr)
	}
}

// TestBadNews: only a verified crawler that would be limited is bad news.
func TestBadNews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verified bool
		outcome  core.Outcome
		bad      bool
	}{{true, core.Refuse, true}, {false, core.Refuse, false}, {true, core.Admit, false}, {true, core.Pass, false}} {
		d := core.Decision{Outcome: c.outcome, Crawler: core.Crawler{Verified: c.verified}}
		if got := limitsCrawler(&d); got != c.bad {
			t.Errorf("verified %v, %s: %v, want %v", c.verified, c.outcome, got, c.bad)
		}
	}
}
