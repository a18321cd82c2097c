package sizing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// result joins tallies with what the clients turned out to be.
func (rp *replayer) result(m *measurement) *Replayed {
	out := &Replayed{Lines: m.log.Lines, Records: m.log.Records, Observe: rp.opts.Policy.Observe}
	if m.traffic.requests > 0 {
		out.From, out.To = time.Unix(m.traffic.from, 0).UTC(), time.Unix(m.traffic.to, 0).UTC()
	}
	classes := map[string]*ReplayClass{}
	exceptions := map[string]*ReplayException{}
	perBucket := make([]int64, len(rp.opts.Policy.Buckets))
	for _, cl := range m.clients {
		t := rp.tallies[cl.key]
		if t == nil {
			continue
		}
		name := m.class(cl)
		c := classes[name]
		if c == nil {
			c = &ReplayClass{Name: name, ByBucket: map[string]int64{}}
			classes[name] = c
		}
		c.add(t, rp.opts.Policy.Buckets)
		out.Pages += t.pages
		out.Refused += t.refused
		for i, n := range t.byBucket {
			perBucket[i] += n
		}
		if t.exempt > 0 || t.saved > 0 {
			e := exceptions[t.exception]
			if e == nil {
				e = &ReplayException{Name: t.exception}
				exceptions[t.exception] = e
			}
			e.Pages += t.pages
			e.Saved += t.saved
		}
		if t.refused > 0 {
			out.Limited = append(out.Limited, rp.limited(m, cl, t, name))
		}
	}
	for _, c := range classes {
		out.Classes = append(out.Classes, *c)
	}
	slices.SortFunc(out.Classes, func(a, b ReplayClass) int { return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Name, b.Name)) })
	for _, e := range exceptions {
		out.Exceptions = append(out.Exceptions, *e)
	}
	slices.SortFunc(out.Exceptions, func(a, b ReplayException) int {
		return cmp.Or(cmp.Compare(b.Saved, a.Saved), cmp.Compare(a.Name, b.Name))
	})
	for i, b := range rp.opts.Policy.Buckets {
		out.Buckets = append(out.Buckets, ReplayBucket{Name: b.Name, Key: b.Key.String(), Limit: b.Limit, Window: windowText(b.Window), Refused: perBucket[i], Never: perBucket[i] == 0})
	}
	slices.SortStableFunc(out.Limited, func(a, b ReplayClient) int { return cmp.Compare(b.Refused, a.Refused) })
	out.LimitedAddresses = len(out.Limited)
	out.Limited = out.Limited[:min(len(out.Limited), 100)]
	out.notes(rp, m)
	return out
}

func (rp *replayer) limited(m *measurement, cl *client, t *tally, class string) ReplayClient {
	rc := ReplayClient{Address: m.name(cl), Class: class, Agent: cl.agent.text, Agents: len(cl.agents), Pages: t.pages, Refused: t.refused,
		First: time.Unix(t.first, 0).UTC(), Last: time.Unix(t.last, 0).UTC(), ByBucket: map[string]int64{}}
	for i, n := range t.byBucket {
		if n > 0 {
			rc.ByBucket[rp.opts.Policy.Buckets[i].Name] = n
		}
	}
	return rc
}

// class names what a client is for a replay.
func (m *measurement) class(cl *client) string {
	f := m.facts[cl]
	switch {
	case cl.key.group == crawlers && f.crawler.Verified:
		return ClassVerified
	case cl.key.group == crawlers:
		return ClassClaimed
	case cl.key.group != visitors:
		return cl.key.group.String()
	}
	return f.kind.String()
}

func (r *Replayed) notes(rp *replayer, m *measurement) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	for _, b := range r.Buckets {
		if b.Never {
			add("%s (%d per %s) never fires on this log.", b.Name, b.Limit, b.Window)
		}
	}
	if rp.late > 0 {
		add("%d pages were more than two minutes out of order and were decided late.", rp.late)
	}
	if rp.noAddress > 0 {
		add("%d pages have no client address and were not replayed.", rp.noAddress)
	}
	if rp.storeErrors > 0 {
		add("%d decisions met an error of the store.", rp.storeErrors)
	}
	if m.norms.embedded > 0 {
		add("%d page-like requests were parts of a page by their referrers; a live Stile tells them by their headers, this replay counted them.", m.norms.embedded)
	}
}

// windowText writes a window as a policy file does: 1h, 24h, 5m.
func windowText(d time.Duration) string {
	switch {
	case d > 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
