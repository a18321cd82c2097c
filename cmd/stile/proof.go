package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers"
)

// A proof verifies the crawlers of a log. The built-in ranges answer at once.
// Operators without ranges are proven by reverse DNS only, which is asked when
// the user says so, once for each address.
type proof struct {
	ctx  context.Context
	from *crawlers.Verifier
	dns  bool
	// ranged are the agents whose operators publish ranges: outside of these a claim
	// is as good as refuted.
	ranged map[string]bool

	mu      sync.Mutex
	answers map[netip.Addr]proven
	left    time.Duration // for the DNS
	silent  int           // look-ups in a row that nobody answered
	names   []string      // of the agents in open
	open    int           // claims that the DNS could decide and was not asked about
	unheard int           // claims about which it did not answer
}

type proven struct {
	agent string
	match core.Crawler
}

var _ core.CrawlerVerifier = (*proof)(nil)

const (
	dnsBudget  = 2 * time.Minute // in all
	dnsTimeout = 3 * time.Second // for one address, both directions
	dnsSilent  = 3               // after so many in a row the resolver is taken to be unreachable
)

// crawlerProof returns the built-in snapshot as a verifier. The same log gives the
// same numbers with and without a network, and no resolver learns of any visitor,
// unless dns is set.
func crawlerProof(ctx context.Context, cfg crawlers.Config, dns bool) (*proof, error) {
	v, err := crawlers.New(cfg)
	if err != nil {
		return nil, err
	}
	ranged := map[string]bool{}
	for _, l := range v.List() {
		for _, agent := range l.Agents {
			ranged[agent] = ranged[agent] || l.Prefixes > 0
		}
	}
	return &proof{ctx: ctx, from: v, dns: dns, ranged: ranged, answers: map[netip.Addr]proven{}, left: dnsBudget}, nil
}

// VerifyCrawler answers from the table, or from the DNS when it may. It is safe
// for concurrent use; look-ups happen one after the other.
func (p *proof) VerifyCrawler(r *core.Request, client netip.Addr) core.Crawler {
	c := p.from.VerifyCrawler(r, client)
	if c.Verified || !c.Claimed {
		return c
	}
	agent := ""
	if lines := r.Header.Values("User-Agent"); len(lines) > 0 {
		agent = lines[0]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.answers[client]; ok && a.agent == agent {
		return a.match
	}
	c = p.ask(client, agent, c)
	p.answers[client] = proven{agent, c}
	return c
}

// ask goes to the DNS within what is left of time and patience.
func (p *proof) ask(client netip.Addr, agent string, c core.Crawler) core.Crawler {
	offline := !p.dns || p.left <= 0 || p.silent >= dnsSilent
	ctx, cancel := context.WithTimeout(p.ctx, min(dnsTimeout, max(p.left, time.Millisecond)))
	defer cancel()
	from := time.Now()
	e := p.from.Explain(ctx, client, agent, offline)
	p.left -= time.Since(from)
	switch e.Reverse {
	case "not asked: offline":
		if !p.ranged[c.Name] || p.dns {
			p.open++
			if !slices.Contains(p.names, c.Name) {
				p.names = append(p.names, c.Name)
			}
		}
	case "the DNS did not answer":
		p.silent++
		p.unheard++
	default:
		p.silent = 0
	}
	if e.Match.Verified {
		m := e.Match
		return core.Crawler{Name: m.Name, Class: string(m.Class), Claimed: true, Verified: true, Proof: string(m.Proof)}
	}
	return c
}

// notes say which claims stand undecided: they are no impostors.
func (p *proof) notes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	if p.open > 0 && !p.dns {
		out = append(out, fmt.Sprintf("%s to be a robot that reverse DNS alone can prove (%s). It was not asked, so they are listed as unproven; --dns asks your resolver.",
			count2(p.open, "address claims", "addresses claim"), strings.Join(slices.Sorted(slices.Values(p.names)), ", ")))
	}
	if n := p.unheard + p.open; p.dns && n > 0 {
		out = append(out, fmt.Sprintf("%s to be a robot, and the DNS did not answer in time: they are listed as unproven.", count2(n, "address claims", "addresses claim")))
	}
	return out
}

func count2(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
