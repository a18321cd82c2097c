package rows

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	n := Namer{Site: "example"}
	for _, tt := range []struct {
		row  Row
		want string
	}{
		{Row{Key: Key{Kind: Address, Net: netip.MustParsePrefix("203.0.113.9/32")}, Plan: 0x9f3a01c2, Epoch: 20605}, "example:a:203.0.113.9:9f3a01c2:20605"},
		{Row{Key: Key{Kind: Address, Net: netip.MustParsePrefix("2001:db8::/64")}, Plan: 1}, "example:a:2001~db8~~%2F64:00000001:0"},
		{Row{Key: Key{Kind: Network, Net: netip.MustParsePrefix("203.0.113.0/24")}}, "example:n:203.0.113.0%2F24:00000000:0"},
		{Row{Key: Key{Kind: Global}, Epoch: -3}, "example:g::00000000:-3"},
		{Row{Key: Key{Kind: User, ID: "a/b:c\x00\n~ü"}}, "example:u:a%2Fb~c%00%0A%7E%C3%BC:00000000:0"},
	} {
		if got := n.Name(&tt.row); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.row.Key, got, tt.want)
		}
	}
}

func TestNamesHideAndBound(t *testing.T) {
	t.Parallel()
	secrets := map[int64]string{0: "old", 100: "new"}
	n := Namer{Site: "s", Secret: func(start int64) []byte { return []byte(secrets[start]) }}
	row := Row{Key: Key{Kind: Address, Net: netip.MustParsePrefix("203.0.113.9/32")}}
	later := row
	later.Start = 100
	if strings.Contains(n.Name(&row), "203") {
		t.Errorf("the address is plain in %s", n.Name(&row))
	}
	if n.Name(&row) == n.Name(&later) {
		t.Error("an epoch that begins after a rotation keeps the old secret's name")
	}
	long := Row{Key: Key{Kind: User, ID: strings.Repeat("x", 9000)}}
	if got := (&Namer{}).Name(&long); len(got) > 100 {
		t.Errorf("a long id makes a name of %d bytes", len(got))
	}
}

// FuzzNames: two different rows never have one name, and names hold no byte
// that a store gives a meaning to.
func FuzzNames(f *testing.F) {
	f.Add("s", "a", "s", "b", uint32(1), int64(2))
	f.Add("s:a", "", "s", "a:", uint32(0), int64(0))
	f.Add("", ":~%", "", "~:%", uint32(7), int64(-1))
	f.Fuzz(func(t *testing.T, site1, id1, site2, id2 string, plan uint32, epoch int64) {
		a := Row{Key: Key{Kind: User, ID: id1}, Plan: plan, Epoch: epoch}
		b := Row{Key: Key{Kind: User, ID: id2}, Plan: plan, Epoch: epoch}
		n1, n2 := (&Namer{Site: site1}).Name(&a), (&Namer{Site: site2}).Name(&b)
		if (n1 == n2) != (site1 == site2 && id1 == id2) {
			t.Fatalf("(%q,%q) and (%q,%q): %q and %q", site1, id1, site2, id2, n1, n2)
		}
		for _, c := range []byte(n1) {
			if c <= ' ' || c >= 0x7f || c == '/' {
				t.Fatalf("%q holds %q", n1, c)
			}
		}
		if strings.HasPrefix(n1, ".") {
			t.Fatalf("%q begins with a dot", n1)
		}
	})
}
