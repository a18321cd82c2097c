package core

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// lines is a Header of X-Forwarded-For lines.
type lines []string

func (l lines) Values(name string) []string {
	if name == "X-Forwarded-For" {
		return l
	}
	return nil
}

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestClientFromHops(t *testing.T) {
	t.Parallel()
	src := ClientSource{From: FromXFF, TrustedHops: 1}
	peer := netip.MustParseAddr("10.0.0.1")
	// A forged left part changes nothing, in one line or in two.
	want := src.Resolve(&Request{Header: lines{"203.0.113.9"}, Peer: peer}).key()
	if want != addressKey("203.0.113.9") {
		t.Fatalf("key %v", want)
	}
	for n := range 50 {
		for _, h := range []lines{
			{fmt.Sprintf("127.0.0.%d, 203.0.113.9", n)},
			{fmt.Sprintf("127.0.0.%d", n), "203.0.113.9"},
			{strings.Repeat("1.1.1.1,", n) + "203.0.113.9"},
			{"\x00<script>", fmt.Sprint(n), " , ,203.0.113.9 "},
		} {
			if got := src.Resolve(&Request{Header: h, Peer: peer}); got.key() != want || got.Problem != ClientOK {
				t.Fatalf("%q: %v", h, got)
			}
		}
	}
	second := ClientSource{From: FromXFF, TrustedHops: 2}
	if got := second.Resolve(&Request{Header: lines{"6.6.6.6, 203.0.113.9, 35.1.1.1"}, Peer: peer}); got.key() != want {
		t.Errorf("two hops: %v", got)
	}
	for _, tt := range []struct {
		peer, xff string
		problem   ClientProblem
		addr      string
	}{
		{"10.0.0.1", "203.0.113.9", ClientShortChain, "invalid IP"},
		{"198.51.100.1", "203.0.113.9", ClientShortChain, "198.51.100.1"},
		{"10.0.0.1", "", ClientMissing, "invalid IP"},
		{"10.0.0.1", "unknown, 203.0.113.9", ClientMalformed, "invalid IP"},
	} {
		h := lines{tt.xff}
		got := second.Resolve(&Request{Header: h, Peer: netip.MustParseAddr(tt.peer)})
		if got.Problem != tt.problem || got.Addr.String() != tt.addr {
			t.Errorf("%+v: %s %s", tt, got.Problem, got.Addr)
		}
	}
}

func TestClientFromRanges(t *testing.T) {
	t.Parallel()
	src := ClientSource{From: FromXFF, TrustedProxies: prefixes("10.0.0.0/8", "192.0.2.0/24")}
	for _, tt := range []struct{ peer, xff, want string }{
		{"10.0.0.1", "203.0.113.9", "203.0.113.9"},
		{"10.0.0.1", "203.0.113.9, 192.0.2.7", "203.0.113.9"},
		{"10.0.0.1", "203.0.113.9, 192.0.2.7, 10.1.1.1", "203.0.113.9"},
		{"10.0.0.1", "6.6.6.6, 198.51.100.7, 10.0.0.1", "198.51.100.7"},
		{"::ffff:10.0.0.1", "203.0.113.9, ::ffff:192.0.2.7", "203.0.113.9"},
		{"198.51.100.1", "203.0.113.9", "198.51.100.1"}, // not a proxy of ours: its own client
		{"10.0.0.1", "", "10.0.0.1"},                    // asked from inside
		{"10.0.0.1", "10.2.2.2, 10.3.3.3", "10.2.2.2"},
	} {
		got := src.Resolve(&Request{Header: lines{tt.xff}, Peer: netip.MustParseAddr(tt.peer)})
		if got.Addr.String() != tt.want || got.Problem != ClientOK {
			t.Errorf("peer %s, %q: %s (%s), want %s", tt.peer, tt.xff, got.Addr, got.Problem, tt.want)
		}
	}
}

// TestClientForms: one client is one key, however a proxy writes it.
func TestClientForms(t *testing.T) {
	t.Parallel()
	for want, forms := range map[string][]string{
		"1.2.3.4": {"1.2.3.4", "::ffff:1.2.3.4", "::ffff:0102:0304", "1.2.3.4:50111", "1.2.3.4:50112", "[::ffff:1.2.3.4]:443", `"1.2.3.4"`, " 1.2.3.4\t"},
		"2001:db8:1:2::/64": {"2001:db8:1:2::1", "[2001:db8:1:2::2]", "[2001:db8:1:2::3]:443", "2001:db8:1:2::4%eth0", "[2001:db8:1:2::4%25eth0]:1",
			`"[2001:db8:1:2::5]:80"`, "2001:db8:1:2:0:0:0:6:50718", "2001:DB8:1:2::FFFF"},
	} {
		for _, f := range forms {
			a, ok := ParseClient(f)
			c := (&ClientSource{}).client(a, ClientOK, 0)
			k := c.key()
			if !ok || k.Display() != want {
				t.Errorf("%q: %s (%v), want %s", f, k.Display(), ok, want)
			}
		}
	}
	for _, bad := range []string{"", "unknown", "_hidden", "example.org", "010.0.0.1", "1.2.3", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "1.2.3.4:", "1.2.3.4:x", "[1.2.3.4]", "[::1", "::1]", "1.2.3.4, 5.6.7.8", strings.Repeat("1", 100)} {
		if a, ok := ParseClient(bad); ok {
			t.Errorf("%q is taken for %s", bad, a)
		}
	}
}

