package sizing

import (
	"fmt"
	"strings"
)

func (m *measurement) limitsText(p *Proposal, r *Report) []string {
	h := &r.Humans
	out := []string{fmt.Sprintf("Limit pages to %d an hour and %d a day for each address.", p.Hour, p.Day),
		fmt.Sprintf("Of a thousand busy hours of engaged visitors one has more than %d pages, of a thousand days one more than %d.", h.PerHour.P999, h.PerDay.P999)}
	if p.AbuserDay > 0 {
		out = append(out, fmt.Sprintf("The lightest abuser that they reach loads %d pages a day, %d in its fullest hour; robotic visitors would lose %.0f %% of their pages.", p.AbuserDay, p.AbuserHour, 100*p.Effect.RoboticShare))
		if p.AbuserHour <= p.Hour {
			out = append(out, "The hourly limit does not touch that one: it is slow and steady, and the day is what stops it.")
		}
	} else {
		out = append(out, "No abuser stands out in this log: the limits are a fence, and would have stopped nobody who matters.")
	}
	if p.Effect.EngagedCut > 0 {
		out = append(out, fmt.Sprintf("Engaged addresses that would have met a limit: %d, with %.2f %% of engaged pages. Look at them in a replay.", p.Effect.EngagedCut, 100*p.Effect.EngagedShare))
	}
	if p.Effect.SharedCut > 0 {
		out = append(out, fmt.Sprintf("Shared addresses that would have met a limit: %d. The policy lists them as exceptions, with the evidence.", p.Effect.SharedCut))
	}
	return append(out, exemptText(p.exempt)...)
}

func (m *measurement) distributedText(p *Proposal, r *Report) []string {
	addresses := 0
	for _, cl := range m.clients {
		if m.unwanted(cl) {
			addresses++
		}
	}
	out := []string{
		fmt.Sprintf("No promise by address: %d robotic pages (%.0f %% of all) came from %d addresses, about %.1f each.", p.Effect.RoboticPages, 100*p.Effect.RoboticOfAll, addresses, float64(p.Effect.RoboticPages)/float64(max(addresses, 1))),
		fmt.Sprintf("A limit of %d an hour and %d a day for each address would have stopped %.1f %% of them.", p.Hour, p.Day, 100*p.Effect.RoboticShare),
	}
	for _, n := range r.Networks {
		if n.Key == "address" {
			continue
		}
		out = append(out, fmt.Sprintf("By %s, a day's limit of %d (no engaged day reached it) would have stopped %.1f %%.", n.Key, n.Limit, 100*n.Stopped))
	}
	out = append(out, "Consider a fingerprint from your edge (header:NAME), a signed cookie, or a challenge there.")
	return out
}

// notes says what limits the numbers.
func (m *measurement) notes(r *Report) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(r.Log.Lacking) > 0 {
		add("The log does not tell: %s. A live Stile sees these and counts fewer requests as pages.", strings.Join(r.Log.Lacking, ", "))
	}
	if !m.hasEvidence() && r.Traffic.Pages > 0 {
		add("The log shows neither assets nor referrers of the site itself, so people cannot be told from programs by behaviour: everyone with two pages and a steady hand is taken for engaged.")
	}
	if m.norms.embedded > 0 {
		add("%d page-like requests followed a page within two seconds and named it as their referrer: counted as parts of it.", m.norms.embedded)
	}
	if t := r.Traffic; t.BeyondLimit > 0 {
		add("No page limit stops %d of %d requests (%s of %s): assets, media, APIs and %d soft navigations.", t.BeyondLimit, t.Requests, bytesText(t.BeyondBytes), bytesText(t.Bytes), t.Soft)
	}
	if r.Traffic.NoAddress > 0 {
		add("%d requests have no client address and are in no distribution. A limit by a header that can be missing would be one limit for all of them.", r.Traffic.NoAddress)
	}
	if r.Traffic.Opaque > 0 {
		add("%d requests name their client by host name or digest; each name is a key of its own.", r.Traffic.Opaque)
	}
	if m.log.ShortChains > 0 {
		add("%d lines have fewer X-Forwarded-For entries than the client rule asks for: the chain of proxies is not what the rule says.", m.log.ShortChains)
	}
	if m.log.LocalTimes > 0 {
		add("%d lines carry times without a zone; they were read as %s.", m.log.LocalTimes, zoneName(m))
	}
	if r.Traffic.CacheKnown > 0 {
		add("%d of %d requests were answered by a cache and never reached the origin; they are counted here.", r.Traffic.CacheHits, r.Traffic.CacheKnown)
	}
	if m.overflow > 0 {
		add("The table of %d addresses was full: %d requests of further addresses are in the totals only.", m.opts.maxClients(), m.overflow)
	}
	if m.opts.Crawlers == nil && len(r.Crawlers) > 0 {
		add("Crawlers are listed by what they claim; no proof was asked for.")
	}
	return out
}

func zoneName(m *measurement) string {
	if m.opts.Log.Location == nil {
		return "UTC"
	}
	return m.opts.Log.Location.String()
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	f := float64(n)
	for _, u := range [...]string{"B", "kB", "MB", "GB"} {
		if f < 1000 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + " " + u
		}
		f /= 1000
	}
	return fmt.Sprintf("%.1f TB", f)
}

// policyFile writes the proposal as a policy, with the numbers that it rests on.
func policyFile(p *Proposal, r *Report) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w("# Proposed by `stile size` from %d lines, %s to %s.\n", r.Log.Lines, r.From.Format("2006-01-02"), r.To.Format("2006-01-02"))
	w("# Begin with mode: observe, and read the hit log with `stile report`.\n")
	w("version: 1\nsite: example\nmode: observe\n")
	w("client: {from: remote}  # set this to your own chain of proxies\n")
	w("buckets:\n")
	w("  - {name: hour, key: address, algorithm: sliding-window-counter, limit: %d, window: 1h}\n", p.Hour)
	w("  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 24h}\n", p.Day)
	w("measured:\n")
	w("  period: %s/%s\n", r.From.Format("2006-01-02"), r.To.Format("2006-01-02"))
	w("  human_p999_per_hour: %d\n  human_p999_per_day: %d\n", r.Humans.PerHour.P999, r.Humans.PerDay.P999)
	w("  abuser_per_hour: %d\n  abuser_per_day: %d\n", p.AbuserHour, p.AbuserDay)
	writeExemptions(&b, p.exempt)
	return b.String()
}
