package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers"
)

// names is a DNS with one true Yandex crawler, or none that answers.
type names struct {
	down  bool
	asked atomic.Int64
}

func (n *names) LookupAddr(_ context.Context, addr string) ([]string, error) {
	n.asked.Add(1)
	switch {
	case n.down:
		return nil, errors.New("timeout")
	case addr == "5.255.253.1":
		return []string{"5-255-253-1.spider.yandex.com."}, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasPrefix(host, "5-255-253-1.spider.yandex.com") {
		return []netip.Addr{netip.MustParseAddr("5.255.253.1")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

func TestProofByDNS(t *testing.T) {
	t.Parallel()
	const agent = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)"
	verify := func(p *proof, addr string) core.Crawler {
		return p.VerifyCrawler(&core.Request{Header: http.Header{"User-Agent": {agent}}}, netip.MustParseAddr(addr))
	}
	for _, c := range []struct {
		name          string
		dns, down     bool
		verified      bool
		asked         int64
		note          string
		addressesMore int
	}{
		{name: "not asked", note: "--dns asks your resolver", verified: false},
		{name: "asked", dns: true, verified: true, asked: 2},
		{name: "silent", dns: true, down: true, asked: dnsSilent, note: "did not answer in time", addressesMore: 20},
	} {
		n := &names{down: c.down}
		p, err := crawlerProof(t.Context(), crawlers.Config{Resolver: n, Logger: slog.New(slog.DiscardHandler)}, c.dns)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // the second and third time from memory
			if got := verify(p, "5.255.253.1"); got.Verified != c.verified || !got.Claimed {
				t.Errorf("%s: %+v", c.name, got)
			}
			if got := verify(p, "198.51.100.7"); got.Verified || !got.Claimed {
				t.Errorf("%s: an impostor: %+v", c.name, got)
			}
		}
		for i := range c.addressesMore {
			verify(p, netip.AddrFrom4([4]byte{198, 51, 100, byte(20 + i)}).String())
		}
		notes := strings.Join(p.notes(), " ")
		if got := n.asked.Load(); got != c.asked || c.note == "" != (notes == "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: the DNS was asked %d times, want %d; notes %q, want %q", c.name, got, c.asked, notes, c.note)
		}
	}
}
