package sizing

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stilehq/stile/core"
)

// TestPseudonymise: no client address is left in any form of the output, names
// agree between report and replay, and depend on the key.
func TestPseudonymise(t *testing.T) {
	t.Parallel()
	log, truth := generate(t, planted(2))
	run := func(key string) (string, *Report) {
		m := measure(t, log, Options{})
		p := hourDay(m.Proposal.Hour, m.Proposal.Day)
		p.Networks = network(core.Network{Prefix: netip.MustParsePrefix(truth.University.Address + "/32"), Exempt: true, Reason: "u"})
		r := replay(t, log, ReplayOptions{Policy: p})
		m.Pseudonymise([]byte(key))
		r.Pseudonymise([]byte(key))
		var out bytes.Buffer
		js, err := json.Marshal([]any{m, r})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(js)
		if err := m.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		if err := r.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		if err := m.WriteHTML(&out, r); err != nil {
			t.Fatal(err)
		}
		if len(r.Limited) == 0 || r.Limited[0].Address != m.Abusers[0].Address {
			t.Errorf("the abuser has two names: %v and %v", r.Limited, m.Abusers[0].Address)
		}
		return out.String(), m
	}
	out, a := run("k1")
	for _, addr := range append([]string{truth.Abuser.Address, truth.University.Address}, truth.Fakes...) {
		if strings.Contains(out, addr) {
			t.Errorf("%s is still in the output", addr)
		}
	}
	_, b := run("k2")
	if a.Abusers[0].Address == b.Abusers[0].Address || a.Abusers[0].Address[:7] != "client-" {
		t.Errorf("names %s and %s", a.Abusers[0].Address, b.Abusers[0].Address)
	}
	p := newPseudonyms([]byte("k"))
	if got, want := p.text("at 2001:db8::/64, 10.0.0.1. 12:30 v1.2 cafe"), "at "+p.name("2001:db8::/64")+"/64, "+p.name("10.0.0.1")+". 12:30 v1.2 cafe"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
