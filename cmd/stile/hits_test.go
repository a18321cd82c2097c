package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/stores/memory"
)

// A guest visits a played site. Next says how long it waits after an answer, or
// that it never comes back.
type guest struct {
	addr  string
	agent string
	dest  string
	from  time.Duration // after the beginning
	next  func(told bool) (time.Duration, bool)
	heirs func() []*guest // come when it is first told

	at   time.Time
	told int
	n    int
}

// every waits the same time whatever the answer.
func every(d time.Duration) func(bool) (time.Duration, bool) {
	return func(bool) (time.Duration, bool) { return d, true }
}

// until ends after n requests.
func until(n int, next func(bool) (time.Duration, bool)) func(bool) (time.Duration, bool) {
	return func(told bool) (time.Duration, bool) {
		n--
		d, more := next(told)
		return d, more && n > 0
	}
}

const reader = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

var playedFrom = time.Date(2026, 9, 7, 0, 0, 0, 0, time.UTC)

// playHits runs guests against the real limiter with a clock of its own: 20 pages
// an hour and 100 a day, observing until enforced, and returns the hit log.
func playHits(t *testing.T, length, enforced time.Duration, guests ...*guest) string {
	t.Helper()
	store := memory.New(memory.Config{})
	defer store.Close()
	limiters := map[bool]*core.Limiter{}
	for _, observe := range []bool{true, false} {
		l, err := core.New(core.Policy{Site: "test", Observe: observe, Claims: core.ClaimsOff, Client: core.ClientSource{From: core.FromRemote}, Buckets: []core.Bucket{
			{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: 20, Window: time.Hour},
			{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: 100, Window: 24 * time.Hour},
		}}, core.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		limiters[observe] = l
	}
	var buf bytes.Buffer
	log, err := hitlog.New(hitlog.Config{Handler: hitlog.NewHandler(&buf, hitlog.Names{}), Site: "test", Store: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guests {
		g.at = playedFrom.Add(g.from)
	}
	end := playedFrom.Add(length)
	for len(guests) > 0 {
		g := slices.MinFunc(guests, func(a, b *guest) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.addr, b.addr)) })
		if g.at.After(end) {
			break
		}
		g.n++
		header := http.Header{"User-Agent": {g.agent}}
		if g.dest != "" {
			header.Set("Sec-Fetch-Dest", g.dest)
		}
		q := &core.Request{Method: "GET", Host: "example.org", Path: fmt.Sprintf("/p/%d", g.n), Header: header, Peer: netip.MustParseAddr(g.addr), Time: g.at}
		d := limiters[g.at.Before(playedFrom.Add(enforced))].Decide(context.Background(), q)
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		log.Write(context.Background(), hitlog.Record{Request: q, Decision: &d, Status: map[bool]int{true: 429, false: 200}[d.Refused()]})
		if d.Refused() {
			if g.told++; g.told == 1 && g.heirs != nil {
				for _, heir := range g.heirs() {
					heir.at = g.at.Add(time.Minute)
					guests = append(guests, heir)
				}
			}
		}
		wait, more := g.next(d.Refused())
		g.at = g.at.Add(wait)
		if !more {
			guests = slices.DeleteFunc(guests, func(o *guest) bool { return o == g })
		}
	}
	log.Flush(context.Background())
	return buf.String()
}

// village is everybody whom a report must tell apart, over three days, the last
// two enforced.
func village(t *testing.T) string {
	t.Helper()
	var guests []*guest
	for i := range 8 { // three pages a day, each at an hour of their own
		n := 0
		guests = append(guests, &guest{addr: fmt.Sprintf("84.1.%d.7", i), agent: reader, dest: "document", from: time.Duration(8+i) * time.Hour,
			next: func(bool) (time.Duration, bool) {
				if n++; n%3 == 0 {
					return 24*time.Hour - 4*time.Minute, true
				}
				return 2 * time.Minute, true
			}})
	}
	guests = append(guests,
		&guest{addr: "84.2.0.1", agent: reader, dest: "document", from: 33 * time.Hour, next: until(26, every(100*time.Second))}, // a keen reader
		&guest{addr: "66.249.66.1", agent: "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", from: time.Minute, next: every(9 * time.Minute)},
		&guest{addr: "45.1.1.1", agent: "stubborn/1.0", from: 2 * time.Minute, next: every(150 * time.Second)},
		&guest{addr: "45.2.2.2", agent: "polite/1.0", from: 3 * time.Minute, next: func(told bool) (time.Duration, bool) {
			if told {
				return 2 * time.Hour, true
			}
			return 2 * time.Minute, true
		}},
		&guest{addr: "45.3.3.3", agent: "quitter/1.0", from: 4 * time.Minute, next: func(told bool) (time.Duration, bool) { return 2 * time.Minute, !told }},
		&guest{addr: "45.4.4.4", agent: "hydra/1.0", from: 5 * time.Minute, next: func(told bool) (time.Duration, bool) { return 2 * time.Minute, !told },
			heirs: func() (out []*guest) {
				for i := range 5 {
					out = append(out, &guest{addr: fmt.Sprintf("46.%d.0.1", i), agent: "hydra/1.0", next: every(11 * time.Minute)})
				}
				return out
			}},
	)
	return playHits(t, 72*time.Hour, 24*time.Hour, guests...)
}
