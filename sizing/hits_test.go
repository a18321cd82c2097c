package sizing

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/sizing/accesslog"
)

func hitLine(event, ip string, at time.Time, path string) string {
	reason, status := "", 200
	if event != "hit" {
		reason, status = "limit", 429
	}
	return fmt.Sprintf(`{"time":"%s","severity":"INFO","event":"%s","reason":"%s","site":"s","host":"a.example","ip":"%s","key_type":"address","key":"%s","user_agent":"fetcher/%s","method":"GET","path":"%s","status":%d}`+"\n",
		at.Format(time.RFC3339Nano), event, reason, ip, ip, ip[:4], path, status)
}

// TestHits: programs that left, slowed down, went on, spread, or were never told
// are told apart, in a log without any crawler's proof.
func TestHits(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 5, 6, 0, 0, 0, time.UTC)
	var b strings.Builder
	run := func(ip string, before, after int) { // requests per hour, refused from 09:00 on
		for m := 0; m < 180; m++ {
			if before > 0 && m%(60/before) == 0 {
				b.WriteString(hitLine("hit", ip, start.Add(time.Duration(m)*time.Minute), fmt.Sprintf("/p%d", m)))
			}
		}
		b.WriteString(hitLine("limited", ip, start.Add(3*time.Hour), "/p"))
		for m := 11; m < 300; m++ {
			if after > 0 && m%(60/after) == 0 {
				b.WriteString(hitLine("limited", ip, start.Add(3*time.Hour+time.Duration(m)*time.Minute), fmt.Sprintf("/q%d", m)))
			}
		}
	}
	run("192.0.2.1", 30, 30)
	run("192.0.2.2", 30, 6)
	run("198.51.100.3", 30, 0)
	run("203.0.113.1", 30, 10)
	for i := range 50 { // five successors
		b.WriteString(hitLine("hit", fmt.Sprintf("203.0.113.%d", 2+i%5), start.Add(4*time.Hour+time.Duration(i)*time.Minute), "/n"))
	}
	b.WriteString(hitLine("would-limit", "198.51.100.200", start.Add(7*time.Hour+50*time.Minute), "/z"))
	b.WriteString(line("192.0.2.77", 1, 1, "/other", "-", browserUA(1), 200) + "not a line\n")
	r, err := Hits(context.Background(), []accesslog.Input{accesslog.Reader("hits", strings.NewReader(b.String()))}, HitOptions{Now: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range r.Abusers {
		got[c.Client] = c.Outcome
	}
	for ip, want := range map[string]string{"192.0.2.1": carriedOn, "192.0.2.2": slowed, "198.51.100.3": left, "203.0.113.1": spread, "198.51.100.200": notTold} {
		if got[ip] != want {
			t.Errorf("%s: %q, want %q", ip, got[ip], want)
		}
	}
	if r.Limited != 5 || r.WouldRefuse != 1 || r.Asked-r.Refused-r.WouldRefuse != 4*90+50 || r.Reasons[0].Name != "limit" || r.Reasons[0].Refused != r.Refused+1 {
		t.Errorf("%+v", r)
	}
	if r.Log.Foreign != 2 || r.BadNews() {
		t.Errorf("log %+v, bad news %v", r.Log, r.BadNews())
	}
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil || !strings.Contains(out.String(), "spread") {
		t.Errorf("%v\n%s", err, out.String())
	}
	r.Pseudonymise([]byte("k"))
	if strings.Contains(fmt.Sprint(r.Abusers, r.Now), "192.0.2.") {
		t.Error("an address is still there")
	}
}

// TestHitLogReadBack writes a log with package hitlog's own entries, plain and
// under Cloud Logging's names, and replays it: the same refusals come out.
func TestHitLogReadBack(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 5, 6, 0, 0, 0, time.UTC)
	for name, names := range map[string]hitlog.Names{
		"plain":         {},
		"cloud logging": {Rename: map[string]string{"event": "message", "time": "timestamp"}},
	} {
		var b bytes.Buffer
		h := hitlog.NewHandler(&b, names)
		for i := range 30 {
			event, left := "hit", int64(0)
			if i >= 10 { // the live limiter admitted ten in this hour
				event = "limited"
			}
			if i == 29 {
				left = 70
			}
			rec := slog.NewRecord(start.Add(time.Duration(i)*time.Minute), slog.LevelInfo, event, 0)
			rec.AddAttrs(slog.String("reason", "limit"), slog.String("site", "s"), slog.String("ip", "h:0123456789abcdef"), slog.String("key_type", "address"),
				slog.String("user_agent", browserUA(1)), slog.String("method", "GET"), slog.String("path", "/p"), slog.String("sec_fetch_dest", "document"), slog.Int64("left_out", left))
			if err := h.Handle(context.Background(), rec); err != nil {
				t.Fatal(err)
			}
		}
		log := b.String()
		r := replay(t, log, ReplayOptions{Policy: hourDay(10, 100)})
		if r.Pages != 100 || r.Refused != 90 || r.LimitedAddresses != 1 || r.Limited[0].Class != "robotic" { // 71 in a minute
			t.Errorf("%s: %d pages, %d refused, want 100 and 90\n%s", name, r.Pages, r.Refused, log[:300])
		}
		m := measure(t, log, Options{})
		if m.Traffic.Pages != 100 || m.Traffic.Opaque != 30 || m.Everyone.PerHour.Max != 100 {
			t.Errorf("%s: measured %+v", name, m.Traffic)
		}
		hits, err := Hits(context.Background(), []accesslog.Input{accesslog.Reader("hits", strings.NewReader(log))}, HitOptions{Now: start.AddDate(1, 0, 0)})
		if err != nil || hits.Asked != 100 || hits.Refused != 90 || hits.LeftOut != 70 || hits.Reasons[0] != (HitCount{Name: "limit", Refused: 90}) {
			t.Errorf("%s: %+v %v", name, hits, err)
		}
	}
}

// TestHitTableIsBounded: clients beyond the bound are in the totals.
func TestHitTableIsBounded(t *testing.T) {
	t.Parallel()
	h := newHitCollector()
	h.limit = 2
	for i := range 5 {
		h.take(&hitlog.Entry{Time: time.Date(2026, 9, 7, 0, 0, 0, 0, time.UTC), Event: hitlog.Limited, IP: fmt.Sprint("192.0.2.", i), KeyType: "address", Key: fmt.Sprint("192.0.2.", i)})
	}
	if h.r.Refused != 5 || len(h.clients) != 2 || h.r.Beyond != 3 {
		t.Errorf("refused %d, %d clients, %d beyond", h.r.Refused, len(h.clients), h.r.Beyond)
	}
}
