package policy

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

func mustParse(t testing.TB, text string) *File {
	t.Helper()
	f, _, err := parse("", []byte(text), testEnv, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func fixture(t testing.TB, name string) *File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "policies", "good", name))
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, string(data))
}

func mustCore(t testing.TB, f *File) core.Policy {
	t.Helper()
	p, err := f.Core(testNow)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCore(t *testing.T) {
	t.Parallel()
	p := mustCore(t, fixture(t, "everything.yaml"))
	if p.Site != "Example.org_2" || !p.Observe || p.Scale != 2.5 || p.Claims != core.ClaimsLog || p.ClaimsFactor != 5 || p.OnError != core.FailLocal {
		t.Errorf("%+v", p)
	}
	want := core.ClientSource{
		From: core.FromHeader, Header: "X-Real-Ip", IPv6Prefix: 56,
		Peers:            []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("192.0.2.7/32")},
		PeerSecretHeader: "X-Edge-Secret", PeerSecrets: []string{testEnv("EDGE_SECRET")},
	}
	if !reflect.DeepEqual(p.Client, want) {
		t.Errorf("client %+v\nwant %+v", p.Client, want)
	}
	if !p.Count.Include.Match("/style.css") || p.Count.Exclude == nil || p.Count.Exclude.Match("/style.css") {
		t.Error("exclude: [] must exclude nothing, and not mean the default")
	}
	wantKinds := []core.Kind{rows.Address, rows.Address, rows.User, rows.APIKey, rows.Network, rows.ASN, rows.Header, rows.Global}
	for i, b := range p.Buckets {
		if b.Key != wantKinds[i] {
			t.Errorf("%s counts %s, want %s", b.Name, b.Key, wantKinds[i])
		}
	}
	if b := p.Buckets[1]; b.Zone == nil || b.Zone.String() != "Europe/Berlin" || b.Window != 7*24*time.Hour || b.Algorithm != core.FixedWindow {
		t.Errorf("%+v", b)
	}
	if b := p.Buckets[0]; b.Zone != nil || b.Paths != nil || b.Algorithm != core.SlidingWindowCounter {
		t.Errorf("%+v", b)
	}
	if b := p.Buckets[6]; b.Header != "Ja4" || b.FlushEvery != 10*time.Minute {
		t.Errorf("%+v", b)
	}
	if p.Crawlers["ai-search"] != (core.Treatment{Multiply: 3}) || !p.Crawlers["search"].Exempt || p.Crawlers["preview"].Exempt {
		t.Errorf("%+v", p.Crawlers)
	}
	d := mustCore(t, fixture(t, "design.yaml"))
	if b := d.Buckets[3]; !b.Visitor || b.Zone != nil {
		t.Errorf("%+v", b)
	}
	if b := d.Buckets[4]; !b.Paths.Match("/search/x") || b.Paths.Match("/") || b.Burst != 5 || b.Algorithm != core.GCRA {
		t.Errorf("%+v", b)
	}
}

// noStore is a store that is never asked.
type noStore struct{}

func (noStore) Apply(context.Context, *core.Batch) error { return core.ErrNotApplied }
func (noStore) Close() error                             { return nil }

