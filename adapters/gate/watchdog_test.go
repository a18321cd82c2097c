package gate

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stilehq/stile/core"
)

// feed sends n requests through the real resolver and returns what was said.
func feed(w *watchdog, source *core.ClientSource, n int, peer func(i int) string, xff func(i int) string) []warning {
	var out []warning
	for i := range n {
		r := &core.Request{Peer: netip.MustParseAddr(peer(i)), Header: http.Header{}}
		if v := xff(i); v != "" {
			r.Header = http.Header{"X-Forwarded-For": strings.Split(v, "\n")}
		}
		d := &core.Decision{Class: core.Counted, Client: source.Resolve(r)}
		out = append(out, w.see(source, r, d)...)
	}
	return out
}

func always(s string) func(int) string { return func(int) string { return s } }

func visitors(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i%200+1) }
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	remote := core.ClientSource{From: core.FromRemote}
	xff1 := core.ClientSource{From: core.FromXFF, TrustedHops: 1}
	xff2 := core.ClientSource{From: core.FromXFF, TrustedHops: 2}
	listed := core.ClientSource{From: core.FromXFF, TrustedHops: 1, Peers: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
	header := core.ClientSource{From: core.FromHeader, Header: "Cf-Connecting-Ip"}
	for _, c := range []struct {
		name      string
		source    core.ClientSource
		peer, xff func(int) string
		setting   string // "" = nothing is wrong
		says      string
	}{
		{"visitors come directly", remote, visitors("203.0.113.%d"), always(""), "", ""},
		{"a developer's own machine", remote, always("127.0.0.1"), always(""), "", ""},
		{"behind a proxy as planned", xff1, always("10.0.0.1"), visitors("203.0.113.%d"), "", ""},
		{"behind two proxies as planned", xff2, always("10.0.0.1"), visitors("203.0.113.%d, 10.0.0.2"), "", ""},
		{"some invent chains", xff1, always("10.0.0.1"), func(i int) string {
			return strings.Repeat("192.0.2.1, ", i%4) + fmt.Sprintf("203.0.113.%d", i%200)
		}, "", ""},
		{"a few direct visitors invent X-Forwarded-For", remote, visitors("203.0.113.%d"), func(i int) string {
			if i%3 == 0 {
				return "192.0.2.1"
			}
			return ""
		}, "", ""},
		{"a proxy nobody thought of", remote, always("10.0.0.1"), visitors("203.0.113.%d"), "client.from", "trusted_hops: 1"},
		{"two proxies nobody thought of", remote, always("10.0.0.1"), visitors("203.0.113.%d, 10.0.0.2"), "client.from", "trusted_hops: 2"},
		{"a proxy on the same machine", remote, always("127.0.0.1"), visitors("203.0.113.%d"), "client.from", "127.0.0.1"},
		{"a proxy that sends no field", remote, always("10.0.0.1"), always(""), "client.from", "every client is 10.0.0.1"},
		{"one proxy more than thought", xff1, always("10.0.0.1"), visitors("203.0.113.%d, 10.0.0.2"), "client.trusted_hops", "set it to 2"},
		{"one proxy less than thought", xff2, always("10.0.0.1"), visitors("203.0.113.%d"), "client.trusted_hops", "fewer than"},
		{"no field at all", xff1, always("10.0.0.1"), always(""), "client.from", "missing"},
		{"no address in the field", xff1, always("10.0.0.1"), always("unknown"), "client.from", "no address"},
		{"a peer that is not listed", listed, always("10.0.0.1"), visitors("203.0.113.%d"), "client.peers", "10.0.0.1"},
		{"another field than the proxy's", header, always("10.0.0.1"), visitors("203.0.113.%d"), "client.from", "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var w watchdog
			got := feed(&w, &c.source, 10*watchWindow, c.peer, c.xff)
			if c.setting == "" {
				if len(got) != 0 {
					t.Errorf("said %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].setting != c.setting || !strings.Contains(got[0].text, c.says) {
				t.Errorf("said %+v, want one line about %s with %q", got, c.setting, c.says)
			}
		})
	}
}

func TestWatchdogNoticesAnotherChain(t *testing.T) {
	t.Parallel()
	source := core.ClientSource{From: core.FromXFF, TrustedHops: 1}
	var w watchdog
	peer := always("10.0.0.1")
	if got := feed(&w, &source, watchWindow, peer, visitors("203.0.113.%d")); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	got := feed(&w, &source, 3*watchWindow, peer, visitors("203.0.113.%d, 198.51.100.1"))
	if len(got) != 1 || !strings.Contains(got[0].text, "had 1 entries and now has 2") {
		t.Errorf("%+v", got)
	}
	got = feed(&w, &source, 3*watchWindow, peer, visitors("203.0.113.%d"))
	if len(got) != 1 || !strings.Contains(got[0].text, "had 2 entries and now has 1") {
		t.Errorf("and back: %+v", got)
	}
	// An attacker who sends half of the traffic cannot make it speak.
	got = feed(&w, &source, 10*watchWindow, peer, func(i int) string {
		return strings.Repeat("192.0.2.1, ", i%2*5) + "203.0.113.9"
	})
	if len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestChainLength(t *testing.T) {
	t.Parallel()
	for want, lines := range map[int][]string{0: {""}, 1: {"a"}, 3: {"a, b", "c"}, 2: {",", "a,b"}} {
		if got := chainLength(http.Header{"X-Forwarded-For": lines}); got != want {
			t.Errorf("%q: %d, want %d", lines, got, want)
		}
	}
}
