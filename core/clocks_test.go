package core

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// TestEdgesOfTheDay: a page at 23:59 and one at 00:01 are on two days, in the
// day's own zone.
func TestEdgesOfTheDay(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "Asia/Kolkata", "America/Havana", "America/Santiago", "Australia/Lord_Howe"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		b := dayBucket(1)
		b.Zone = loc
		for _, date := range []string{"2026-10-06", "2026-03-08", "2026-11-01", "2026-04-05", "2026-09-06", "2026-10-04"} {
			r := newRig(t, Policy{Buckets: []Bucket{hourBucket(100), b}}, Options{})
			midnight, err := time.ParseInLocation("2006-01-02", date, loc)
			if err != nil {
				t.Fatal(err)
			}
			for midnight.Format("2006-01-02") < date { // where 00:00 does not exist
				midnight = midnight.Add(time.Minute)
			}
			before, after := midnight.Add(-time.Minute), midnight.Add(time.Minute)
			if d := r.hit("203.0.113.9", before); d.Outcome != Admit {
				t.Fatalf("%s %s before: %+v", zone, date, d)
			}
			refused := r.hit("203.0.113.9", before.Add(time.Second))
			if refused.Outcome != Refuse || refused.RetryAfter != 59*time.Second {
				t.Fatalf("%s %s: second page of the day: %s, retry after %v", zone, date, refused.Outcome, refused.RetryAfter)
			}
			if d := r.hit("203.0.113.9", after); d.Outcome != Admit {
				t.Fatalf("%s %s after: %+v", zone, date, d)
			}
		}
	}
}

// TestClockSetBack: ten minutes back neither forgets what was counted nor
// locks anybody out for longer than it should.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, Policy{Buckets: []Bucket{hourBucket(3), dayBucket(10)}}, Options{})
	at := time.Date(2026, 10, 6, 12, 5, 0, 0, time.UTC)
	for range 3 {
		if d := r.hit("203.0.113.9", at); d.Outcome != Admit {
			t.Fatalf("%+v", d)
		}
	}
	back := at.Add(-10 * time.Minute) // 11:55: another hour, the same day
	d := r.hit("203.0.113.9", back)
	if d.Outcome != Admit || d.States[1].Count != 4 {
		t.Errorf("set back: %+v", d)
	}
	if d := r.hit("203.0.113.9", at.Add(time.Minute)); d.Outcome != Refuse {
		t.Errorf("forward again, the hour was forgotten: %+v", d)
	}
}

// TestClockJumpsADay: a refusal that was remembered before the wall clock was
// set right does not hold for a day that is over.
func TestClockJumpsADay(t *testing.T) {
	t.Parallel()
	m := newDenyMemory()
	k := addressKey("203.0.113.9")
	g := &group{}
	m.remember(k, denial{group: g}, true, 10*time.Hour, time.Minute, noon.UnixMicro())
	for _, tt := range []struct {
		what string
		mono time.Duration
		wall time.Time
		want bool
	}{
		{"a minute later", 2 * time.Minute, noon.Add(time.Minute), true},
		{"the wall clock set back ten minutes", 2 * time.Minute, noon.Add(-10 * time.Minute), true},
		{"set back, and the time has passed", 11 * time.Hour, noon.Add(-10 * time.Minute), false},
		{"the wall clock a day forward", 2 * time.Minute, noon.Add(day), false},
	} {
		if _, got := m.lookup(k, "/", tt.mono, tt.wall.UnixMicro()); got != tt.want {
			t.Errorf("%s: remembered %v", tt.what, got)
		}
	}
}

// TestClockADayAhead: what an instance whose clock is a day ahead leaves behind.
// Windows are immune; a clock cell refuses its key until that day plus the time
// of one hit, no longer, and a lift ends it. docs/algorithms.md states the bound
// and why it is not healed.
func TestClockADayAhead(t *testing.T) {
	t.Parallel()
	const victim, other = "203.0.113.9", "203.0.113.10"
	ctx := context.Background()
	for _, b := range []Bucket{
		{Name: "pace", Key: rows.Address, Algorithm: GCRA, Limit: 60, Window: time.Hour},
		{Name: "pace", Key: rows.Address, Algorithm: GCRA, Limit: 60, Window: time.Hour, Burst: 5},
		{Name: "pace", Key: rows.Address, Algorithm: TokenBucket, Limit: 60, Window: time.Hour},
	} {
		honest := newRig(t, Policy{Buckets: []Bucket{b}}, Options{})
		ahead := newRig(t, Policy{Buckets: []Bucket{b}}, Options{Store: honest.store})
		for ahead.hit(victim, noon.Add(day)).Outcome == Admit {
			continue // all that this key may have there
		}
		d := honest.hit(victim, noon)
		if most := day + b.Window/time.Duration(b.Limit); d.Outcome != Refuse || d.RetryAfter != most {
			t.Errorf("%s, burst %d: %s, retry after %v; want a refusal for %v", b.Algorithm, b.Burst, d.Outcome, d.RetryAfter, most)
		}
		if d := honest.hit(other, noon); d.Outcome != Admit {
			t.Errorf("%s, burst %d: another key is refused: %+v", b.Algorithm, b.Burst, d)
		}
		if err := honest.Lift(ctx, addressKey(victim), time.Time{}, noon); err != nil {
			t.Fatal(err)
		}
		if d := honest.hit(victim, noon); d.Outcome != Admit {
			t.Errorf("%s, burst %d: refused after a lift: %+v", b.Algorithm, b.Burst, d)
		}
	}
	windows := Policy{Buckets: []Bucket{hourBucket(3), dayBucket(3)}}
	honest := newRig(t, windows, Options{})
	ahead := newRig(t, windows, Options{Store: honest.store})
	for ahead.hit(victim, noon.Add(day)).Outcome == Admit {
		continue
	}
	if d := honest.hit(victim, noon); d.Outcome != Admit || d.States[0].Count != 1 || d.States[1].Count != 1 {
		t.Errorf("windows: %+v", d)
	}
}