// TestLimiterAccepts hands every good policy to the limiter: what this package
// lets through, core must be able to run.
func TestLimiterAccepts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/policies/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		p := mustCore(t, fixture(t, filepath.Base(file)))
		if _, err := core.New(p, core.Options{Store: noStore{}, Local: noStore{}}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestCoreRefusesHandMade(t *testing.T) {
	t.Parallel()
	for _, change := range []func(f *File){
		func(f *File) { f.Count.Include = []string{"x/y"} },
		func(f *File) { f.Count.Exclude = []string{""} },
		func(f *File) { f.Buckets[0].Zone = "Nowhere" },
		func(f *File) { f.Buckets[0].Paths = []string{"x/y"} },
	} {
		f := mustParse(t, small)
		change(f)
		if _, err := f.Core(testNow); err == nil {
			t.Errorf("%+v compiles", f)
		}
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	f := mustParse(t, small+`
exempt:
  networks:
    - {cidr: 192.0.2.0/24, reason: office, multiply: 10}
    - {cidr: 192.0.2.7, reason: monitoring}
    - {cidr: 192.0.2.9, reason: gone, until: 2026-11-30}
    - {cidr: 192.0.2.10, reason: soon, until: 2026-12-01}
    - {cidr: "2001:db8::/32", reason: lab}
`)
	p := mustCore(t, f)
	for addr, reason := range map[string]string{
		"192.0.2.1": "office", "192.0.2.7": "monitoring", "192.0.2.9": "office", "192.0.2.10": "soon", "::ffff:192.0.2.7": "monitoring",
		"2001:db8::1": "lab", "192.0.3.1": "", "2001:db9::": "",
	} {
		n, ok := p.Networks.LookupNetwork(netip.MustParseAddr(addr))
		if ok != (reason != "") || n.Reason != reason {
			t.Errorf("%s: %v %+v, want %q", addr, ok, n, reason)
		}
		if ok && n.Exempt != (n.Multiply == 0) {
			t.Errorf("%s: %+v", addr, n)
		}
	}
	if _, ok := p.Networks.LookupNetwork(netip.Addr{}); ok {
		t.Error("no address is in a network")
	}
	if later, err := f.Core(testNow.AddDate(0, 0, 1)); err != nil {
		t.Error(err)
	} else if n, _ := later.Networks.LookupNetwork(netip.MustParseAddr("192.0.2.10")); n.Reason != "office" {
		t.Errorf("the day after: %+v", n)
	}
	if p := mustCore(t, mustParse(t, small)); p.Networks != nil {
		t.Error("no networks must be a nil interface")
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	names := func(f *File) (list []string) {
		records, err := layout(f.Buckets)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			s := string(r.key) + ":"
			for _, i := range r.buckets {
				s += " " + f.Buckets[i].Name
			}
			list = append(list, s)
		}
		return list
	}
	got := names(fixture(t, "warn-operations.yaml"))
	want := []string{"address: search", "address: pace spread", "address: minute", "address: hour day", "network: network", "global: all"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestCheckStore(t *testing.T) {
	t.Parallel()
	window := mustParse(t, small)
	clock := mustParse(t, "version: 1\ncontact: mailto:ops@example.org\nbuckets: [{name: pace, algorithm: gcra, limit: 60, window: 1h}]\n")
	log := mustParse(t, "version: 1\ncontact: mailto:ops@example.org\nbuckets: [{name: log, algorithm: sliding-window-log, limit: 60, window: 1h}, {name: day, limit: 600, window: 24h}]\n")
	full := core.Features{Name: "x", Shared: true, Clocks: true, RetainsRows: true}
	cases := []struct {
		name     string
		f        *File
		features func(core.Features) core.Features
		want     string
		warnings int
	}{
		{"everything", clock, func(f core.Features) core.Features { return f }, "", 0},
		{"no clocks, no need", window, func(f core.Features) core.Features { f.Clocks = false; return f }, "", 0},
		{"no clocks", clock, func(f core.Features) core.Features { f.Clocks = false; return f },
			"buckets[0].algorithm (line 3): the x store keeps counters only and cannot hold gcra; use algorithm: sliding-window-counter, or another store", 0},
		{"cells enough", log, func(f core.Features) core.Features { f.MaxCells = 61; return f }, "", 0},
		{"cells too few", log, func(f core.Features) core.Features { f.MaxCells = 60; return f },
			"buckets[0] (line 3): its record has 61 cells per navigation, and the x store writes 60 at a time; use sliding-window-counter instead of sliding-window-log", 0},
		{"memory, hour", window, func(f core.Features) core.Features { f.Shared, f.RetainsRows = false, false; return f }, "", 1},
		{"memory, day", log, func(f core.Features) core.Features { f.Shared, f.RetainsRows = false, false; return f }, "", 2},
	}
	for _, c := range cases {
		warnings, err := CheckStore(c.f, c.features(full))
		var got []string
		for _, e := range all(err) {
			got = append(got, e.Error())
		}
		if strings.Join(got, "\n") != c.want || len(warnings) != c.warnings {
			t.Errorf("%s: %v %v", c.name, err, warnings)
		}
	}
}
