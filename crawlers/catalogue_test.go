package crawlers

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestDefaultCatalogueIsValidAndSourced(t *testing.T) {
	t.Parallel()
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	sourced := func(kind, id string, f Fact) {
		if f.Source == "" || len(f.Date) < len("2026-01") || !strings.HasPrefix(f.Date, "20") {
			t.Errorf("%s %s: unsourced or undated: %+v", kind, id, f)
		}
	}
	classes := map[Class]bool{}
	proven := map[string]bool{}
	for _, a := range c.Agents {
		sourced("agent", a.Name, a.Fact)
		classes[a.Class] = true
		if a.Operator == "" {
			t.Errorf("agent %s: no operator", a.Name)
		}
	}
	for _, l := range c.Lists {
		sourced("list", l.ID, l.Fact)
		for _, a := range l.Agents {
			proven[a] = true
		}
	}
	for _, r := range c.Reverse {
		sourced("suffix", r.Suffix, r.Fact)
		for _, a := range r.Agents {
			proven[a] = true
		}
	}
	for _, a := range c.Agents {
		if !proven[a.Name] {
			t.Errorf("agent %s can never be verified", a.Name)
		}
	}
	for _, k := range Classes() {
		if !classes[k] {
			t.Errorf("no agent is of class %s", k)
		}
	}
}

func TestCatalogueFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	c := Catalogue{
		Agents: []Agent{
			{Name: "a", Class: Search, Tokens: []string{"abot"}}, {Name: "a", Class: Search, Tokens: []string{"bbot"}},
			{Name: "c", Class: "searching", Tokens: []string{"cbot"}}, {Name: "d", Class: Search}, {Name: "e", Class: Search, Tokens: []string{"/e"}},
		},
		Lists: []List{
			{ID: "Upper", URL: "https://x.test/l", Format: CSV, Agents: []string{"a"}}, {ID: "plain", URL: "http://x.test/l", Format: CSV, Agents: []string{"a"}},
			{ID: "odd", Format: "xml", Agents: []string{"a"}}, {ID: "nobody", Format: CSV}, {ID: "who", Format: CSV, Agents: []string{"z"}},
			{ID: "less", Format: CSV, Agents: []string{"a"}, MaxPrefixes: -1},
		},
		Reverse: []Reverse{
			{Suffix: "googlebot.com", Agents: []string{"a"}}, {Suffix: ".com", Agents: []string{"a"}}, {Suffix: ".GoogleBot.com", Agents: []string{"a"}},
			{Suffix: ".bc.googleusercontent.com", Agents: []string{"a"}}, {Suffix: ".googleusercontent.com", Agents: []string{"a"}},
		},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{`"a": name`, `"c": unknown class`, `"d": no User-Agent`, `"/e"`, `"Upper"`, `"plain": URL`, `"odd": unknown format`,
		`"nobody": no agents`, `named "z"`, `"less": negative`, `"googlebot.com"`, `".com"`, `".GoogleBot.com"`, `".bc.googleusercontent.com"`, `".googleusercontent.com"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 15 {
		t.Errorf("%d faults, want 15:\n%v", n, err)
	}
	if _, err := New(Config{Catalogue: &c}); err == nil {
		t.Error("New takes a catalogue with faults")
	}
}

func TestNeed(t *testing.T) {
	t.Parallel()
	all := Default()
	c := all.Need(Search, Preview)
	if len(c.Agents) != len(all.Agents) || len(c.Lists) == 0 || len(c.Lists) >= len(all.Lists) || len(c.Reverse) == 0 || len(c.Reverse) >= len(all.Reverse) {
		t.Fatalf("%d agents, %d lists, %d patterns", len(c.Agents), len(c.Lists), len(c.Reverse))
	}
	v := newVerifier(t, Config{Catalogue: &c, NoShipped: true})
	for _, l := range v.List() {
		if !slices.Contains(l.Classes, Search) && !slices.Contains(l.Classes, Preview) {
			t.Errorf("list %s of %v is kept", l.ID, l.Classes)
		}
	}
	addr := netip.MustParseAddr("45.55.1.2")
	if m := v.Verify(addr, "CCBot/2.0", day); !m.Claimed || v.queue.length.Load() != 0 {
		t.Errorf("a trainer's claim: %+v, %d queued; want a claim and no DNS", m, v.queue.length.Load())
	}
	if v.Verify(addr, uaGooglebot, day); v.queue.length.Load() != 1 {
		t.Error("a search engine's claim is not queued")
	}
	if none := all.Need(); len(none.Lists)+len(none.Reverse) != 0 {
		t.Error("no class still needs something")
	}
}
