package edge

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

const rich = `version: 1
site: example
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [10.0.0.0/8]}
count: {methods: [GET, POST]}
buckets:
  - {name: burst, key: address, algorithm: token-bucket, limit: 60, burst: 20, window: 10m}
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: 60, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: 200, window: 24h}
  - {name: network-day, key: network, algorithm: fixed-window, limit: 2000, window: 24h, flush_every: 10m}
  - {name: search, key: address, algorithm: fixed-window, limit: 30, window: 1h, paths: ["/search/**", "/find*"]}
exempt:
  networks:
    - {cidr: 192.0.2.0/24, reason: office, until: 2027-01-01}
    - {cidr: "2001:db8::/32", reason: partner, multiply: 5}
    - {cidr: 198.51.100.0/24, reason: "a test that is over", until: 2026-01-01}
`

var now = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

func parse(t *testing.T, text string) *policy.File {
	t.Helper()
	f, _, err := policy.Parse("test.yaml", []byte(text), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func example(t *testing.T) *policy.File {
	t.Helper()
	f, _, err := policy.Default(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ product, plan, name string }{
		{"cloudflare", "", "cloudflare"}, {"cloudflare", "free", "cloudflare-free"}, {"cloudflare", "enterprise", "cloudflare-enterprise"},
		{"cloud-armor", "", "cloud-armor"}, {"aws-waf", "", "aws-waf"}, {"vercel", "", "vercel"},
	} {
		for kind, f := range map[string]*policy.File{"": example(t), "-rich": parse(t, rich)} {
			r, err := New(c.product, c.plan, f, now)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			path := filepath.Join("testdata", c.name+kind+".tf")
			if *update {
				if err := os.WriteFile(path, []byte(r.Text()), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != r.Text() {
				t.Errorf("%s differs from what New writes; go test ./edge -update, and read the difference\n%s", path, r.Text())
			}
		}
	}
}

// TestNumbers works the example policy's rings out by hand: 60 an hour, 200 a day.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for product, want := range map[string]string{
		"cloudflare":  "hour: 60 in 10m here, 60 in 1h in the policy; who stays just below gets 8640 pages a day here, where the policy's day allows 200, which no rule here can say.",
		"aws-waf":     "hour: 60 in 10m here, 60 in 1h in the policy; who stays just below gets 8640 pages a day here, where the policy's day allows 200, which no rule here can say.",
		"vercel":      "hour: 60 in 10m here, 60 in 1h in the policy; who stays just below gets 8640 pages a day here, where the policy's day allows 200, which no rule here can say.",
		"cloud-armor": "hour: 60 in 1h here, 60 in 1h in the policy; who stays just below gets 1440 pages a day here, where the policy's day allows 200, which no rule here can say.",
	} {
		r, err := New(product, "", example(t), now)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(r.Limits, "\n"), want) {
			t.Errorf("%s does not say %q:\n%s", product, want, strings.Join(r.Limits, "\n"))
		}
		if out := strings.Join(r.LeftOut, "\n"); !strings.Contains(out, "day: 200 in 1d; the longest window here is") {
			t.Errorf("%s does not say that the day is missing:\n%s", product, out)
		}
		if !strings.Contains(strings.Join(r.Limits, "\n"), "No visitor's day") {
			t.Errorf("%s does not say that it has no visitor's day", product)
		}
	}
}

func TestRings(t *testing.T) {
	t.Parallel()
	can := capability{windows: []int{60, 600}, least: 10, most: 1000}
	for _, c := range []struct {
		bucket policy.Bucket
		scale  float64
		window int
		held   int64
	}{
		{policy.Bucket{Algorithm: "fixed-window", Limit: 60, Window: time.Hour}, 1, 600, 60},
		{policy.Bucket{Algorithm: "fixed-window", Limit: 60, Window: time.Hour}, 10, 600, 600},
		{policy.Bucket{Algorithm: "fixed-window", Limit: 3, Window: time.Hour}, 1, 600, 10},       // the product's least
		{policy.Bucket{Algorithm: "fixed-window", Limit: 5000, Window: time.Hour}, 1, 600, 1000},  // its most
		{policy.Bucket{Algorithm: "fixed-window", Limit: 20, Window: 5 * time.Minute}, 1, 60, 20}, // the longest that is not longer
		{policy.Bucket{Algorithm: "fixed-window", Limit: 20, Window: 10 * time.Minute}, 1, 600, 20},
		{policy.Bucket{Algorithm: "fixed-window", Limit: 20, Window: 25 * time.Second}, 1, 60, 60},        // three of them in one
		{policy.Bucket{Algorithm: "gcra", Limit: 60, Window: time.Hour}, 1, 600, 11},                      // 1 in hand, 10 in ten minutes
		{policy.Bucket{Algorithm: "gcra", Limit: 60, Burst: 5, Window: time.Hour}, 1, 600, 15},            //
		{policy.Bucket{Algorithm: "token-bucket", Limit: 60, Window: time.Hour}, 1, 600, 70},              // a full bucket and the refill
		{policy.Bucket{Algorithm: "token-bucket", Limit: 60, Burst: 20, Window: time.Hour}, 2, 600, 60},   // 40 in hand, 20
		{policy.Bucket{Algorithm: "sliding-window-log", Limit: 60, Window: 24 * time.Hour}, 1.5, 600, 90}, //
	} {
		r := ringOf(c.bucket, c.scale, can)
		if r.window != c.window || r.held != c.held {
			t.Errorf("%+v x %g: %d in %d s, want %d in %d s", c.bucket, c.scale, r.held, r.window, c.held, c.window)
		}
	}
}

// TestPathsAgreeWithCore holds the regular expressions against core's patterns.
func TestPathsAgreeWithCore(t *testing.T) {
	t.Parallel()
	lists := [][]string{
		core.DefaultExcludeList,
		{"/search/**", "/find*", "*.Html", "/a/*/c", "/**/x/**", "/exact", "draft-*", "/q**"[:2] + "/**"},
		{"/a.b/**", "/p+q", "/[x]/*.css", "*.tar"},
	}
	urls := []string{
		"/", "/x", "/x/", "/a.css", "/a.CSS/", "/.css", "/a.css.html", "/css", "/api", "/api/", "/apix", "/api/v1/pages", "/API/v1", "/v1/api",
		"/robots.txt", "/robots.txt/", "/a/robots.txt", "/feed", "/feed/", "/blog/feed", "/blog/feed/", "/feeding", "/blog/rss", "/sitemap", "/sitemap.xml", "/sitemap-1.xml",
		"/sitemap/1", "/en/sitemap-1.xml", "/en/sitemap/x.xml", "/search", "/search/", "/search/a/b", "/searching", "/find", "/findings", "/find/x", "/page.html", "/page.HTML",
		"/a/b/c", "/a/b/b/c", "/a/c", "/x/x", "/y/x/z", "/x/z", "/exact", "/exact/", "/exact/x", "/draft-1", "/a/draft-1", "/a/draft-1/b", "/q", "/q/r",
		"/a.b/c", "/aXb/c", "/p+q", "/ppq", "/[x]/y.css", "/x/y.css", "/healthz", "/_next/image", "/_next/static/chunks/1.js", "/_next/data/x/page.json", "/wp-json", "/x.tar", "/x.tar.gz",
	}
	for _, list := range lists {
		patterns, err := core.CompilePatterns(list...)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{64, 512, 1000, 1 << 16} {
			var compiled []*regexp.Regexp
			for _, re := range split(list).joined(size) {
				compiled = append(compiled, regexp.MustCompile(re))
			}
			for _, u := range urls {
				got := false
				for _, re := range compiled {
					got = got || re.MatchString(u)
				}
				want := patterns.Match(u)
				// Products see the path as sent and match case as it is.
				if loose := strings.ToLower(u) != u || strings.HasSuffix(u, "/") || strings.HasPrefix(u, "/."); got != want && !loose {
					t.Errorf("size %d, %s: the expressions say %v, core says %v", size, u, got, want)
				}
			}
		}
	}
	for _, size := range []int{512, 1000} {
		for _, re := range split(core.DefaultExcludeList).joined(size) {
			if len(re) > size {
				t.Errorf("an expression of %d bytes where %d are allowed", len(re), size)
			}
		}
	}
	if n := len(split(core.DefaultExcludeList).joined(armorPart - len("!request.path.matches('')"))); n > armorParts-3 {
		t.Errorf("the default list needs %d parts of Cloud Armor's five, three of which are taken", n)
	}
}

func TestObserveRefusesNobody(t *testing.T) {
	t.Parallel()
	f := example(t)
	f.Mode = policy.ModeObserve
	for product, want := range map[string]string{"cloud-armor": "preview     = true", "aws-waf": "count {}", "vercel": `action = "log"`, "cloudflare": "enabled     = false"} {
		r, err := New(product, "", f, now)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Terraform, want) || strings.Contains(r.Terraform, "block {") {
			t.Errorf("%s would refuse while the policy observes:\n%s", product, r.Terraform)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := example(t)
	if _, err := New("akamai", "", f, now); !errors.Is(err, ErrProduct) {
		t.Errorf("unknown product: %v", err)
	}
	for _, p := range Products {
		if _, err := New(p, "gold", f, now); !errors.Is(err, ErrPlan) {
			t.Errorf("%s with an unknown plan: %v", p, err)
		}
	}
	global := parse(t, "version: 1\nsite: x\nbuckets: [{name: all, key: global, limit: 100, window: 1h}]\n")
	if _, err := New("aws-waf", "", global, now); err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("a policy without an address bucket: %v", err)
	}
}

// TestHostilePatterns: what an operator's pattern holds stays a pattern in every
// language.
func TestHostilePatterns(t *testing.T) {
	t.Parallel()
	f := example(t)
	f.Count.Exclude = []string{`/a"b/**`, `/a'b`, `/${path}/**`, `/%{if}`, `/a\b`, "/*'\"$*"}
	for _, p := range Products {
		r, err := New(p, "", f, now)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(r.Terraform, "\n") {
			in := regexp.MustCompile(`"(\\.|[^"\\])*"`).ReplaceAllString(line, "")
			if strings.ContainsAny(in, `"'$%`) {
				t.Errorf("%s, line %d: a quote is open: %s", p, i+1, line)
			}
			for _, m := range regexp.MustCompile(`(\$*)\$\{|(%*)%\{`).FindAllString(line, -1) {
				if m == "${" || m == "%{" {
					t.Errorf("%s, line %d: an interpolation: %s", p, i+1, line)
				}
			}
		}
	}
}
