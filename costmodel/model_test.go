package costmodel

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
)

// measured are round numbers, so that bills can be reckoned by hand: steady 1
// write; first 1 more expiry where the store sets it apart; edge 1 more read;
// denied 2 writes; repeats nothing; 100 bytes out and 50 in for each operation.
func measured(store string) *Measurement {
	m := &Measurement{Store: store, File: store + ".json", Kind: "real", Date: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), States: map[string]Counts{}}
	expiries := int64(0)
	if store == "redis" || store == "upstash" {
		expiries = 10
	}
	add := func(state string, writes, reads, expiries int64) {
		n := writes + reads + expiries
		m.States[state] = Counts{Navigations: 10, Writes: writes, Reads: reads, Expiries: expiries, BytesOut: 100 * n, BytesIn: 50 * n, BytesKnown: store != "memory"}
	}
	add(first, 10, 0, expiries)
	add(steady, 10, 0, 0)
	add(edge, 10, 10, 0)
	add(denied, 20, 0, 0)
	add(repeat, 0, 0, 0)
	add("outer", 15, 0, 0)
	return m
}

func allMeasured() (list []*Measurement) {
	for _, s := range []string{"dynamodb", "firestore", "memory", "redis", "upstash"} {
		list = append(list, measured(s))
	}
	return list
}

// estimate fills in what an input leaves out, and does without break-evens, which
// take the most time.
func estimate(t *testing.T, in Input) *Report {
	t.Helper()
	in.withoutWinners = true
	return estimateAll(t, in)
}

