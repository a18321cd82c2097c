package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/sizing"
)

// TestReportOfAVillage plays clients of known character against the real limiter
// and wants each of them told apart.
func TestReportOfAVillage(t *testing.T) {
	t.Parallel()
	log := village(t)
	text := command(t, nil, log, "report", "-")
	if text.code != 1 || text.stderr != "" {
		t.Errorf("a reader and a verified crawler met a limit: exit %d, %s", text.code, text.stderr)
	}
	golden(t, "report.golden", text.stdout)

	r := command(t, nil, log, "report", "--json", "-")
	var got sizing.HitReport
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{}
	for _, s := range got.Abusers {
		outcomes[s.Client] = s.Outcome
	}
	for addr, want := range map[string]string{"45.1.1.1": "carries on", "45.2.2.2": "slowed down", "45.3.3.3": "left", "45.4.4.4": "spread"} {
		if outcomes[addr] != want {
			t.Errorf("%s: %q, want %q", addr, outcomes[addr], want)
		}
	}
	if len(got.People) != 1 || got.People[0].Client != "84.2.0.1" || got.People[0].Refused != 6 {
		t.Errorf("people hit: %+v, want the keen reader, 6 pages", got.People)
	}
	if len(got.Crawlers) != 1 || got.Crawlers[0].Client != "66.249.66.1" {
		t.Errorf("verified crawlers hit: %+v", got.Crawlers)
	}
	if want := playedFrom.Add(24 * time.Hour); got.Boundary.Before(want) || got.Boundary.After(want.Add(time.Hour)) || got.Before == nil || got.After == nil {
		t.Errorf("boundary %v, want %v and both sides of it", got.Boundary, want)
	}
	sum := int64(0)
	for _, k := range got.Kinds {
		sum += k.Refused
	}
	byBucket := int64(0)
	for _, b := range got.Buckets {
		byBucket += b.Refused
	}
	if all := got.Refused + got.WouldRefuse; sum != all || byBucket != all || got.LeftOut != 0 {
		t.Errorf("%d refusals, %d by kind, %d by bucket, %d left out", all, sum, byBucket, got.LeftOut)
	}
	for _, l := range got.Now {
		if l.Last.Before(got.To.Add(-time.Hour)) || l.Bucket == "" {
			t.Errorf("not limited now: %+v", l)
		}
	}
}

// TestReportWeighsSampledLines: a flood is thinned out in the log, not in the
// numbers.
func TestReportWeighsSampledLines(t *testing.T) {
	t.Parallel()
	log := playHits(t, 2*time.Hour, 0, &guest{addr: "45.1.1.1", agent: "flood/1.0", next: until(3000, every(time.Second))})
	r := command(t, nil, log, "report", "--json", "-")
	var got sizing.HitReport
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Asked != 3000 || got.Refused != 2980 || got.LeftOut == 0 || got.Log.Lines >= 3000 || got.Abusers[0].Refused != 2980 || r.code != 0 {
		t.Errorf("exit %d: asked %d, refused %d, left out %d in %d lines", r.code, got.Asked, got.Refused, got.LeftOut, got.Log.Lines)
	}
}

// TestReportReadsWhatPlatformsWrite: prefixes, foreign lines, wrapped payloads,
// broken lines, hostile text, archives.
func TestReportReadsWhatPlatformsWrite(t *testing.T) {
	t.Parallel()
	line := func(event string, i int) string {
		return fmt.Sprintf(`{"time":"2026-10-02T10:%02d:00Z","event":%q,"reason":"over-limit","ip":"203.0.113.9","key_type":"address","key":"203.0.113.9","user_agent":"x\u001b[31m\u202e","buckets":[{"name":"hour\u001b","count":9,"limit":9,"remaining":0,"reset_s":60}]}`, i, event)
	}
	log := strings.Join([]string{
		"starting up",
		line("hit", 0),
		"2026-10-02T10:01:00.000Z stream/1 " + line("limited", 1),
		`{"timestamp":"2026-10-02T10:02:00Z","jsonPayload":` + line("limited", 2) + `}`,
		`{"time":"2026-10-02T10:03:00Z","event":"store-error","error":"dial"}`,
		`{"time":"2026-10-02T10:04:00Z","event":"other"}`,
		strings.Repeat("x", 3<<20),
		line("limited", 5)[:80],
		strings.Replace(line("limited", 5), "2026", "9999", 1),
		strings.Replace(line("limited", 5), `"event"`, `"left_out":9223372036854775807,"event"`, 1),
		line("hit", 6), // without a line end
	}, "\n")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(log)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{"plain": log, "gzip": z.String()} {
		r := command(t, nil, in, "report", "--json", "-")
		var got sizing.HitReport
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatalf("%s: %v %s", name, err, r.stderr)
		}
		if got.Log.Lines != 11 || got.Log.Entries != 5 || got.Log.Foreign != 6 || got.Asked != 4 || got.Refused != 2 || got.StoreErrors != 1 || got.Clients != 1 {
			t.Errorf("%s: %+v", name, got)
		}
		text := command(t, nil, in, "report", "-")
		if strings.ContainsAny(text.stdout, "\x1b\u202e") {
			t.Errorf("%s: control characters reach the terminal:\n%s", name, text.stdout)
		}
	}
}

// TestReportObserving: nobody was told, so nobody can have reacted.
func TestReportObserving(t *testing.T) {
	t.Parallel()
	log := playHits(t, 12*time.Hour, 24*time.Hour, &guest{addr: "45.1.1.1", agent: "bot/1.0", next: every(time.Minute)})
	r := command(t, nil, log, "report", "--pseudonymise", "-")
	if r.code != 0 || !strings.Contains(r.stdout, "was never told") || !strings.Contains(r.stdout, "Nobody was refused: the policy observes") || strings.Contains(r.stdout, "45.1.1.1") {
		t.Errorf("exit %d\n%s", r.code, r.stdout)
	}
}

func TestReportRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stdin, args string
		code        int
		out         string
	}{
		{"", "report", 2, "expected"},
		{"", "report --since yesterday -", 2, "--since: want a time"},
		{"", "report /does/not/exist", 3, "no such log"},
		{"", "report -", 0, "The log is empty"},
		{"1.2.3.4 - - [x] \"GET /\"\n", "report -", 3, "access logs are for"},
	} {
		r := command(t, nil, c.stdin, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.out) {
			t.Errorf("stile %s: exit %d, want %d and %q\n%s%s", c.args, r.code, c.code, c.out, r.stdout, r.stderr)
		}
	}
}
