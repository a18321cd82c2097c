package sizing

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
)

// A HitReport is what Stile's own hit log says about the limit at work.
type HitReport struct {
	From       time.Time        `json:"from"`
	To         time.Time        `json:"to"`
	Hits       int64            `json:"hits"`
	Limited    int64            `json:"limited"`
	WouldLimit int64            `json:"would_limit"`
	Reasons    map[string]int64 `json:"reasons"`
	Keys       map[string]int64 `json:"key_types"` // of refusals
	Clients    []Refused        `json:"clients"`   // refused, the most first, at most 100
	Refused    int              `json:"refused_clients"`
	Engaged    int              `json:"engaged_clients_refused"`
	Log        LogFacts         `json:"log"`
	Notes      []string         `json:"notes,omitempty"`
}

// Refused is one client that met the limit, before and after its first refusal.
type Refused struct {
	Address   string           `json:"address"`
	Agent     string           `json:"user_agent"`
	Class     string           `json:"class"`
	Hits      int64            `json:"hits"`
	Refusals  int64            `json:"refusals"`
	Reasons   map[string]int64 `json:"reasons"`
	First     time.Time        `json:"first_refusal"`
	Last      time.Time        `json:"last_refusal"`
	Before    float64          `json:"requests_per_hour_before"`
	After     float64          `json:"requests_per_hour_after"`
	Neighbour int              `json:"new_neighbours"` // addresses of its network first seen after the refusal
	Reaction  Reaction         `json:"reaction"`
}

// A Reaction is what a client did once it was refused.
type Reaction string

// The reactions.
const (
	Left     Reaction = "left"      // not seen again though the log goes on
	Slowed   Reaction = "slowed"    // at most half its former pace
	Spread   Reaction = "spread"    // its network sends new addresses instead
	GoesOn   Reaction = "goes-on"   // no change that matters
	TooEarly Reaction = "too-early" // the log ends within two hours of the refusal
)

// refusalLog is what is kept of a refused or refusable client beside the
// measurement: its events in order are not needed, only these sums.
type refusalLog struct {
	hits, refusals int64
	first, last    int64
	reasons        map[string]int64
	minutes        map[int32]int32 // requests by ten minutes, for the pace
}

// Hits reads hit logs and says who is refused now, why, whether engaged visitors
// are among them, and what the refused did next. Lines of other formats are
// counted and left out.
func Hits(ctx context.Context, inputs []accesslog.Input, o Options) (*HitReport, error) {
	people, err := newCollector(&o, 1)
	if err != nil {
		return nil, err
	}
	r := &HitReport{Reasons: map[string]int64{}, Keys: map[string]int64{}}
	refused := map[clientKey]*refusalLog{}
	foreign := int64(0)
	logOptions := o.Log
	logOptions.Workers = 1
	if o.Progress != nil {
		logOptions.Progress = o.Progress
	}
	stats, err := accesslog.Scan(ctx, inputs, logOptions, func(int) accesslog.Sink {
		return accesslog.SinkFunc(func(rec *accesslog.Record) {
			if rec.Format != accesslog.FormatStile {
				foreign++
				return
			}
			r.event(people, refused, rec)
		})
	})
	if err != nil {
		return nil, err
	}
	m := &measurement{opts: &o, log: stats, traffic: people.traffic}
	for _, cl := range people.clients {
		m.clients = append(m.clients, cl)
	}
	m.finish()
	r.Log = m.logFacts()
	if people.traffic.requests > 0 {
		r.From, r.To = time.Unix(people.traffic.from, 0).UTC(), time.Unix(people.traffic.to, 0).UTC()
	}
	r.judge(m, refused)
	if foreign > 0 {
		r.Notes = append(r.Notes, countsText(map[string]int64{"lines of other formats left out:": foreign}))
	}
	if !m.hasEvidence() {
		r.Notes = append(r.Notes, "A hit log holds pages only, without assets: \"engaged\" rests on fetch metadata and spacing here. Measure the access log of the same time for more.")
	}
	return r, nil
}

