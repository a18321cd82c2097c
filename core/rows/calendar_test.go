package rows

import (
	"archive/zip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// zones returns every zone that this Go release knows.
func zones(t testing.TB) []*time.Location {
	t.Helper()
	var names []string
	//lint:ignore SA1019 the running toolchain's own list is what is wanted
	z, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Logf("no zone list beside the toolchain, taking the known troublemakers: %v", err)
		names = []string{"America/Havana", "America/Santiago", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu", "Africa/Casablanca", "Pacific/Chatham", "Europe/Berlin", "Asia/Beirut", "America/Asuncion"}
	} else {
		defer z.Close()
		for _, f := range z.File {
			if !strings.HasSuffix(f.Name, "/") {
				names = append(names, f.Name)
			}
		}
	}
	var out []*time.Location
	for _, n := range names {
		l, err := time.LoadLocation(n)
		if err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		out = append(out, l)
	}
	return out
}

var decade = [2]time.Time{time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2034, 1, 1, 0, 0, 0, 0, time.UTC)}

// interesting returns instants around every change of offset in the decade, and
// one in each month.
func interesting(l *time.Location) []time.Time {
	var out []time.Time
	for t := decade[0]; t.Before(decade[1]); t = t.AddDate(0, 1, 0) {
		out = append(out, t)
	}
	for t := decade[0].In(l); ; {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.After(decade[1]) {
			return out
		}
		for _, h := range []int{-49, -25, -24, -2, -1, 0, 1, 2, 23, 24, 25} {
			out = append(out, end.Add(time.Duration(h)*time.Hour))
		}
		out = append(out, end.Add(-time.Microsecond), end.Add(30*time.Minute))
		t = end.Add(time.Hour)
	}
}

// TestDaysInAllZones holds local days against a naive oracle: a date begins at
// the first instant at which the zone's clocks show it.
func TestDaysInAllZones(t *testing.T) {
	t.Parallel()
	all := zones(t)
	if len(all) < 10 {
		t.Fatalf("only %d zones", len(all))
	}
	date := func(at int64, l *time.Location) int64 {
		y, m, d := time.UnixMicro(at).In(l).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	for _, l := range all {
		c := NewCalendar(24*time.Hour, l)
		for _, at := range interesting(l) {
			w := c.At(at.UnixMicro())
			if at.UnixMicro() < w.Start || at.UnixMicro() >= w.End {
				t.Fatalf("%s: %v is not within its own day %v..%v", l, at, time.UnixMicro(w.Start), time.UnixMicro(w.End))
			}
			if l == time.UTC || c.days == 0 {
				continue
			}
			if got := date(w.Start, l); got != w.N {
				t.Fatalf("%s: day %d begins on date %d", l, w.N, got)
			}
			if got := date(w.Start-1, l); got >= w.N {
				t.Fatalf("%s: day %d has begun before its start %v", l, w.N, time.UnixMicro(w.Start).In(l))
			}
			if next := c.Nth(w.N + 1); next.Start != w.End {
				t.Fatalf("%s: a gap after day %d", l, w.N)
			}
			if hours := float64(w.End-w.Start) / float64(3600*second); hours < 22 || hours > 26 {
				t.Fatalf("%s: day %d lasts %.1f hours", l, w.N, hours)
			}
		}
	}
}

func TestDaysOfOddZones(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, at, start string
		hours           float64
	}{
		// Midnight does not exist: the day begins at 01:00.
		{"America/Havana", "2026-03-08T12:00:00-04:00", "2026-03-08T01:00:00-04:00", 23},
		{"America/Santiago", "2026-09-06T12:00:00-03:00", "2026-09-06T01:00:00-03:00", 23},
		// Clocks go back at midnight: 23:00 comes twice, and the day before has 25.
		{"America/Santiago", "2026-04-04T12:00:00-03:00", "2026-04-04T00:00:00-03:00", 25},
		{"America/Havana", "2026-11-01T12:00:00-05:00", "2026-11-01T00:00:00-04:00", 25},
		// Half an hour only.
		{"Australia/Lord_Howe", "2026-04-05T12:00:00+10:30", "2026-04-05T00:00:00+11:00", 24.5},
		{"Australia/Lord_Howe", "2026-10-04T12:00:00+11:00", "2026-10-04T00:00:00+10:30", 23.5},
	} {
		l, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, tt.at)
		want, err := time.Parse(time.RFC3339, tt.start)
		if err != nil {
			t.Fatal(err)
		}
		w := NewCalendar(24*time.Hour, l).At(at.UnixMicro())
		if got := time.UnixMicro(w.Start); !got.Equal(want) {
			t.Errorf("%s %s: day begins %v, want %v", tt.zone, tt.at, got.In(l), want.In(l))
		}
		if got := float64(w.End-w.Start) / float64(3600*second); got != tt.hours {
			t.Errorf("%s %s: day lasts %v h, want %v", tt.zone, tt.at, got, tt.hours)
		}
	}
}

