package crawlers

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

const (
	uaGooglebot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/141.0.0.0 Safari/537.36"
	uaChrome    = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
)

var day = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// held builds a snapshot of one content per list id.
func held(lists map[string][]string) Snapshot {
	s := Snapshot{}
	for id, prefixes := range lists {
		h := Held{Fetched: day, Created: day.Add(-time.Hour), Source: "test"}
		for _, p := range prefixes {
			h.Prefixes = append(h.Prefixes, netip.MustParsePrefix(p))
		}
		h.Prefixes = tidy(h.Prefixes)
		s[id] = h
	}
	return s
}

func newVerifier(tb testing.TB, cfg Config) *Verifier {
	tb.Helper()
	v, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func TestVerify(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{NoShipped: true, Snapshots: []Snapshot{held(map[string][]string{
		"google-common":         {"66.249.64.0/19", "2001:4860:4801:10::/64"},
		"google-special":        {"66.249.87.0/27"},
		"google-user-triggered": {"34.64.6.0/27"},
		"openai-gptbot":         {"4.227.36.0/25", "20.171.206.0/24"},
		"openai-searchbot":      {"4.227.36.0/25"},
		"meta":                  {"31.13.64.0/18", "31.13.64.0/24"},
		"anthropic":             {"216.73.216.0/22"},
	})}})
	for _, c := range []struct {
		name, addr, ua string
		want           string // agent
		claimed        bool
		proof          Proof
	}{
		{"Googlebot from Google", "66.249.66.1", uaGooglebot, "Googlebot", true, ByRange},
		{"the last address of the range", "66.249.95.255", uaGooglebot, "Googlebot", true, ByRange},
		{"one beyond the range", "66.249.96.0", uaGooglebot, "Googlebot", true, NoProof},
		{"IPv6", "2001:4860:4801:10::42", uaGooglebot, "Googlebot", true, ByRange},
		{"mapped", "::ffff:66.249.66.1", uaGooglebot, "Googlebot", true, ByRange},
		{"zoned", "2001:4860:4801:10::42%eth0", uaGooglebot, "Googlebot", true, ByRange},
		{"the range alone, with a browser's agent", "66.249.66.1", uaChrome, "Googlebot", false, ByRange},
		{"inspection tool", "66.249.66.1", "Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)", "Google-InspectionTool", true, ByRange},
		{"AdsBot from the special range", "66.249.87.3", "AdsBot-Google (+http://www.google.com/adsbot.html)", "AdsBot-Google", true, ByRange},
		{"AdsBot from the common range", "66.249.66.1", "AdsBot-Google-Mobile", "AdsBot-Google", true, ByRange},
		{"a lie within one operator falls to the list", "20.171.206.7", "ChatGPT-User/1.0", "GPTBot", true, ByRange},
		{"Googlebot from a cloud host", "45.55.1.2", uaGooglebot, "Googlebot", true, NoProof},
		{"a customer of Google's cloud is no Googlebot", "34.64.6.5", uaGooglebot, "Googlebot", true, NoProof},
		{"a customer-triggered fetch needs its name", "34.64.6.5", uaChrome, "", false, NoProof},
		{"and has it", "34.64.6.5", "FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)", "Google-user-triggered", true, ByRange},
		{"two lists, one range: trainer", "4.227.36.9", "Mozilla/5.0; compatible; GPTBot/1.2", "GPTBot", true, ByRange},
		{"two lists, one range: search", "4.227.36.9", "Mozilla/5.0; compatible; OAI-SearchBot/1.0", "OAI-SearchBot", true, ByRange},
		{"a company's network without the token", "31.13.64.9", uaChrome, "", false, NoProof},
		{"a company's network with it", "31.13.64.9", "facebookexternalhit/1.1", "facebookexternalhit", true, ByRange},
		{"the wider of two nested ranges", "31.13.100.9", "meta-externalagent/1.1", "meta-externalagent", true, ByRange},
		{"three products on one list", "216.73.216.9", "Claude-User/1.0", "Claude-User", true, ByRange},
		{"unclaimed: the class least likely exempt", "216.73.216.9", uaChrome, "ClaudeBot", false, ByRange},
		{"several claims, the proven one counts", "66.249.66.1", "GPTBot/1.0 (like Googlebot/2.1)", "Googlebot", true, ByRange},
		{"a browser", "45.55.1.2", uaChrome, "", false, NoProof},
		{"no agent at all", "45.55.1.2", "", "", false, NoProof},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := v.Verify(netip.MustParseAddr(c.addr), c.ua, day)
			if m.Name != c.want || m.Claimed != c.claimed || m.Proof != c.proof || m.Verified != (c.proof != NoProof) {
				t.Errorf("got %+v, want %q claimed %v by %q", m, c.want, c.claimed, c.proof)
			}
			if (m.Name != "") != m.Class.Valid() {
				t.Errorf("class %q of agent %q", m.Class, m.Name)
			}
		})
	}
	if m := v.Verify(netip.Addr{}, uaGooglebot, day); m.Verified || !m.Claimed {
		t.Errorf("no address: %+v", m)
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{})
	for ua, want := range map[string]string{
		uaGooglebot:                              "Googlebot",
		"GOOGLEBOT/2.1":                          "Googlebot",
		"Googlebot-Image/1.0":                    "Googlebot",
		"xgooglebot/2.1":                         "",
		"Googlebots/2.1":                         "",
		"Googlebo":                               "",
		"(Applebot/0.1)":                         "Applebot",
		"Mozilla/5.0 (X11) bingbot":              "Bingbot",
		strings.Repeat("Google", 200):            "",
		strings.Repeat("a ", 600) + " Googlebot": "",
		"facebookexternalhit/1.1 Facebot Twitterbot/1.0":                           "facebookexternalhit",
		"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/x)":  "archive.org_bot",
		"Mozilla/5.0 (compatible;PingdomTMS/0.8.5;http://www.pingdom.com/)":        "Pingdom",
		"Mozilla/5.0 (compatible; Better Uptime Bot Mozilla/5.0 (Macintosh; Intel": "BetterStack",
	} {
		_, first := v.claims.find(ua)
		got := ""
		if first >= 0 {
			got = v.cat.Agents[first].Name
		}
		if got != want {
			t.Errorf("%.60q: claims %q, want %q", ua, got, want)
		}
	}
}

// TestTokensFindTheirAgent keeps one agent's token from hiding in another's.
func TestTokensFindTheirAgent(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{})
	for i, a := range v.cat.Agents {
		for _, tok := range a.Tokens {
			if set, first := v.claims.find("Mozilla/5.0 (compatible; " + tok + "/1.0; +https://example.com)"); first != i || !set.has(i) {
				t.Errorf("token %q of %s is found as agent %d", tok, a.Name, first)
			}
		}
	}
}

func TestVerifyDoesNotAllocate(t *testing.T) {
	v := newVerifier(t, Config{NoShipped: true, Snapshots: []Snapshot{held(map[string][]string{"google-common": {"66.249.64.0/19"}})}})
	crawler, client := netip.MustParseAddr("66.249.66.1"), netip.MustParseAddr("45.55.1.2")
	v.Verify(client, uaGooglebot, day) // queued once
	for name, run := range map[string]func(){
		"browser": func() { v.Verify(client, uaChrome, day) },
		"crawler": func() { v.Verify(crawler, uaGooglebot, day) },
		"claim":   func() { v.Verify(client, uaGooglebot, day) },
	} {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
