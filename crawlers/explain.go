package crawlers

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// A ListStatus describes one list as it is held now.
type ListStatus struct {
	ID       string        `json:"id"`
	URL      string        `json:"url,omitempty"`
	Agents   []string      `json:"agents"`
	Classes  []Class       `json:"classes"`
	Prefixes int           `json:"prefixes"`
	Origin   string        `json:"origin,omitempty"` // shipped, file or fetched; empty: nothing is held
	Source   string        `json:"source,omitempty"`
	Partial  bool          `json:"partial,omitempty"`
	Created  time.Time     `json:"created,omitzero"`
	Fetched  time.Time     `json:"fetched,omitzero"`
	Checked  time.Time     `json:"checked,omitzero"` // last confirmed by the source
	Age      time.Duration `json:"age_ns"`           // since the source last confirmed the content
	Stale    bool          `json:"stale"`            // older than MaxAge, or nothing is held
	Failures int           `json:"failures,omitempty"`
	Error    string        `json:"error,omitempty"` // of the last fetch, when it failed
	Fact     Fact          `json:"fact"`
}

// List describes every list of the catalogue, in its order.
func (v *Verifier) List() []ListStatus {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Now()
	out := make([]ListStatus, len(v.lists))
	for i := range v.lists {
		l, s := v.cat.Lists[i], &v.lists[i]
		st := ListStatus{ID: l.ID, URL: l.URL, Agents: l.Agents, Prefixes: len(s.held.Prefixes), Origin: s.origin,
			Source: s.held.Source, Partial: s.held.Partial, Created: s.held.Created, Fetched: s.held.Fetched, Checked: s.checked,
			Failures: s.failures, Fact: l.Fact, Stale: true}
		seen := map[Class]bool{}
		for _, a := range v.cat.Agents {
			if v.listAgents[i].has(v.agentIndex(a.Name)) && !seen[a.Class] {
				seen[a.Class] = true
				st.Classes = append(st.Classes, a.Class)
			}
		}
		if s.origin != "" {
			st.Age = s.age(now)
			st.Stale = st.Age > v.cfg.MaxAge
		}
		if s.lastErr != nil {
			st.Error = s.lastErr.Error()
		}
		out[i] = st
	}
	return out
}

func (v *Verifier) agentIndex(name string) int {
	for i, a := range v.cat.Agents {
		if a.Name == name {
			return i
		}
	}
	return -1
}

// Age is the age of the list that was confirmed longest ago, among those that
// have a URL and hold ranges; for /metrics and `stile doctor`. Lists that hold
// nothing are counted in empty.
func (v *Verifier) Age() (oldest time.Duration, empty int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Now()
	for i := range v.lists {
		switch {
		case v.cat.Lists[i].URL == "":
		case v.lists[i].origin == "":
			empty++
		default:
			oldest = max(oldest, v.lists[i].age(now))
		}
	}
	return oldest, empty
}

// Dropped counts claims that were not queued for reverse DNS because the queue,
// or their network's share of it, was full.
func (v *Verifier) Dropped() uint64 { return v.queue.dropped.Load() }

// A RangeProof is one published list that holds the address.
type RangeProof struct {
	List      string        `json:"list"`
	Prefix    netip.Prefix  `json:"prefix"` // the narrowest that holds the address, of this list
	Agents    []string      `json:"agents"`
	Dedicated bool          `json:"dedicated"` // the address alone is proof
	Source    string        `json:"source"`
	Age       time.Duration `json:"age_ns"`
}

// An Explanation is the whole proof about one client, for people and for JSON.
type Explanation struct {
	Client  netip.Addr   `json:"client"`
	Claims  []string     `json:"claims,omitempty"` // agents that the User-Agent names
	Ranges  []RangeProof `json:"ranges,omitempty"`
	Names   []NameProof  `json:"names,omitempty"`   // reverse DNS, when it was asked
	Reverse string       `json:"reverse,omitempty"` // how reverse DNS ended, or why it was not asked
	Match   Match        `json:"match"`
	Reason  string       `json:"reason"` // one sentence
}

// Explain says what [Verifier.Verify] would answer for client and userAgent
// once reverse DNS has been asked, and by what proof. Unlike Verify it asks the
// DNS itself, now, unless offline is true; it is for tools, not for requests.
// It neither queues nor remembers anything.
func (v *Verifier) Explain(ctx context.Context, client netip.Addr, userAgent string, offline bool) Explanation {
	client = client.Unmap().WithZone("")
	claimed, first := v.claims.find(userAgent)
	e := Explanation{Client: client, Claims: v.names(claimed), Ranges: v.ranges(client)}
	if own := v.table.Load().lookup(client); own != nil {
		if i := pick(claimed.and(own.agents), first); i >= 0 {
			e.Match = v.match(i, true, ByRange)
		} else if own.lone >= 0 {
			e.Match = v.match(own.lone, first >= 0, ByRange)
		}
	}
	able := claimed.and(v.canReverse)
	switch {
	case e.Match.Verified:
		e.Reason = fmt.Sprintf("%s: the address is in a published range", e.Match.Name)
		return e
	case first < 0 && len(e.Ranges) > 0:
		e.Reason = "the range is not the crawler's alone and the User-Agent claims none of its agents: an ordinary client"
		return e
	case first < 0:
		e.Reason = "no crawler is claimed and no published range holds the address: an ordinary client"
		return e
	}
	e.Match = v.match(first, true, NoProof)
	switch {
	case able.empty():
		e.Reverse = "not asked: the operator documents no host names"
	case offline:
		e.Reverse = "not asked: offline"
	case !client.IsValid():
		e.Reverse = "not asked: no client address"
	default:
		ctx, cancel := context.WithTimeout(ctx, v.cfg.LookupTimeout)
		defer cancel()
		agents, out, names := v.reverse(ctx, client)
		e.Names = names
		switch out {
		case confirmed:
			e.Reverse = "confirmed"
			if i := pick(claimed.and(agents), first); i >= 0 {
				e.Match = v.match(i, true, ByReverse)
				e.Reason = fmt.Sprintf("%s: a host name of the operator leads back to the address", e.Match.Name)
				return e
			}
			e.Reverse = "confirmed for another crawler than the one claimed"
		case refuted:
			e.Reverse = "refuted"
		case undecided:
			e.Reverse = "the DNS did not answer"
		}
	}
	e.Reason = fmt.Sprintf("%s is claimed and not proven: counted as an ordinary client, not blocked", e.Match.Name)
	return e
}

// ranges lists every list that holds client, with its narrowest prefix.
func (v *Verifier) ranges(client netip.Addr) []RangeProof {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Now()
	var out []RangeProof
	for i := range v.lists {
		s := &v.lists[i]
		var best netip.Prefix
		for _, p := range s.held.Prefixes {
			if p.Contains(client) && (!best.IsValid() || p.Bits() > best.Bits()) {
				best = p
			}
		}
		if best.IsValid() {
			l := v.cat.Lists[i]
			out = append(out, RangeProof{List: l.ID, Prefix: best, Agents: l.Agents, Dedicated: l.Dedicated, Source: s.held.Source, Age: s.age(now)})
		}
	}
	return out
}