// TestPlaces holds the planner against what it promises: two windows never
// share a place, a window lies in the epoch in which it begins, and its row
// outlives whoever may ask for it.
func TestPlaces(t *testing.T) {
	t.Parallel()
	type key struct {
		layout int
		epoch  int64
		slot   uint16
	}
	type owner struct {
		series int
		n      int64
	}
	plans := map[string]func(l *time.Location) []Series{
		"hour+day": func(l *time.Location) []Series {
			return []Series{{Label: "hour", Window: time.Hour, History: 1}, {Label: "day", Window: 24 * time.Hour, Zone: l}}
		},
		"minute+hour+week": func(l *time.Location) []Series {
			return []Series{{Label: "m", Window: time.Minute}, {Label: "h", Window: time.Hour, History: 1}, {Label: "w", Window: 7 * 24 * time.Hour, Zone: l}}
		},
		"odd": func(l *time.Location) []Series {
			return []Series{{Label: "7h", Window: 7 * time.Hour, History: 1}, {Label: "100s", Window: 100 * time.Second}, {Label: "day", Window: 24 * time.Hour, Zone: l, History: 1}}
		},
		"log": func(*time.Location) []Series {
			return []Series{{Label: "log", Window: time.Minute, History: 60}, {Label: "day", Window: 24 * time.Hour}}
		},
	}
	all := zones(t)
	if testing.Short() {
		all = all[:20]
	}
	for name, make := range plans {
		for _, l := range all {
			series := make(l)
			layouts, members := Layouts(series, "")
			owners := map[key]owner{}
			covered := 0
			for li, lay := range layouts {
				covered += len(members[li])
				for si := range members[li] {
					for _, at := range interesting(l) {
						now := at.UnixMicro()
						w := lay.Current(si, now)
						if now < w.Start || now >= w.End {
							t.Fatalf("%s %s: %v outside of its window", name, l, at)
						}
						for back := 0; back <= min(lay.History(si), 3); back++ {
							n := w.N - int64(back)
							p := lay.Place(si, n)
							if int(p.Slot) >= MaxSlots || int(p.Slot) < lay.base[si] || int(p.Slot) >= lay.base[si]+lay.width[si] {
								t.Fatalf("%s %s: slot %d of series %d is outside %d+%d", name, l, p.Slot, si, lay.base[si], lay.width[si])
							}
							e := lay.Epoch.Nth(p.Epoch)
							if p.Window.Start < e.Start || p.Window.Start >= e.End {
								t.Fatalf("%s %s: window %d begins outside of its epoch", name, l, n)
							}
							asked := p.Window.End + int64(lay.History(si))*(p.Window.End-p.Window.Start)
							if p.Until*second < p.Window.End || p.Expiry*second < p.Window.End {
								t.Fatalf("%s %s: place goes before its window ends", name, l)
							}
							if lay.cals[si].days == 0 && (p.Until*second < asked || p.Expiry*second < asked) {
								t.Fatalf("%s %s: place of series %d goes at %d, asked for until %d", name, l, si, p.Until, asked/second)
							}
							k := key{li, p.Epoch, p.Slot}
							o := owner{si, n}
							if had, ok := owners[k]; ok && had != o {
								t.Fatalf("%s %s: windows %v and %v share %v", name, l, had, o, k)
							}
							owners[k] = o
						}
					}
				}
			}
			if covered != len(series) {
				t.Fatalf("%s: %d of %d series have a layout", name, covered, len(series))
			}
		}
	}
}

func TestLayoutShapes(t *testing.T) {
	t.Parallel()
	const d = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		series []Series
		epochs []time.Duration
		slots  []int
	}{
		{"hour and day share one row of a day", []Series{{Window: time.Hour, History: 1}, {Window: d}}, []time.Duration{d}, []int{25}},
		{"an hour alone still has a day's row", []Series{{Window: time.Hour, History: 1}}, []time.Duration{d}, []int{24}},
		{"a day's counter looks back a day: four days", []Series{{Window: d, History: 1}}, []time.Duration{4 * d}, []int{4}},
		{"minutes fit four hours", []Series{{Window: time.Minute}}, []time.Duration{4 * time.Hour}, []int{240}},
		{"minute and day do not fit one row", []Series{{Window: time.Minute}, {Window: d}}, []time.Duration{d, 4 * time.Hour}, []int{1, 240}},
		{"a log of an hour", []Series{{Window: time.Minute, History: 60}}, []time.Duration{4 * time.Hour}, []int{240}},
	} {
		layouts, _ := Layouts(tt.series, "")
		var epochs []time.Duration
		var slots []int
		for _, l := range layouts {
			epochs = append(epochs, l.Epoch.Length())
			slots = append(slots, l.Slots)
		}
		if !slices.Equal(epochs, tt.epochs) || !slices.Equal(slots, tt.slots) {
			t.Errorf("%s: epochs %v slots %v, want %v %v", tt.name, epochs, slots, tt.epochs, tt.slots)
		}
	}
}

// TestFingerprint: another meaning of the slots is another plan, another limit
// is not (limits are not even known here).
func TestFingerprint(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]string{}
	for _, tt := range []struct {
		name   string
		salt   string
		series []Series
	}{
		{"base", "", []Series{{Label: "hour", Window: time.Hour}, {Label: "day", Window: 24 * time.Hour}}},
		{"order", "", []Series{{Label: "day", Window: 24 * time.Hour}, {Label: "hour", Window: time.Hour}}},
		{"name", "", []Series{{Label: "hours", Window: time.Hour}, {Label: "day", Window: 24 * time.Hour}}},
		{"window", "", []Series{{Label: "hour", Window: 2 * time.Hour}, {Label: "day", Window: 24 * time.Hour}}},
		{"zone", "", []Series{{Label: "hour", Window: time.Hour}, {Label: "day", Window: 24 * time.Hour, Zone: berlin}}},
		{"salt", "claims", []Series{{Label: "hour", Window: time.Hour}, {Label: "day", Window: 24 * time.Hour}}},
	} {
		layouts, _ := Layouts(tt.series, tt.salt)
		if had, ok := seen[layouts[0].Plan]; ok {
			t.Errorf("%s and %s have one fingerprint", tt.name, had)
		}
		seen[layouts[0].Plan] = tt.name
	}
}
