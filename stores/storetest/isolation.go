package storetest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// isolationCases: two rows that differ in anything never meet.
var isolationCases = []testCase{
	{"isolation/kinds", func(e *env) {
		var list []core.Row
		for k := rows.Address; k <= rows.Global; k++ {
			list = append(list, e.keyed(core.Key{Kind: k, ID: e.prefix + "same"}, count(0)))
		}
		e.independent(list)
	}},
	{"isolation/plans", func(e *env) {
		var list []core.Row
		for _, plan := range []uint32{0, 1, 0x10, 0x100, 0xffffffff, e.plan} {
			r := e.row("plan", count(0))
			r.Plan = plan
			list = append(list, r)
		}
		e.independent(list)
	}},
	{"isolation/epochs", func(e *env) {
		var list []core.Row
		for _, epoch := range []int64{0, 1, 11, -1, 20605, 20606, 206051, 1 << 40} {
			r := e.row("epoch", count(0))
			r.Epoch = epoch
			list = append(list, r)
		}
		e.independent(list)
	}},
	{"isolation/parts that read alike when joined", func(e *env) {
		row := func(id string, plan uint32, epoch int64) core.Row {
			r := e.row(id, count(0))
			r.Plan, r.Epoch = plan, epoch
			return r
		}
		e.independent([]core.Row{
			row("a", 0x1, 11), row("a", 0x11, 1), row("a1", 0x1, 1), row("a", 0x111, 1),
			row("a:00000001", 1, 1), row("a", 1, 1), row("a:1", 1, 1), row("a:1:1", 1, 1),
			row("b", 1, -1), row("b-", 1, 1), row("b", 11, 1), row("b1", 1, 1),
		})
	}},
	{"isolation/addresses", func(e *env) {
		net := func(kind core.Key, s string) core.Row {
			kind.Net = netip.MustParsePrefix(s)
			return e.keyed(kind, count(0))
		}
		address, network := core.Key{Kind: rows.Address}, core.Key{Kind: rows.Network}
		e.independent([]core.Row{
			e.keyed(ipv4(203, 0, 113, 9, 32), count(0)),
			e.keyed(ipv4(203, 0, 113, 90, 32), count(0)),
			e.keyed(ipv4(20, 30, 113, 9, 32), count(0)),
			net(network, "203.0.113.0/24"),
			net(network, "203.0.113.0/25"),
			net(network, "203.0.0.0/16"),
			net(address, "2001:db8::/64"),
			net(address, "2001:db8::/56"),
			net(address, "2001:db8::/128"),
			net(address, "2001:db8:0:1::/64"),
			net(network, "2001:db8::/48"),
			net(address, "::/64"),
			net(address, "0.0.0.0/32"),
			e.keyed(core.Key{Kind: rows.Address, ID: "unidentified"}, count(0)),
			e.keyed(core.Key{Kind: rows.Address}, count(0)),
		})
	}},
	{"isolation/hostile ids", func(e *env) {
		long := strings.Repeat("x", 8<<10)
		var list []core.Row
		for _, id := range []string{
			"a", "A", "a ", " a", "a\x00", "a\x00b", "\x00", "a\n", "a\r\n", "a\r\nSET x 1\r\n", "a\t",
			"a:b", "a:", ":a", "a%3Ab", "a%3ab", "a~b", "a%7Eb", "%~", "a%", "a%00",
			"a/b", "/", "..", ".", "../a", "__a__", "a//b", "a\\b", `a"b`, "a'b", "a`b", "a$b", "{a}", "{a}b", "a*", "a?", "a[0]",
			"a:9f3a01c2:20605", "a&b=c", "a,b", "a=b", "a|b", "a;b",
			"\xff", "\xfe", "\ufffd", "a\xff", "a\xc3", "\u00e9", "e\u0301", "\u202e", "\U0001F600",
			long, long + "y", long[:len(long)-1] + "y", "y" + long[1:], long[:127], long[:128], long[:129], strings.Repeat("\x00", 8<<10),
		} {
			list = append(list, e.row(id, count(0)))
		}
		list = append(list, e.keyed(core.Key{Kind: rows.Cookie, ID: ""}, count(0)))
		list = append(list, e.keyed(core.Key{Kind: rows.Cookie, ID: "\x00"}, count(0)))
		e.independent(list)
	}},
	{"isolation/slots", func(e *env) {
		cells := make([]core.Cell, 0, 16)
		for s := range uint16(16) {
			cells = append(cells, count(s*17))
		}
		n := len(cells)
		if m := e.features.MaxCells; m > 0 {
			n = min(n, m)
		}
		for i := range n {
			e.want(e.row("slots", cells[i]), 1)
		}
	}},
	{"isolation/a store opened twice", func(e *env) {
		other := e.h.Open(e.tb)
		defer other.Close()
		r := e.row("twice", count(0))
		e.want(r, 1)
		b := e.batch(e.row("twice", count(0)))
		if err := other.Apply(e.context(), b); err != nil {
			e.tb.Fatal(err)
		}
		want := int64(1)
		if e.features.Shared || e.features.RetainsRows {
			want = 2
		}
		if got := b.Rows[0].Cells[0].Value; got != want {
			e.tb.Fatalf("the second store (shared: %v) counted %d, want %d", e.features.Shared, got, want)
		}
	}},
}

// independent hits every row once, then again, and expects each to have counted
// its own hits only.
func (e *env) independent(list []core.Row) {
	e.tb.Helper()
	for round := int64(1); round <= 2; round++ {
		for i := range list {
			r := list[i]
			if got := e.do(r); got[0] != round {
				e.tb.Fatalf("row %d (%s): hit %d gave %d: it met another row", i, rowText(&r), round, got[0])
			}
		}
	}
}

func rowText(r *core.Row) string {
	id := r.Key.ID
	if len(id) > 60 {
		id = id[:60] + "..."
	}
	return fmt.Sprintf("%s %v %q plan %d epoch %d", r.Key.Kind, r.Key.Net, id, r.Plan, r.Epoch)
}
