package crawlers

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	stub := newDNS(t,
		ptr(t, "45.55.1.2", "crawl-1.googlebot.com."), ptr(t, "45.55.1.2", "host.attacker.example."), "host.attacker.example. 60 IN A 45.55.1.2",
		ptr(t, "45.55.1.3", "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.3")
	v := newVerifier(t, Config{NoShipped: true, Catalogue: withoutURLs(), Resolver: stub.resolver(), Snapshots: []Snapshot{held(map[string][]string{
		"google-common": {"66.249.64.0/19"}, "meta": {"31.13.64.0/18", "31.13.64.0/24"}})}})
	for _, c := range []struct {
		addr, ua string
		offline  bool
		verified bool
		reverse  string
		reason   string
	}{
		{"::ffff:66.249.66.1", uaGooglebot, false, true, "", "published range"},
		{"45.55.1.3", uaGooglebot, false, true, "confirmed", "leads back"},
		{"45.55.1.3", uaGooglebot, true, false, "not asked: offline", "not proven"},
		{"45.55.1.2", uaGooglebot, false, false, "refuted", "not proven"},
		{"45.55.1.3", "bingbot/2.0", false, false, "confirmed for another", "not proven"},
		{"45.55.1.2", "GPTBot", false, false, "documents no host names", "not proven"},
		{"45.55.1.2", uaChrome, false, false, "", "no crawler is claimed"},
		{"31.13.64.1", uaChrome, false, false, "", "not the crawler's alone"},
	} {
		e := v.Explain(context.Background(), netip.MustParseAddr(c.addr), c.ua, c.offline)
		if e.Match.Verified != c.verified || !strings.Contains(e.Reverse, c.reverse) || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s %s: %+v", c.addr, c.ua, e)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}
	e := v.Explain(context.Background(), netip.MustParseAddr("45.55.1.2"), uaGooglebot, false)
	if len(e.Names) != 2 {
		t.Fatalf("%+v", e.Names)
	}
	for _, n := range e.Names {
		if n.Confirmed || n.Note == "" || (n.Name == "crawl-1.googlebot.com") != (len(n.Matches) > 0) {
			t.Errorf("%+v", n)
		}
	}
	e = v.Explain(context.Background(), netip.MustParseAddr("31.13.64.1"), "facebookexternalhit/1.1", false)
	if len(e.Ranges) != 1 || e.Ranges[0].Prefix != netip.MustParsePrefix("31.13.64.0/24") || e.Ranges[0].List != "meta" || e.Ranges[0].Dedicated {
		t.Errorf("%+v", e.Ranges)
	}
	if v.queue.length.Load() != 0 || len(*v.verdicts.current.Load()) != 0 {
		t.Error("explaining left something behind")
	}
}

// TestExplainAgreesWithVerify: the two never disagree on what the
// tables alone decide.
func TestExplainAgreesWithVerify(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{})
	for id, h := range v.Snapshot() {
		for _, ua := range []string{uaChrome, uaGooglebot, "archive.org_bot", "ClaudeBot"} {
			a := h.Prefixes[0].Addr()
			if e, m := v.Explain(context.Background(), a, ua, true).Match, v.Verify(a, ua, day); e != m {
				t.Errorf("%s, %s: explained as %+v, verified as %+v", id, ua, e, m)
			}
		}
	}
}
