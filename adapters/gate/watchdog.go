package gate

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/stilehq/stile/core"
)

// watchWindow is how many requests for pages are looked at together.
const watchWindow = 50

// A watchdog notices that the client address is taken from the wrong place: the
// one misconfiguration that turns a page limit into an outage or into nothing.
// It sees each request for a page and speaks once about each thing. It judges
// whole windows, so that single clients who invent X-Forwarded-For entries
// cannot make it speak.
type watchdog struct {
	mu     sync.Mutex
	window sightings
	first  bool // the first window is over
	chain  int  // the shortest chain of the first window
	spoken map[string]bool
}

// sightings is what one window has in common.
type sightings struct {
	seen      int
	client    netip.Addr // the only one so far
	several   bool
	peer      netip.Addr // the last
	public    int        // requests of public peers
	forwarded int        // requests with X-Forwarded-For
	chain     int        // the shortest, of all requests
	problems  [8]int
}

// A warning names the setting to change and says what was seen.
type warning struct{ setting, text string }

// see takes one decision and returns what is to be said now; nearly always
// nothing.
func (w *watchdog) see(source *core.ClientSource, r *core.Request, d *core.Decision) []warning {
	entries := chainLength(r.Header)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.window
	if s.seen == 0 {
		s.client, s.chain = d.Client.Addr, entries
	}
	s.seen++
	s.several = s.several || s.client != d.Client.Addr
	s.peer = r.Peer
	s.chain = min(s.chain, entries)
	if entries > 0 {
		s.forwarded++
	}
	if isPublic(r.Peer) {
		s.public++
	}
	if p := int(d.Client.Problem); p < len(s.problems) {
		s.problems[p]++
	}
	if s.seen < watchWindow {
		return nil
	}
	out := w.judge(source)
	w.window = sightings{}
	return out
}

func (w *watchdog) judge(source *core.ClientSource) []warning {
	var out []warning
	s := &w.window
	say := func(setting, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if w.spoken == nil {
			w.spoken = map[string]bool{}
		}
		// The peer or a number may differ next time; the trouble is the same.
		if key := setting + "|" + format; !w.spoken[key] {
			w.spoken[key] = true
			out = append(out, warning{setting, text})
		}
	}
	most := func(n int) bool { return n*10 >= s.seen*9 }
	switch {
	case most(s.problems[core.ClientUntrusted]) && most(s.forwarded):
		say("client.peers", "requests come from %s, which client.peers does not list, so its X-Forwarded-For is not believed and its own address is limited: add it to client.peers if it is your proxy", s.peer)
	case most(s.problems[core.ClientMissing]):
		say("client.from", "the field that client.from names is missing from the requests of %s: make the proxy set it, or change client.from", s.peer)
	case most(s.problems[core.ClientMalformed]):
		say("client.from", "the field that client.from names holds no address: is it the right one?")
	case most(s.problems[core.ClientShortChain]):
		say("client.trusted_hops", "X-Forwarded-For has %d entries, fewer than client.trusted_hops (%d) says: one proxy less is in front than was thought", s.chain, source.TrustedHops)
	case source.From == core.FromRemote && most(s.forwarded) && (!s.several || s.public == 0 || !w.first):
		say("client.from", "client.from is remote, but requests carry an X-Forwarded-For of %d entries that nobody trusts: if %s is your proxy, set client: {from: xff, trusted_hops: %d} and list it in client.peers", s.chain, s.peer, max(1, s.chain))
	case !w.first && !s.several && s.client.IsValid() && !isPublic(s.client) && !(s.client.IsLoopback() && s.forwarded == 0):
		if source.From == core.FromXFF {
			say("client.trusted_hops", "every client is %s, a private address: there is one proxy more than client.trusted_hops (%d) says; set it to %d", s.client, source.TrustedHops, max(1, source.TrustedHops)+1)
		} else {
			say("client.from", "every client is %s, a private address: that is a proxy; let it send X-Forwarded-For and set client: {from: xff, trusted_hops: 1}", s.client)
		}
	}
	switch {
	case !w.first:
		w.first, w.chain = true, s.chain
	case source.From == core.FromXFF && len(source.TrustedProxies) == 0 && s.chain != w.chain:
		out = append(out, warning{"client.trusted_hops", fmt.Sprintf("X-Forwarded-For had %d entries and now has %d: a proxy was added or taken away; check client.trusted_hops (%d)", w.chain, s.chain, source.TrustedHops)})
		w.chain = s.chain
	}
	return out
}

// chainLength counts the entries of X-Forwarded-For over all its lines.
func chainLength(h core.Header) int {
	if h == nil {
		return 0
	}
	n := 0
	for _, line := range h.Values("X-Forwarded-For") {
		if strings.Trim(line, " \t,") != "" {
			n += 1 + strings.Count(line, ",")
		}
	}
	return n
}

var cgnat = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func isPublic(a netip.Addr) bool {
	return a.IsValid() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !cgnat.Contains(a)
}