func estimateAll(t *testing.T, in Input) *Report {
	t.Helper()
	if in.Book == nil {
		in.Book = shippedBook(t)
	}
	if in.Measurements == nil {
		in.Measurements = allMeasured()
	}
	if in.Traffic.Navigations == 0 && in.Traffic.From != "zero" {
		in.Traffic.Navigations = 1_000_000
	}
	if !in.PageCost.Known() || in.PageCost.Amount().IsZero() {
		in.PageCost = Unknown
	}
	in.Now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	r, err := Estimate(in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Report) store(t *testing.T, id string) *StoreCost {
	t.Helper()
	for i := range r.Stores {
		if r.Stores[i].ID == id {
			return &r.Stores[i]
		}
	}
	t.Fatalf("no store %s", id)
	return nil
}

// TestByHand: the same inputs by hand give the same cents.
func TestByHand(t *testing.T) {
	t.Parallel()
	million := estimate(t, Input{Traffic: Traffic{Navigations: 1_000_000}})
	ten := estimate(t, Input{Traffic: Traffic{Navigations: 10_000_000, PerClientDay: dec("2"), Denied: dec("0.1"), Repeats: dec("0.3")}})
	outer := estimate(t, Input{Traffic: Traffic{Navigations: 1_000_000, Outer: "outer"}})
	for _, c := range []struct {
		what        string
		r           *Report
		id          string
		month, free string // in cents, rounded
	}{
		// 1 M writes at 0.625, 1/24 M reads at 0.125.
		{"DynamoDB, 1 M", million, "dynamodb-on-demand", "0.63", "0.63"},
		// Writes 0.90; reads 0.0125; 0.2 M deletes at 0.10. Free: 608,333 writes a
		// month and all reads; deletes are not.
		{"Firestore, 1 M", million, "firestore-standard", "0.93", "0.37"},
		// 0.26 + 0.05/24 + 0.2 x 0.26; free 1.217 M writes.
		{"Enterprise, 1 M", million, "firestore-enterprise", "0.31", "0.05"},
		// 1 + 0.2 + 1/24 M commands at 2.00; 0.18625 GB at 0.03, of which 200 are free.
		{"Upstash, 1 M", million, "upstash-payg", "2.49", "2.48"},
		{"fixed plan, 1 M", million, "upstash-fixed", "10.00", "10.00"},
		// 730 hours at 0.0128.
		{"node, 1 M", million, "elasticache-node", "9.34", "9.34"},
		// 0.1 GB x 730 x 0.084 and 1.24 M ECPUs.
		{"serverless, 1 M", million, "elasticache-serverless", "6.13", "6.13"},
		{"Memorystore, 1 M", million, "memorystore-valkey", "22.48", "22.48"},
		// Busiest second 6 x 1 M / 2,628,000 s = 2.28: 3 write units and 1 read unit.
		{"provisioned, 1 M", million, "dynamodb-provisioned", "1.52", "0.00"},
		// 6 M admitted, 1 M denied with 2 writes each, 3 M from memory: 8 M writes,
		// 0.25 M reads.
		{"DynamoDB, 10 M", ten, "dynamodb-on-demand", "5.03", "5.03"},
		// 8 M writes 7.20, 0.25 M reads 0.075, 3 M records deleted 0.30.
		{"Firestore, 10 M", ten, "firestore-standard", "7.58", "6.95"},
		// 8 + 3 + 0.25 M commands at 2.00, 1.6875 GB at 0.03.
		{"Upstash, 10 M", ten, "upstash-payg", "22.55", "22.50"},
		// Half a write more for each navigation.
		{"DynamoDB with a coalesced network", outer, "dynamodb-on-demand", "0.94", "0.94"},
	} {
		s := c.r.store(t, c.id)
		if got := s.Month.Amount().StringFixed(2); !s.Month.Known() || got != c.month {
			t.Errorf("%s: %s, want %s: %+v", c.what, got, c.month, s.Lines)
		}
		if got := s.WithFree.Amount().StringFixed(2); got != c.free {
			t.Errorf("%s: %s with free quantities, want %s", c.what, got, c.free)
		}
	}
	// Placements, 1 M calls: REST 3.50 + 0.20 + 10 ms x 128 MB 0.0167 + 0.6 GB of log 0.30.
	for id, want := range map[string]string{"rest-authorizer": "4.02", "http-authorizer": "1.52", "function-url": "1.00", "run": "8.07", "own": "0.00"} {
		for _, p := range million.Placements {
			if p.ID == id && p.Month.Amount().StringFixed(2) != want {
				t.Errorf("%s: %s, want %s", id, p.Month, want)
			}
		}
	}
}

// TestBacked: every operation that the model bills is in a result. With doubled
// counts all operations double, without a state nothing is billed, and no other
// state is looked at.
func TestBacked(t *testing.T) {
	t.Parallel()
	traffic := Traffic{Navigations: 1_000_000, PerClientDay: dec("4"), Denied: dec("0.1"), Repeats: dec("0.1"), Outer: "outer"}
	for _, store := range []string{"redis", "upstash", "firestore", "dynamodb"} {
		m, double := measured(store), measured(store)
		for name, c := range double.States {
			c.Writes, c.Reads, c.Expiries = 2*c.Writes, 2*c.Reads, 2*c.Expiries
			double.States[name] = c
		}
		a, err := m.Quantities(traffic)
		if err != nil {
			t.Fatal(err)
		}
		b, err := double.Quantities(traffic)
		if err != nil {
			t.Fatal(err)
		}
		if twice := a.Operations().Mul(dec("2")); b.Operations().Sub(twice).Abs().GreaterThan(dec("0.001")) || a.Operations().IsZero() {
			t.Errorf("%s: %s operations of doubled counts, want %s", store, b.Operations(), twice)
		}
		for _, state := range []string{first, steady, edge, denied, repeat, "outer"} {
			m := measured(store)
			delete(m.States, state)
			if q, err := m.Quantities(traffic); !errors.Is(err, ErrUnmeasured) {
				t.Errorf("%s without %s: %+v, %v", store, state, q, err)
			}
			r := estimate(t, Input{Measurements: []*Measurement{m}, Traffic: traffic})
			for _, s := range r.Stores {
				if s.Store == store && (s.Month.Known() || len(s.Impossible) == 0) {
					t.Errorf("%s without %s costs %s", s.ID, state, s.Month)
				}
			}
		}
	}
	// Operations of nothing cost nothing: there is no count from anywhere else.
	idle := measured("dynamodb")
	for name, c := range idle.States {
		idle.States[name] = Counts{Navigations: c.Navigations, BytesKnown: true}
	}
	r := estimate(t, Input{Measurements: []*Measurement{idle}})
	if s := r.store(t, "dynamodb-on-demand"); !s.Month.Equal(Money{}) {
		t.Errorf("no operations cost %s", s.Month)
	}
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	none := estimate(t, Input{Traffic: Traffic{From: "zero"}})
	if s := none.store(t, "dynamodb-on-demand"); !s.Month.Equal(Money{}) || s.PerMillion.Known() {
		t.Errorf("0 navigations cost %s, %s a million", s.Month, s.PerMillion)
	}
	if none.Choice == nil || !none.Choice.Month.Equal(Money{}) {
		t.Errorf("0 navigations: %+v", none.Choice)
	}
	single := estimate(t, Input{Traffic: Traffic{Navigations: 1}})
	if got := single.store(t, "dynamodb-on-demand").Month; !got.Known() || !got.Amount().IsPositive() || got.String() != "< $0.0001" {
		t.Errorf("1 navigation costs %s", got)
	}
	most := estimate(t, Input{Traffic: Traffic{Navigations: MaxNavigations}})
	if got := most.store(t, "dynamodb-on-demand").Month.String(); got != "$630,208" {
		t.Errorf("10^12 navigations cost %s", got)
	}
	if _, err := Estimate(Input{Book: shippedBook(t), Traffic: Traffic{Navigations: MaxNavigations + 1}}); err == nil {
		t.Error("more than 10^12 were accepted")
	}
	for name, bad := range map[string]Traffic{
		"negative":   {Navigations: -1},
		"shares":     {Navigations: 1, Denied: dec("0.6"), Repeats: dec("0.6")},
		"share":      {Navigations: 1, Denied: dec("-0.1")},
		"per client": {Navigations: 1, PerClientDay: dec("0.5")},
	} {
		if _, err := Estimate(Input{Book: shippedBook(t), Traffic: bad}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestPlans: a plan whose cap is exceeded cannot be taken, and is not recommended.
func TestPlans(t *testing.T) {
	t.Parallel()
	// 1.2416667 commands each: 402,684 navigations fit into 500,000, 402,685 do not.
	fits := estimate(t, Input{Traffic: Traffic{Navigations: 402_684}, On: Own})
	over := estimate(t, Input{Traffic: Traffic{Navigations: 402_685}, On: Own})
	if s := fits.store(t, "upstash-free"); len(s.Impossible) > 0 || fits.Choice.ID != "upstash-free" {
		t.Errorf("%v, %+v", s.Impossible, fits.Choice)
	}
	if s := over.store(t, "upstash-free"); len(s.Impossible) == 0 || over.Choice.ID != "upstash-payg" {
		t.Errorf("%v, %+v", s.Impossible, over.Choice)
	}
	// 186.25 bytes each: 50 GB are passed beyond 268 million navigations.
	for n, want := range map[int64]string{268_000_000: "10", 269_000_000: "20", 536_000_000: "20", 537_000_000: "100"} {
		r := estimate(t, Input{Traffic: Traffic{Navigations: n}})
		if got := r.store(t, "upstash-fixed").Month.Amount().String(); got != want {
			t.Errorf("%d navigations: the plan of $%s, want $%s", n, got, want)
		}
	}
	r := estimate(t, Input{Traffic: Traffic{Navigations: 1_000_000, PeakPerSecond: dec("8100")}})
	if s := r.store(t, "upstash-fixed"); len(s.Impossible) == 0 || !strings.Contains(s.Impossible[0], "10,000 commands a second") {
		t.Errorf("a peak of 10,057 commands: %v", s.Impossible)
	}
}

// TestHottestKey: a store that is cheapest but cannot take the hottest key is not
// recommended, and the number that breaks is told.
func TestHottestKey(t *testing.T) {
	t.Parallel()
	cool := estimate(t, Input{On: GCP})
	if cool.Choice.ID != "firestore-enterprise" || !strings.Contains(cool.Choice.Reason, "hottest key is unknown") {
		t.Fatalf("%+v", cool.Choice)
	}
	key := HotKey{Scope: "global", Peak: dec("12"), Limit: 100_000, Window: 24 * time.Hour}
	hot := estimate(t, Input{On: GCP, Traffic: Traffic{Navigations: 1_000_000, Keys: []HotKey{key}}})
	if hot.Choice.ID != "upstash-payg" || !strings.Contains(hot.Choice.Reason, "Firestore, Enterprise (global: BREAKS: 12 writes a second") {
		t.Errorf("%+v", hot.Choice)
	}
	// Coalesced, 4 instances report every 10 minutes or 781 at once.
	key.FlushEvery = 10 * time.Minute
	calm := estimate(t, Input{On: GCP, Traffic: Traffic{Navigations: 1_000_000, Keys: []HotKey{key}}})
	w := calm.store(t, "firestore-enterprise").Hot[0]
	if calm.Choice.ID != "firestore-enterprise" || w.Breaks || !w.Writes.Equal(dec("0.022032")) {
		t.Errorf("%+v, %+v", calm.Choice, w)
	}
	// An address is held by its own limit: 60 an hour is one a minute.
	own := HotKey{Scope: "address", Peak: dec("20"), Limit: 60, Window: time.Hour}
	r := estimate(t, Input{On: GCP, Traffic: Traffic{Navigations: 1_000_000, Keys: []HotKey{own}}})
	if w := r.store(t, "firestore-standard").Hot[0]; w.Breaks || !w.Writes.Equal(dec("0.016667")) {
		t.Errorf("%+v", w)
	}
	// DynamoDB takes 1,000 a second to one key, not 1,001.
	for peak, breaks := range map[string]bool{"1000": false, "1000.1": true} {
		r := estimate(t, Input{Traffic: Traffic{Navigations: 1_000_000, Keys: []HotKey{{Scope: "global", Peak: dec(peak)}}}})
		if s := r.store(t, "dynamodb-on-demand"); s.Breaks() != breaks {
			t.Errorf("%s a second: %+v", peak, s.Hot)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	// A region without a price.
	r := estimate(t, Input{On: GCP, GCPRegion: "africa-south1"})
	for _, id := range []string{"firestore-standard", "firestore-enterprise", "memorystore-valkey"} {
		if s := r.store(t, id); s.Month.Known() || s.WithFree.Known() || len(s.Impossible) == 0 {
			t.Errorf("%s without a price: %s", id, s.Month)
		}
	}
	if r.Choice != nil {
		t.Errorf("recommended without prices: %+v", r.Choice)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "Recommended: none") {
		t.Errorf("%v: %s", err, text.String())
	}
	// A store without a result.
	r = estimate(t, Input{Measurements: []*Measurement{measured("redis")}})
	if s := r.store(t, "dynamodb-on-demand"); s.Month.Known() || !strings.Contains(s.Impossible[0], "no bench result") {
		t.Errorf("%+v", s)
	}
	if r.Choice == nil || r.Choice.ID != "elasticache-serverless" {
		t.Errorf("%+v", r.Choice)
	}
	// Bytes that could not be looked into.
	m := measured("upstash")
	for name, c := range m.States {
		c.BytesKnown = false
		m.States[name] = c
	}
	if s := estimate(t, Input{Measurements: []*Measurement{m}}).store(t, "upstash-payg"); s.Month.Known() {
		t.Errorf("unknown bytes cost %s", s.Month)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cost  Money
		pages string
		want  string
	}{
		{"no page cost", Unknown, "1000", "unknown"},
		{"no pages", Dollars(dec("0.001")), "-1", "unknown"},
		{"it pays", Dollars(dec("0.001")), "100000", "limit"},
		{"it does not", Dollars(dec("0.000001")), "100000", "do nothing"},
		{"no abuser", Dollars(dec("0.001")), "0", "do nothing"},
	} {
		r := estimate(t, Input{On: GCP, PageCost: c.cost, CrawlerPages: dec(c.pages)})
		if r.Verdict.Answer != c.want {
			t.Errorf("%s: %+v", c.name, r.Verdict)
		}
	}
	// 0.40/M + 300 ms of a vCPU and of a quarter GiB + 1 GiB/1000 of egress.
	in := Input{Book: shippedBook(t), On: GCP}
	if got := PageCost(in, 300, 1<<20); !got.Amount().Round(8).Equal(dec("0.00012498")) {
		t.Errorf("a page costs %s", got.Amount())
	}
	in.On = Own
	if got := PageCost(in, 300, 1<<20); got.Known() {
		t.Errorf("a page on one's own machine costs %s", got)
	}
}

// TestWinners: at each break-even the one before and the one after cost the same.
func TestWinners(t *testing.T) {
	t.Parallel()
	r := estimateAll(t, Input{On: AWS})
	if len(r.Winners) < 3 || r.Winners[0].From != LowestVolume {
		t.Fatalf("%+v", r.Winners)
	}
	for i, w := range r.Winners[1:] {
		traffic := r.in.Traffic.at(w.From)
		var before, after StoreCost
		for _, o := range offers() {
			switch o.id {
			case r.Winners[i].ID:
				before = r.in.storeCost(&o, &traffic)
			case w.ID:
				after = r.in.storeCost(&o, &traffic)
			}
		}
		if len(before.Impossible) > 0 { // its cap ended it
			continue
		}
		off := before.Month.Amount().Sub(after.Month.Amount()).Abs()
		if off.GreaterThan(after.Month.Amount().Mul(decimal.New(1, -2))) {
			t.Errorf("at %d %s costs %s and %s costs %s", w.From, before.ID, before.Month, after.ID, after.Month)
		}
	}
}

func TestHTML(t *testing.T) {
	t.Parallel()
	r := estimateAll(t, Input{Traffic: Traffic{Navigations: 1_000_000, From: "<script>alert(1)</script>", Keys: []HotKey{{Scope: "<b>", Peak: dec("5")}}}})
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"<svg", "this site", "Recommended: ", "DynamoDB, on demand", "&lt;script&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, never := range []string{"<script", "http://", "https://", "<b>", "NaN", "+Inf", "src="} {
		if strings.Contains(text, never) {
			t.Errorf("%q is in it", never)
		}
	}
	if n := strings.Count(text, "<svg"); n != strings.Count(text, "</svg>") || n != 1 {
		t.Errorf("%d plots", n)
	}
}
