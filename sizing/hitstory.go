package sizing

import (
	"fmt"
	"time"
)

// What an abuser did once it was limited.
const (
	carriedOn = "carries on"
	slowed    = "slowed down"
	left      = "left"
	spread    = "spread"
	tooSoon   = "too soon to tell"
	notTold   = "was never told"
)

// A HitStory is one abuser before and after its first refusal.
type HitStory struct {
	HitLimited
	Outcome  string  `json:"outcome"`
	Detail   string  `json:"detail"`
	Before   float64 `json:"asked_per_hour_before"` // the first 429 that it got
	After    float64 `json:"asked_per_hour_after"`
	Heirs    int     `json:"successors,omitempty"` // clients that came after it and are like it
	HeirsAsk int64   `json:"successors_asked,omitempty"`
}

const (
	storiesTold = 10
	// A verdict needs this long after the first refusal: crawlers pause for an
	// hour when told to, and then come back.
	afterLeast = 2 * time.Hour
)

// stories tells of the ten robotic clients that were refused most.
func (r *HitReport) stories() {
	r.Abusers = []HitStory{}
	for _, c := range r.all {
		if c.refused == 0 || len(r.Abusers) == storiesTold {
			return // sorted
		}
		if k := r.verdicts[c].kind; k == isProgram || k == isClaimed {
			r.Abusers = append(r.Abusers, r.story(c))
		}
	}
}

func (r *HitReport) story(c *hitClient) HitStory {
	s := HitStory{HitLimited: r.describe(c)}
	if c.told == 0 {
		s.Outcome, s.Detail = notTold, "the policy observed; nothing was refused"
		s.Before = perHour(c.asked, c.last.Sub(c.first))
		return s
	}
	span := r.To.Sub(c.firstTold)
	s.Before = perHour(c.before, c.firstTold.Sub(c.first))
	s.After = perHour(c.asked-c.before, span)
	s.Heirs, s.HeirsAsk = r.successors(c)
	quiet := r.To.Sub(c.last)
	switch {
	case span < afterLeast:
		s.Outcome, s.Detail = tooSoon, fmt.Sprintf("the log ends %s after its first refusal", span.Round(time.Minute))
	case s.Heirs >= 2 && s.HeirsAsk*5 >= c.asked:
		s.Outcome = spread
		s.Detail = fmt.Sprintf("%d new clients like it asked for %d pages since: count by network or by a fingerprint", s.Heirs, s.HeirsAsk)
	case quiet >= afterLeast && quiet*2 >= span:
		s.Outcome, s.Detail = left, fmt.Sprintf("silent since %s, for more than half of the time since its first refusal", c.last.Format("2 Jan 15:04"))
	case s.After*2 <= s.Before:
		s.Outcome, s.Detail = slowed, fmt.Sprintf("asks for %.1f pages an hour, before for %.1f", s.After, s.Before)
	default:
		s.Outcome, s.Detail = carriedOn, fmt.Sprintf("asks for %.1f pages an hour, before for %.1f; it is refused %d of %d", s.After, s.Before, c.refused, c.asked)
	}
	return s
}

// successors are the clients that appeared after c was first told and are like
// it: robotic in its network, or anybody with its User-Agent if that was its own.
func (r *HitReport) successors(c *hitClient) (n int, asked int64) {
	// A User-Agent that others had before says nothing: browsers share theirs.
	const own = 3
	had := 0
	var same []*hitClient
	for _, o := range r.all {
		if o == c {
			continue
		}
		after := o.first.After(c.firstTold)
		if o.agent == c.agent && c.agent != "" {
			if !after {
				had++
			} else {
				same = append(same, o)
				continue
			}
		}
		if k := r.verdicts[o].kind; after && c.network.IsValid() && o.network == c.network && (k == isProgram || k == isClaimed || k == isUnclear) {
			n++
			asked += o.asked
		}
	}
	for _, o := range same {
		if had < own || o.network.IsValid() && o.network == c.network {
			n++
			asked += o.asked
		}
	}
	return n, asked
}

// perHour is a rate; what took less than an hour is taken for an hour's, since
// a burst is no speed at which anybody goes on.
func perHour(n int64, span time.Duration) float64 {
	return float64(n) / max(1, span.Hours())
}

// periods compares both sides of the boundary, if the log has both.
func (r *HitReport) periods() {
	if r.Boundary.IsZero() || r.Asked == 0 {
		return
	}
	edge := int32(r.Boundary.Unix() / 3600) // the hour in which it lies belongs to neither
	whole := func(from, to int32) *HitPeriod {
		if to-from < 1 {
			return nil
		}
		p := &HitPeriod{Hours: float64(to - from), Asked: map[string]float64{}, Served: map[string]float64{}, Clients: map[string]int{}}
		for _, c := range r.all {
			kind := r.verdicts[c].kind
			seen := false
			for _, h := range c.hours {
				if h.hour < from || h.hour >= to {
					continue
				}
				seen = true
				p.Asked[kind] += float64(h.asked) / p.Hours
				p.Served[kind] += float64(h.asked-h.told) / p.Hours
			}
			if seen {
				p.Clients[kind]++
			}
		}
		return p
	}
	r.Before = whole(int32(r.From.Unix()/3600), edge)
	r.After = whole(edge+1, int32(r.To.Unix()/3600)+1)
}

// notes says what limits the numbers.
func (r *HitReport) notes(sent bool) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if r.Log.Entries > 0 && !sent {
		add("Few lines with a browser's name have fetch metadata (Sec-Fetch-Dest), which browsers send over https only: people and programs are told apart by pace alone, and many stay unclear.")
	}
	if r.Boundary.IsZero() && r.WouldRefuse > 0 {
		add("Nobody was refused: the policy observes. There is no before and after yet.")
	} else if !r.Boundary.IsZero() && (r.Before == nil || r.After == nil) {
		add("There is no before and after: it takes a full hour of log on each side of %s. Feed the log from before the limit too, or name the moment with --since.", r.Boundary.Format("2006-01-02 15:04"))
	}
	if r.LeftOut > 0 {
		add("%d refusals were not written, as sampling under flood does; they are in every number here.", r.LeftOut)
	}
	if r.StoreErrors > 0 {
		add("The store failed %d times. Those are no limits; what they meant for visitors is the policy's store.on_error.", r.StoreErrors)
	}
	if r.Log.Foreign > 0 {
		add("%d of %d lines are not the hit log's.", r.Log.Foreign, r.Log.Lines)
	}
	if r.Beyond > 0 {
		add("The table of %d clients was full: %d lines of further clients are in the totals only.", maxHitClients, r.Beyond)
	}
}
