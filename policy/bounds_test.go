package policy

import (
	"fmt"
	"strings"
	"testing"
)

// base is a policy with one place for a top-level part and one for the bucket.
func base(part, bucket string) string {
	return "version: 1\ncontact: mailto:ops@example.org\n" + part + "\nbuckets:\n  - {" + bucket + "}\n"
}

// TestBounds asks of each bound for the last value that is allowed and the
// first that is not.
func TestBounds(t *testing.T) {
	t.Parallel()
	const hour = "name: hour, limit: 60, window: 1h"
	cases := []struct {
		path, part, bucket string // %s is replaced
		allowed, refused   []string
	}{
		{"scale", "scale: %s", hour, []string{"0.0001", "1000000"}, []string{"0", "-1", "1000001", ".nan", "-.inf"}},
		{"site", "site: %s", hour, []string{"a", strings.Repeat("a", 63)}, []string{`""`, strings.Repeat("a", 64), "-a"}},
		{"buckets[0].name", "", "name: %s, limit: 60, window: 1h", []string{"a", strings.Repeat("a", 32), "a-b_1"}, []string{strings.Repeat("a", 33), "A", "_a", "a.b"}},
		{"buckets[0].limit", "", "name: hour, window: 1h, limit: %s", []string{"1", "1000000000"}, []string{"0", "-1", "1000000001"}},
		{"buckets[0].limit", "scale: 2", "name: hour, window: 1h, limit: %s", []string{"500000000"}, []string{"500000001"}},
		{"buckets[0].limit", "", "name: hour, window: 1s, algorithm: gcra, limit: %s", []string{"1000000"}, []string{"1000001"}},
		{"buckets[0].limit", "", "name: hour, window: 1s, algorithm: token-bucket, limit: %s", []string{"1000000"}, []string{"1000001"}},
		{"buckets[0].limit", "scale: 10", "name: hour, window: 1s, algorithm: gcra, limit: %s", []string{"100000"}, []string{"100001"}},
		{"buckets[0].window", "", "name: hour, limit: 60, window: %s", []string{"1s", "61s", "400d"}, []string{"0", "0s", "999ms", "1001ms", "400d1s"}},
		{"buckets[0].burst", "", "name: hour, limit: 60, window: 1h, algorithm: gcra, burst: %s", []string{"0", "1", "60"}, []string{"-1", "1000000001"}},
		{"buckets[0].burst", "", "name: hour, limit: 4, window: 400d, algorithm: token-bucket, burst: %s", []string{"4"}, []string{"5"}},
		{"buckets[0].burst", "", "name: hour, limit: 60, window: 1h, algorithm: sliding-window-log, burst: %s", []string{"0"}, []string{"1", "-1"}},
		{"buckets[0].flush_every", "", "name: n, key: global, limit: 60, window: 1h, flush_every: %s", []string{"0", "1s", "1h"}, []string{"3601s"}},
		{"buckets[0].flush_every", "", "name: n, limit: 60, window: 1h, flush_every: %s", []string{"0"}, []string{"1s"}},
		{"client.ipv6_prefix", "client: {ipv6_prefix: %s}", hour, []string{"32", "56", "64"}, []string{"0", "31", "65", "128"}},
		{"client.trusted_hops", "client: {from: xff, trusted_proxies: [10.0.0.0/8], trusted_hops: %s}", hour, []string{"0", "16"}, []string{"-1", "17"}},
		{"client.trusted_proxies[0]", "client: {from: xff, trusted_proxies: [%s]}", hour, []string{"0.0.0.0/1", "10.0.0.1"}, []string{"0.0.0.0/0", `"::/0"`, "10.0.0.0/33"}},
		{"count.claims_factor", "count: {claims_factor: %s}", hour, []string{"1", "10000"}, []string{"0", "10001"}},
		{"exempt.networks[0].multiply", "exempt: {networks: [{cidr: 192.0.2.0/24, reason: r, multiply: %s}]}", hour, []string{"0", "2", "10000"}, []string{"-1", "10001"}},
		{"exempt.crawlers.seo.multiply", "exempt: {crawlers: {seo: {multiply: %s}}}", hour, []string{"1", "10000"}, []string{"0", "10001"}},
		{"store.timeout", "store: {timeout: %s}", hour, []string{"1ms"}, []string{"0", "0ms"}},
		{"store.connect_timeout", "store: {connect_timeout: %s}", hour, []string{"1ms"}, []string{"0"}},
		{"store.max_keys", "store: {max_keys: %s}", hour, []string{"1000"}, []string{"999"}},
		{"store.max_ops_per_second", "store: {max_ops_per_second: %s}", hour, []string{"0"}, []string{"-1"}},
		{"store.max_ops_per_day", "store: {max_ops_per_day: %s}", hour, []string{"0"}, []string{"-1"}},
		{"identify.jwt.leeway", "identify: {jwt: {jwks_file: f, issuer: i, audience: a, leeway: %s}}", hour, []string{"0", "5m"}, []string{"301s"}},
		{"identify.jwt.jwks", "identify: {jwt: {jwks: '%s', issuer: i, audience: a}}", hour, []string{"https://a.example/k", "http://127.0.0.1:1/k"}, []string{"http://a.example/k", "ftp://a.example/k", "https:///k", "http://127.0.0.1.example/"}},
		{"identify.api_keys.keys[0].tier", "identify: {api_keys: {keys: [{hash: " + strings.Repeat("a", 64) + ", name: a, tier: %s}]}}", hour, []string{"1", "10000"}, []string{"0", "10001"}},
		{"identify.api_keys.keys[0].hash", "identify: {api_keys: {keys: [{name: a, hash: '%s'}]}}", hour, []string{strings.Repeat("a", 64)}, []string{strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat("A", 64)}},
	}
	for _, c := range cases {
		for _, value := range c.allowed {
			if _, _, err := parse("", []byte(fill(c.part, c.bucket, value)), testEnv, testNow); err != nil {
				t.Errorf("%s: %s is refused: %v", c.path, value, err)
			}
		}
		for _, value := range c.refused {
			_, _, err := parse("", []byte(fill(c.part, c.bucket, value)), testEnv, testNow)
			errs := all(err)
			if len(errs) != 1 || errs[0].Path != c.path || errs[0].Line == 0 {
				t.Errorf("%s: %s gives %v, want one error there", c.path, value, err)
			}
		}
	}
}

