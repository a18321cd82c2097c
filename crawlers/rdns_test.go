package crawlers

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestReverse runs every case over the wire: claim, refresh, claim again.
func TestReverse(t *testing.T) {
	t.Parallel()
	const addr = "45.55.1.2"
	for _, c := range []struct {
		name  string
		addr  string
		ua    string
		zone  []string
		fail  string
		want  Proof
		class Class
	}{
		{name: "name that leads back", zone: []string{ptr(t, addr, "crawl-45-55-1-2.googlebot.com."), "crawl-45-55-1-2.googlebot.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "capitals", zone: []string{ptr(t, addr, "Crawl-1.GoogleBot.COM."), "crawl-1.googlebot.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "deeper label", zone: []string{ptr(t, addr, "geo-crawl-1.geo.googlebot.com."), "geo-crawl-1.geo.googlebot.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "a name with several addresses", zone: []string{ptr(t, addr, "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.9.9", "c.googlebot.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "IPv6", addr: "2a00:1450::7", zone: []string{ptr(t, "2a00:1450::7", "c6.googlebot.com."), "c6.googlebot.com. 60 IN AAAA 2a00:1450::7"}, want: ByReverse},
		{name: "mapped address", addr: "::ffff:45.55.1.2", zone: []string{ptr(t, addr, "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "name in the attacker's reverse zone only", zone: []string{ptr(t, addr, "crawl-1-2-3-4.googlebot.com.")}},
		{name: "name of another machine of Google", zone: []string{ptr(t, addr, "crawl-1.googlebot.com."), "crawl-1.googlebot.com. 60 IN A 66.249.66.1"}},
		{name: "one name matches, another confirms", zone: []string{
			ptr(t, addr, "crawl-1.googlebot.com."), ptr(t, addr, "host.attacker.example."),
			"crawl-1.googlebot.com. 60 IN A 66.249.66.1", "host.attacker.example. 60 IN A 45.55.1.2"}},
		{name: "two names, the second matches and confirms", zone: []string{
			ptr(t, addr, "host.attacker.example."), ptr(t, addr, "crawl-1.googlebot.com."),
			"crawl-1.googlebot.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "no label boundary", zone: []string{ptr(t, addr, "evilgooglebot.com."), "evilgooglebot.com. 60 IN A 45.55.1.2"}},
		{name: "suffix in the middle", zone: []string{ptr(t, addr, "crawl.googlebot.com.evil.example."), "crawl.googlebot.com.evil.example. 60 IN A 45.55.1.2"}},
		{name: "the bare suffix", zone: []string{ptr(t, addr, "googlebot.com."), "googlebot.com. 60 IN A 45.55.1.2"}},
		{name: "cloud customer of Google", zone: []string{ptr(t, addr, "2.1.55.45.bc.googleusercontent.com."), "2.1.55.45.bc.googleusercontent.com. 60 IN A 45.55.1.2"}},
		{name: "another machine under google.com", ua: "AdsBot-Google", zone: []string{ptr(t, addr, "vpn-1.corp.google.com."), "vpn-1.corp.google.com. 60 IN A 45.55.1.2"}},
		{name: "a deeper name with the right prefix", ua: "AdsBot-Google", zone: []string{ptr(t, addr, "rate-limited-proxy-1.x.google.com."), "rate-limited-proxy-1.x.google.com. 60 IN A 45.55.1.2"}},
		{name: "AdsBot's proxy", ua: "AdsBot-Google", zone: []string{ptr(t, addr, "rate-limited-proxy-45-55-1-2.google.com."), "rate-limited-proxy-45-55-1-2.google.com. 60 IN A 45.55.1.2"}, want: ByReverse},
		{name: "confirmed as another crawler than claimed", ua: "bingbot/2.0", zone: []string{ptr(t, addr, "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.2"}},
		{name: "a claim that no name can prove", ua: "GPTBot/1.0", zone: []string{ptr(t, addr, "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.2"}},
		{name: "no names at all"},
		{name: "server failure", zone: []string{ptr(t, addr, "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.2"}, fail: "c.googlebot.com."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stub := newDNS(t, c.zone...)
			if c.fail != "" {
				stub.refuse(c.fail, dns.RcodeServerFailure)
			}
			k := newClock(day)
			v := newVerifier(t, Config{Resolver: stub.resolver(), NoShipped: true, Now: k.now, Catalogue: withoutURLs()})
			a, ua := c.addr, c.ua
			if a == "" {
				a = addr
			}
			if ua == "" {
				ua = uaGooglebot
			}
			m := v.Verify(netip.MustParseAddr(a), ua, k.now())
			if !m.Claimed || m.Verified || stub.queries.Load() != 0 {
				t.Fatalf("first hit: %+v after %d queries, want a claim and none", m, stub.queries.Load())
			}
			if err := v.Refresh(context.Background(), 0); err != nil {
				t.Fatal(err)
			}
			if got := verified(v, a, ua, k.now()); got != c.want {
				t.Errorf("proof %q, want %q", got, c.want)
			}
			if got := verified(v, a, uaChrome, k.now()); got != NoProof {
				t.Errorf("without the claim: proof %q, want none", got)
			}
		})
	}
}

// withoutURLs is the built-in catalogue with nothing to fetch.
func withoutURLs() *Catalogue {
	c := Default()
	for i := range c.Lists {
		c.Lists[i].URL = ""
	}
	return &c
}

func TestReverseIsRemembered(t *testing.T) {
	t.Parallel()
	stub := newDNS(t, ptr(t, "45.55.1.2", "c.googlebot.com."), "c.googlebot.com. 60 IN A 45.55.1.2")
	k := newClock(day)
	v := newVerifier(t, Config{Resolver: stub.resolver(), NoShipped: true, Now: k.now, Catalogue: withoutURLs()})
	hit := func(addr string) Proof { return verified(v, addr, uaGooglebot, k.now()) }
	round := func() int64 {
		before := stub.queries.Load()
		if err := v.Refresh(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		return stub.queries.Load() - before
	}
	hit("45.55.1.2")
	hit("45.55.1.3")
	hit("45.55.1.3")
	if n := round(); n != 3 {
		t.Errorf("%d queries, want 3: two names asked for, one led back", n)
	}
	for range 100 {
		if hit("45.55.1.2") != ByReverse || hit("45.55.1.3") != NoProof {
			t.Fatal("not remembered")
		}
	}
	if n := round(); n != 0 {
		t.Errorf("%d queries while both answers are fresh, want 0", n)
	}
	k.advance(time.Hour + time.Second)
	hit("45.55.1.3")
	if n := round(); n != 1 {
		t.Errorf("%d queries after the refusal's hour, want 1", n)
	}
	k.advance(18 * time.Hour) // past three quarters of the proof's day: asked again, good meanwhile
	if hit("45.55.1.2") != ByReverse {
		t.Error("a proof ended before its time")
	}
	stub.refuse("2.1.55.45.in-addr.arpa.", dns.RcodeServerFailure)
	if n := round(); n == 0 {
		t.Error("not asked again")
	}
	if hit("45.55.1.2") != ByReverse {
		t.Error("an outage of the DNS took a proof away")
	}
	k.advance(6 * time.Hour)
	if hit("45.55.1.2") != NoProof {
		t.Error("a proof outlived its day")
	}
}

func TestManyNames(t *testing.T) {
	t.Parallel()
	stub := newDNS(t)
	for i := range 60 { // too long for UDP: the real protocol goes to TCP
		stub.add(t, ptr(t, "45.55.1.2", fmt.Sprintf("crawl-%02d.googlebot.com.", i)))
	}
	stub.add(t, "crawl-59.googlebot.com. 60 IN A 45.55.1.2")
	v := newVerifier(t, Config{Resolver: stub.resolver(), NoShipped: true, Catalogue: withoutURLs()})
	now := time.Now()
	verified(v, "45.55.1.2", uaGooglebot, now)
	if err := v.Refresh(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if verified(v, "45.55.1.2", uaGooglebot, now) != NoProof {
		t.Error("the sixtieth name was followed")
	}
	if n := stub.queries.Load(); n > 2+maxNames {
		t.Errorf("%d queries for one address, want at most %d", n, 2+maxNames)
	}
	if stub.conns["tcp"].Load() == 0 {
		t.Error("the long answer did not go over TCP: the case is not what it says")
	}
}

func TestQueueIsBoundedAndFair(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{NoShipped: true, Catalogue: withoutURLs(), QueueSize: 40, QueuePerNet: 16})
	for i := range 200 { // one network sprays
		v.Verify(netip.AddrFrom4([4]byte{45, 55, 1, byte(i)}), uaGooglebot, day)
	}
	if n := v.queue.length.Load(); n != 16 {
		t.Errorf("%d addresses of one network wait, want 16", n)
	}
	v.Verify(netip.MustParseAddr("66.249.66.1"), uaGooglebot, day)
	if n := v.queue.length.Load(); n != 17 {
		t.Errorf("%d wait, want 17: a real crawler was kept out", n)
	}
	for i := range 200 {
		v.Verify(netip.AddrFrom4([4]byte{45, 56, byte(i), 1}), uaGooglebot, day)
	}
	if n := v.queue.length.Load(); n != 40 {
		t.Errorf("%d wait, want the bound of 40", n)
	}
	if d := v.Dropped(); d != 184+177 {
		t.Errorf("%d dropped, want %d", d, 184+177)
	}
	seen := 0
	for got := v.queue.take(8); len(got) > 0; got = v.queue.take(8) {
		seen += len(got)
	}
	if seen != 40 || len(v.queue.held) != 0 || len(v.queue.perNet) != 0 {
		t.Errorf("took %d, left %d and %d", seen, len(v.queue.held), len(v.queue.perNet))
	}
}

func TestVerdictsAreBounded(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{NoShipped: true, Positives: 3, Negatives: 5})
	var m mask
	m.set(0)
	good := netip.MustParseAddr("66.249.66.1")
	v.verdicts.put([]lookup{{good, m, confirmed}}, day)
	for i := range 100 {
		v.verdicts.put([]lookup{{netip.AddrFrom4([4]byte{45, 55, 1, byte(i)}), mask{}, refuted}}, day.Add(time.Duration(i)*time.Second))
	}
	if n := len(*v.verdicts.current.Load()); n != 6 {
		t.Errorf("%d remembered, want 1 proof and 5 refusals", n)
	}
	if _, ok := v.verdicts.get(good); !ok {
		t.Error("refusals pushed a proof out")
	}
	if _, ok := v.verdicts.get(netip.MustParseAddr("45.55.1.99")); !ok {
		t.Error("the newest refusal was dropped")
	}
}
