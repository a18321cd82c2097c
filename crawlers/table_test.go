package crawlers

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// published is a table's worth of prefixes shaped like the lists of 2026: many
// /27 and /28, single addresses, some wide ranges that hold narrower ones of
// other lists, and an eighth of IPv6.
func published(n int) []source {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]source, 16)
	for i := range out {
		out[i] = source{list: i, lone: -1}
		out[i].agents.set(i)
		if i%2 == 0 {
			out[i].lone = i
		}
	}
	for k := range n {
		s := &out[r.IntN(len(out))]
		var p netip.Prefix
		if k%8 == 0 {
			a := [16]byte{0x20, 0x01, 0x48, byte(r.IntN(4)), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}
			p = netip.PrefixFrom(netip.AddrFrom16(a), []int{32, 48, 64, 64, 64}[r.IntN(5)])
		} else {
			a := [4]byte{byte(20 + r.IntN(48)), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}
			p = netip.PrefixFrom(netip.AddrFrom4(a), []int{16, 20, 24, 27, 27, 28, 28, 32, 32}[r.IntN(9)])
		}
		s.prefixes = append(s.prefixes, p.Masked())
	}
	return out
}

// TestTableAgainstScan compares with a scan over every prefix.
func TestTableAgainstScan(t *testing.T) {
	t.Parallel()
	sources := published(1500)
	tab := newTable(sources)
	r := rand.New(rand.NewPCG(3, 4))
	hits := 0
	for range 4000 {
		var a netip.Addr
		if s := sources[r.IntN(len(sources))]; r.IntN(4) > 0 {
			a = s.prefixes[r.IntN(len(s.prefixes))].Addr()
		} else {
			a = netip.AddrFrom4([4]byte{byte(20 + r.IntN(48)), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())})
		}
		want := owners{lone: -1}
		bits := -1
		for _, s := range sources {
			for _, p := range s.prefixes {
				if !p.Contains(a) {
					continue
				}
				want.lists.set(s.list)
				want.agents = want.agents.or(s.agents)
				if s.lone >= 0 && (p.Bits() > bits || want.lone < 0) {
					want.lone, bits = s.lone, p.Bits()
				}
			}
		}
		got := tab.lookup(a)
		if (got == nil) != want.lists.empty() {
			t.Fatalf("%v: found %v, want %v", a, got, want)
		}
		if got != nil {
			hits++
			if *got != want {
				t.Fatalf("%v: %+v, want %+v", a, *got, want)
			}
		}
	}
	if hits < 2000 {
		t.Errorf("only %d of 4000 addresses were in the table", hits)
	}
}

func TestTableOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	sources := published(300)
	a := newTable(sources)
	for i := range sources {
		slices.Reverse(sources[i].prefixes)
	}
	b := newTable(sources)
	for _, s := range sources {
		for _, p := range s.prefixes {
			if *a.lookup(p.Addr()) != *b.lookup(p.Addr()) {
				t.Fatalf("%v differs", p)
			}
		}
	}
}

// BenchmarkLookup measures the table alone, and Verify with a browser's agent.
// With STILE_RANGES set it also runs on the published ranges of May 2026.
func BenchmarkLookup(b *testing.B) {
	tables := map[string][]source{"generated": published(4200)}
	if lists := corpus(b); lists != nil {
		var real []source
		for _, p := range lists {
			s := source{list: len(real), prefixes: p, lone: len(real)}
			s.agents.set(len(real))
			real = append(real, s)
		}
		tables["corpus"] = real
	}
	for name, sources := range tables {
		tab := newTable(sources)
		r := rand.New(rand.NewPCG(5, 6))
		var in, out []netip.Addr
		for len(in) < 4096 {
			s := sources[r.IntN(len(sources))]
			in = append(in, s.prefixes[r.IntN(len(s.prefixes))].Addr())
		}
		for len(out) < 4096 {
			if a := netip.AddrFrom4([4]byte{byte(1 + r.IntN(222)), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}); tab.lookup(a) == nil {
				out = append(out, a)
			}
		}
		for kind, addrs := range map[string][]netip.Addr{"hit": in, "miss": out} {
			b.Run(fmt.Sprintf("%s-%d/%s", name, tab.routes.Size(), kind), func(b *testing.B) {
				b.ReportAllocs()
				i, found := 0, 0
				for b.Loop() {
					if tab.lookup(addrs[i&4095]) != nil {
						found++
					}
					i++
				}
				if (found > 0) != (kind == "hit") {
					b.Fatal("wrong answers")
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	sources := published(4200)
	b.ReportAllocs()
	for b.Loop() {
		newTable(sources)
	}
}

func BenchmarkVerify(b *testing.B) {
	v := newVerifier(b, Config{})
	client, crawler := netip.MustParseAddr("45.55.1.2"), netip.MustParseAddr("66.249.66.1")
	for _, c := range []struct {
		name, ua string
		addr     netip.Addr
	}{{"browser", uaChrome, client}, {"crawler", uaGooglebot, crawler}, {"claim", uaGooglebot, client}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Verify(c.addr, c.ua, day)
			}
		})
	}
}

// BenchmarkNew is what a cold start pays.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Config{}); err != nil {
			b.Fatal(err)
		}
	}
}