// TestAClientCanReachWhatABadClockLeaves is why a clock cell far ahead is not
// taken for a bad clock's: hits that are on their way at once push the cell as
// far before the first of them is given back. Whoever let such hits pass would
// let a crowd of them pass.
func TestAClientCanReachWhatABadClockLeaves(t *testing.T) {
	t.Parallel()
	b := Bucket{Name: "pace", Key: rows.Address, Algorithm: GCRA, Limit: 60, Window: time.Hour}
	lim := b.effective(1, 1)
	s := newMapStore()
	now := noon.UnixMicro()
	const crowd = 1500
	batch := &Batch{Now: noon, Rows: []Row{{Key: addressKey("203.0.113.9"), Until: noon.Unix() + 7200, Cells: []Cell{{Floor: now, Add: lim.step}}}}}
	for range crowd {
		if err := s.Apply(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if ahead := time.Duration(batch.Rows[0].Cells[0].Value-now) * time.Microsecond; ahead <= day {
		t.Fatalf("%d hits at once reach %v ahead", crowd, ahead)
	}
}

// TestVisitorsDay: a cookie's days begin when it was issued.
func TestVisitorsDay(t *testing.T) {
	t.Parallel()
	issued := time.Date(2026, 10, 6, 17, 30, 0, 123456000, time.UTC)
	b := Bucket{Name: "day", Key: rows.Cookie, Algorithm: FixedWindow, Limit: 2, Window: day, Visitor: true}
	h := Bucket{Name: "hour", Key: rows.Cookie, Algorithm: SlidingWindowCounter, Limit: 50, Window: time.Hour}
	id := fixedIdentity{Identity{Kind: rows.Cookie, ID: "c1", Anchor: issued}}
	r := newRig(t, Policy{Buckets: []Bucket{b, h}}, Options{Identifiers: []Identifier{id}})
	for _, tt := range []struct {
		at    time.Duration
		want  Outcome
		retry time.Duration
	}{
		{0, Admit, 0},
		{7 * time.Hour, Admit, 0}, // midnight UTC is past
		{8 * time.Hour, Refuse, 16 * time.Hour},
		{day - time.Microsecond, Refuse, time.Microsecond},
		{day, Admit, 0},
		{day + 2*time.Hour, Admit, 0},
		{day + 3*time.Hour, Refuse, 21 * time.Hour},
		{-time.Hour, Refuse, day}, // an instance whose clock runs behind the one that issued it
	} {
		r.memory = newDenyMemory()
		d := r.hit("203.0.113.9", issued.Add(tt.at))
		if d.Outcome != tt.want || tt.at >= 0 && d.RetryAfter != tt.retry {
			t.Errorf("%v after its issue: %s, retry after %v; want %s, %v", tt.at, d.Outcome, d.RetryAfter, tt.want, tt.retry)
		}
	}
	if r.store.rows > 2*r.store.trips {
		t.Errorf("%d rows in %d trips: hours do not nest in the visitor's days", r.store.rows, r.store.trips)
	}
}

// TestDenyMemoryIsBounded by its own count, and keeps what is in force.
func TestDenyMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newDenyMemory()
	g := &group{}
	most := denyShards * denyPerShard
	for i := range 3 * most {
		m.remember(Key{Kind: rows.User, ID: fmt.Sprint(i)}, denial{group: g}, true, time.Hour, time.Duration(i), noon.UnixMicro())
	}
	total := 0
	for i := range m.shards {
		total += len(m.shards[i].entries)
	}
	if total > most || int(m.count.Load()) != total {
		t.Errorf("%d entries, counted as %d, at most %d", total, m.count.Load(), most)
	}
	last := Key{Kind: rows.User, ID: fmt.Sprint(3*most - 1)}
	if _, ok := m.lookup(last, "/", time.Duration(3*most), noon.UnixMicro()); !ok {
		t.Error("the newest refusal is forgotten")
	}
	m.forget(last)
	if _, ok := m.lookup(last, "/", time.Duration(3*most), noon.UnixMicro()); ok {
		t.Error("a lifted refusal is remembered")
	}
}

// TestRecords: what `policy check` and the cost model are told.
func TestRecords(t *testing.T) {
	t.Parallel()
	net := Bucket{Name: "net", Key: rows.Network, Algorithm: FixedWindow, Limit: 1, Window: day, FlushEvery: time.Minute}
	search := Bucket{Name: "search", Key: rows.Address, Algorithm: GCRA, Limit: 30, Window: time.Hour, Burst: 5, Paths: mustCompile([]string{"/search/**"})}
	got := Records(&Policy{Buckets: []Bucket{hourBucket(60), dayBucket(200), net, search}})
	var out []string
	for _, r := range got {
		out = append(out, fmt.Sprintf("%s %v %v clock=%v cells=%d epoch=%v second=%.3f coalesced=%v", r.Key, r.Buckets, r.Paths, r.Clock, r.Cells, r.Epoch, r.SecondRead, r.Coalesced))
	}
	want := []string{
		"address [search] [/search/**] clock=true cells=1 epoch=0s second=0.000 coalesced=0s",
		"address [hour day] [] clock=false cells=3 epoch=24h0m0s second=0.042 coalesced=0s",
		"network [net] [] clock=false cells=1 epoch=24h0m0s second=0.000 coalesced=1m0s",
	}
	if fmt.Sprint(out) != fmt.Sprint(want) {
		t.Errorf("records:\n%v\nwant\n%v", out, want)
	}
}