func fill(part, bucket, value string) string {
	return strings.ReplaceAll(base(part, bucket), "%s", value)
}

// TestCounts holds the bounds on numbers of things.
func TestCounts(t *testing.T) {
	t.Parallel()
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	head := "version: 1\ncontact: mailto:ops@example.org\n"
	hour := "buckets: [{name: hour, limit: 60, window: 1h}]\n"
	cases := []struct {
		name string
		file func(n int) string
		most int
		path string
	}{
		{"buckets", func(n int) string { return head + "buckets:\n" + list(n, "  - {name: b%d, limit: 60, window: 1h}\n") }, MaxBuckets, "buckets"},
		{"patterns", func(n int) string {
			return head + hour + "count:\n  exclude:\n" + list(n, "    - /p%d\n")
		}, maxPatterns, "count.exclude"},
		{"networks", func(n int) string {
			return head + hour + "client:\n  peers:\n" + list(n, "    - 2001:db8::%x\n")
		}, maxItems, "client.peers"},
		{"references", func(n int) string {
			return head + hour + "client: {peer_secret: {header: X-E, secrets: [" + strings.Repeat("env:EDGE_SECRET, ", n) + "]}}\n"
		}, 4, "client.peer_secret.secrets"},
		{"text", func(n int) string {
			return head + hour + "identify: {jwt: {jwks_file: f, audience: a, issuer: " + strings.Repeat("x", n) + "}}\n"
		}, maxText, "identify.jwt.issuer"},
		{"file", func(n int) string {
			s := head + hour
			return s + strings.Repeat("#", n-len(s))
		}, MaxSize, ""},
	}
	for _, c := range cases {
		if _, _, err := parse("", []byte(c.file(c.most)), testEnv, testNow); err != nil {
			t.Errorf("%s: %d are refused: %.300v", c.name, c.most, err)
		}
		_, _, err := parse("", []byte(c.file(c.most+1)), testEnv, testNow)
		if errs := all(err); len(errs) != 1 || errs[0].Path != c.path {
			t.Errorf("%s: %d give %.300v", c.name, c.most+1, err)
		}
	}
}

// TestManyErrors keeps the report of a file that is something else readable.
func TestManyErrors(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "unknown%d: x\n", i)
	}
	_, _, err := parse("", []byte(b.String()), testEnv, testNow)
	if n := len(all(err)); n != maxErrors+1 {
		t.Errorf("%d errors", n)
	}
	if !strings.HasSuffix(err.Error(), "more errors") {
		t.Errorf("%.200s", err.Error())
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1h": "1h", "24h": "24h", "1d": "24h", "2d": "2d", "7d": "7d", "49h": "2d1h", "1d12h": "36h", "90s": "1m30s", "150ms": "150ms",
		"1.5h": "1h30m", "1500ms": "1.5s", "10m": "10m", "1h0m5s": "1h0m5s", "0s": "0", "0d": "0", "48h10ms": "2d10ms", "100µs": "100µs", "100us": "100µs",
	} {
		d, ok := parseDuration(text)
		if !ok || formatDuration(d) != want {
			t.Errorf("%s: %v %s, want %s", text, ok, formatDuration(d), want)
		}
		if again, ok := parseDuration(formatDuration(d)); want != "0" && (!ok || again != d) {
			t.Errorf("%s: %v does not survive", text, d)
		}
	}
	for _, text := range []string{"", "d", "h", "1", "-1h", "+1h", "1h-1m", "1w", "1 h", "h1", "1d1d", "100001d", "2562048h", "1e3s", "1hd", "١h"} {
		if d, ok := parseDuration(text); ok {
			t.Errorf("%q is read as %v", text, d)
		}
	}
}