func TestClientPrefixes(t *testing.T) {
	t.Parallel()
	key := func(bits int, s string) Key {
		c := (&ClientSource{IPv6Prefix: bits}).Resolve(&Request{Peer: netip.MustParseAddr(s)})
		return c.key()
	}
	seen := map[Key]bool{}
	for i := range 1000 {
		seen[key(0, fmt.Sprintf("2001:db8:1:2:%x::%x", i*7, i))] = true
	}
	if len(seen) != 1 {
		t.Errorf("1,000 addresses of one /64 are %d keys", len(seen))
	}
	if a, b := "2001:db8:1:2::1", "2001:db8:1:3::1"; key(64, a) == key(64, b) || key(56, a) != key(56, b) {
		t.Error("two /64 of one /56: two keys, unless ipv6_prefix is 56")
	}
}

// TestClientSaysNothingOfOthers: an address in any header that the policy does
// not name reaches nobody's key.
func TestClientSaysNothingOfOthers(t *testing.T) {
	t.Parallel()
	attacker := netip.MustParseAddr("198.51.100.66")
	victim := headerMap{}
	for _, h := range []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Forwarded", "Fastly-Client-Ip", "X-Client-Ip", "Cloudfront-Viewer-Address", "X-Appengine-User-Ip", "Fly-Client-Ip"} {
		victim[h] = "203.0.113.9"
	}
	for name, src := range map[string]ClientSource{
		"remote":           {},
		"xff, other peers": {From: FromXFF, TrustedHops: 1, Peers: prefixes("10.0.0.0/8")},
		"xff, ranges":      {From: FromXFF, TrustedProxies: prefixes("10.0.0.0/8")},
		"header, secret":   {From: FromHeader, Header: "Cf-Connecting-Ip", PeerSecretHeader: "X-Edge", PeerSecrets: []string{"s3cret"}},
	} {
		if got := src.Resolve(&Request{Header: victim, Peer: attacker}); got.Addr != attacker {
			t.Errorf("%s: the attacker is seen as %s", name, got.Addr)
		}
	}
	src := ClientSource{From: FromHeader, Header: "Cf-Connecting-Ip", PeerSecretHeader: "X-Edge", PeerSecrets: []string{"old", "s3cret"}}
	victim["X-Edge"] = "s3cret"
	if got := src.Resolve(&Request{Header: victim, Peer: attacker}); got.Addr.String() != "203.0.113.9" {
		t.Errorf("a proven peer is not believed: %s", got.Addr)
	}
	// An empty secret proves nothing.
	src.PeerSecrets = []string{""}
	delete(victim, "X-Edge")
	if got := src.Resolve(&Request{Header: victim, Peer: attacker}); got.Addr != attacker {
		t.Errorf("no secret at all is believed: %s", got.Addr)
	}
}

func TestClientCloudFront(t *testing.T) {
	t.Parallel()
	src := ClientSource{From: FromHeader, Header: "Cloudfront-Viewer-Address"}
	for in, want := range map[string]string{
		"198.51.100.10:46532": "198.51.100.10",
		"2001:db8::1:46532":   "2001:db8::1",
	} {
		got := src.Resolve(&Request{Header: headerMap{"Cloudfront-Viewer-Address": in}})
		if got.Addr.String() != want {
			t.Errorf("%s: %s, want %s", in, got.Addr, want)
		}
	}
}

// FuzzClient: whatever a chain holds, the client is a plain address, one key is
// found again from its own text, and what a client writes on the left of a
// trusted hop changes nothing.
func FuzzClient(f *testing.F) {
	f.Add("127.0.0.1, 203.0.113.9", "x", 1)
	f.Add("[2001:db8::1%eth0]:443", "", 2)
	f.Add("\"::ffff:1.2.3.4\":80,,", "1.2.3.4", 3)
	f.Add("2a02:1:2:3:4:5:f215:50718:443", ",", 0)
	f.Fuzz(func(t *testing.T, xff, forged string, hops int) {
		if a, ok := ParseClient(xff); ok {
			if a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
				t.Fatalf("%q: %v is not plain", xff, a)
			}
			if b, ok := ParseClient(a.String()); !ok || a != b {
				t.Fatalf("%v is not found again", a)
			}
		}
		src := ClientSource{From: FromXFF, TrustedHops: hops % 8}
		peer := netip.MustParseAddr("10.0.0.1")
		plain := src.Resolve(&Request{Header: lines{xff}, Peer: peer})
		if plain.Problem == ClientOK {
			left := src.Resolve(&Request{Header: lines{forged, xff}, Peer: peer})
			if left.key() != plain.key() {
				t.Fatalf("hops %d: %q before %q changes %v to %v", hops%8, forged, xff, plain.key(), left.key())
			}
		}
		ranges := ClientSource{From: FromXFF, TrustedProxies: prefixes("10.0.0.0/8", "fd00::/8")}
		c := ranges.Resolve(&Request{Header: lines{forged, xff}, Peer: peer})
		if c.Addr.IsValid() && c.Prefix.Addr().BitLen() != c.Addr.BitLen() {
			t.Fatalf("prefix %v of %v", c.Prefix, c.Addr)
		}
	})
}