func (r *HitReport) event(people *collector, refused map[clientKey]*refusalLog, rec *accesslog.Record) {
	people.Record(rec)
	addr, ok := people.address(rec)
	if !ok {
		return
	}
	a := people.agents.lookup(rec.UserAgent)
	k := clientKey{addr, people.groupOf(a, addr)}
	l := refused[k]
	if l == nil {
		l = &refusalLog{minutes: map[int32]int32{}}
		refused[k] = l
	}
	now := rec.Time.Unix()
	n := 1 + rec.LeftOut
	l.minutes[int32(now/600)] += int32(n)
	switch rec.Event {
	case "limited":
		r.Limited += n
	case "would-limit":
		r.WouldLimit += n
	default:
		r.Hits += n
		l.hits += n
		return
	}
	reason := strings.Clone(rec.Reason)
	r.Reasons[reason] += n
	r.Keys[strings.Clone(rec.KeyType)] += n
	if l.reasons == nil {
		l.reasons = map[string]int64{}
	}
	l.reasons[reason] += n
	l.refusals += n
	if l.first == 0 || now < l.first {
		l.first = now
	}
	l.last = max(l.last, now)
}

// judge turns sums into clients and reactions.
func (r *HitReport) judge(m *measurement, refused map[clientKey]*refusalLog) {
	firstSeen := map[string][]int64{} // by network
	for _, cl := range m.clients {
		if n, ok := networkKey(cl.key.addr, 24, 48); ok {
			firstSeen[n] = append(firstSeen[n], cl.first)
		}
	}
	for _, cl := range m.clients {
		l := refused[cl.key]
		if l == nil || l.refusals == 0 {
			continue
		}
		c := Refused{Address: m.name(cl), Agent: cl.agent.text, Class: m.class(cl), Hits: l.hits, Refusals: l.refusals, Reasons: l.reasons,
			First: time.Unix(l.first, 0).UTC(), Last: time.Unix(l.last, 0).UTC()}
		c.pace(l, cl, m.traffic.to)
		c.Neighbour = newcomers(firstSeen, cl.key.addr, l.first)
		c.react(cl, l, m.traffic.to)
		if c.Class == engaged.String() {
			r.Engaged++
		}
		r.Clients = append(r.Clients, c)
	}
	slices.SortStableFunc(r.Clients, func(a, b Refused) int { return cmp.Compare(b.Refusals, a.Refusals) })
	r.Refused = len(r.Clients)
	r.Clients = r.Clients[:min(len(r.Clients), 100)]
}

// pace is in requests per hour, admitted and refused alike: what the client
// tries is what tells its reaction. Before: since it came. After: until the log
// ends, not until it left.
func (c *Refused) pace(l *refusalLog, cl *client, end int64) {
	before, after := 0.0, 0.0
	for ten, n := range l.minutes {
		if int64(ten)*600+600 <= l.first {
			before += float64(n)
		} else if int64(ten)*600 > l.first {
			after += float64(n)
		}
	}
	c.Before = before / max(float64(l.first-cl.first)/3600, 1.0/6)
	c.After = after / max(float64(end-l.first)/3600, 1.0/6)
}

func newcomers(firstSeen map[string][]int64, a netip.Addr, since int64) int {
	n := 0
	if k, ok := networkKey(a, 24, 48); ok {
		for _, t := range firstSeen[k] {
			if t > since {
				n++
			}
		}
	}
	return n
}

func (c *Refused) react(cl *client, l *refusalLog, end int64) {
	const patience = 2 * 3600
	switch {
	case end-l.first < patience:
		c.Reaction = TooEarly
	case c.Neighbour >= 3:
		c.Reaction = Spread
	case cl.last < l.first+600 && end-cl.last >= patience:
		c.Reaction = Left
	case c.After <= c.Before/2:
		c.Reaction = Slowed
	default:
		c.Reaction = GoesOn
	}
}
