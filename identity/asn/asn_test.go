package asn

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
)

const table = "# a comment\n" +
	"192.0.2.0\t192.0.2.255\t64500\tZZ\tDOC-ONE\n" +
	"198.51.100.10\t198.51.100.77\t64501\tZZ\tDOC-TWO\r\n" +
	"10.0.0.0\t10.255.255.255\t0\tNone\tNot routed\n" +
	"203.0.113.0\t203.0.113.0\t4294967294\tZZ\tONE ADDRESS\n" +
	"2001:db8::\t2001:db8:0:ffff:ffff:ffff:ffff:ffff\t64502\tZZ\tDOC-SIX\n"

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := OpenFile(write(t, data))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func TestTables(t *testing.T) {
	t.Parallel()
	database := mmdbOf(map[string]any{"192.0.2.0/24": uint32(64500), "198.51.100.10/31": uint32(64501), "203.0.113.0/32": "AS4294967294", "2001:db8::/48": uint32(64502)})
	for name, f := range map[string]*File{"text": open(t, []byte(table)), "gzip": open(t, zipped([]byte(table))), "mmdb": open(t, database)} {
		for addr, want := range map[string]uint32{
			"192.0.2.0": 64500, "192.0.2.255": 64500, "192.0.1.255": 0, "192.0.3.0": 0,
			"198.51.100.9": 0, "198.51.100.10": 64501, "198.51.100.11": 64501, "198.51.100.78": 0,
			"203.0.113.0": 4294967294, "203.0.113.1": 0, "10.1.2.3": 0, "0.0.0.0": 0, "255.255.255.255": 0,
			"::ffff:192.0.2.7": 64500, "2001:db8::": 64502, "2001:db8::1%eth0": 64502, "2001:db8:0:ffff::1": 64502, "2001:db8:1::": 0, "::": 0,
		} {
			if got := f.LookupASN(nil, netip.MustParseAddr(addr)); got != want {
				t.Errorf("%s: %s is of AS%d, want %d", name, addr, got, want)
			}
		}
		if got := f.LookupASN(nil, netip.Addr{}); got != 0 {
			t.Errorf("%s: nobody is of AS%d", name, got)
		}
	}
}

func TestRefusedTables(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"empty":               nil,
		"comments only":       []byte("# nothing\n"),
		"HTML":                []byte("<!doctype html><p>not found"),
		"not routed only":     []byte("10.0.0.0\t10.255.255.255\t0\tNone\tNot routed\n"),
		"prefixes":            []byte("192.0.2.0/24\t64500\n"),
		"commas":              []byte("192.0.2.0,192.0.2.255,64500\n"),
		"the wrong way round": []byte("192.0.2.255\t192.0.2.0\t64500\n"),
		"mixed families":      []byte("192.0.2.0\t2001:db8::\t64500\n"),
		"overlapping":         []byte("192.0.2.0\t192.0.2.255\t1\n192.0.2.9\t192.0.2.10\t2\n"),
		"overlapping, six":    []byte("2001:db8::\t2001:db8::9\t1\n2001:db8::9\t2001:db8::a\t2\n"),
		"no number":           []byte("192.0.2.0\t192.0.2.255\tfoo\n"),
		"number too large":    []byte("192.0.2.0\t192.0.2.255\t4294967296\n"),
		"negative":            []byte("192.0.2.0\t192.0.2.255\t-1\n"),
		"a zone":              []byte("fe80::1%eth0\tfe80::2%eth0\t1\n"),
		"an endless line":     bytes.Repeat([]byte("1"), 1<<20),
		"half a gzip":         zipped([]byte(strings.Repeat(table, 1)))[:60],
		"binary":              {0, 1, 2, 3, 4},
		"a database of names": mmdbOf(map[string]any{"192.0.2.0/24": []byte("city")}),
		"half a database":     mmdbOf(map[string]any{"192.0.2.0/24": uint32(1)})[:100],
	} {
		if f, err := OpenFile(write(t, data)); !errors.Is(err, ErrTable) {
			t.Errorf("%s: %v, error %v, want ErrTable", name, f, err)
		}
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	if _, err := OpenFile(t.TempDir()); err == nil {
		t.Error("a folder is accepted")
	}
}

// TestReload: a good file is taken over while lookups go on, a bad one is not.
func TestReload(t *testing.T) {
	t.Parallel()
	path := write(t, []byte("192.0.2.0\t192.0.2.255\t1\n"))
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := netip.MustParseAddr("192.0.2.1")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n := f.LookupASN(nil, a); n < 1 || n > 3 {
				t.Errorf("AS%d while reloading", n)
				return
			}
		}
	})
	replace := func(data []byte, age time.Duration) (bool, error) {
		next := write(t, data)
		if err := os.Chtimes(next, time.Time{}, time.Now().Add(age)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
		return f.Reload()
	}
	if changed, err := f.Reload(); changed || err != nil {
		t.Errorf("an unchanged file: %v, %v", changed, err)
	}
	if changed, err := replace([]byte("192.0.2.0\t192.0.2.255\t2\n"), time.Hour); !changed || err != nil || f.LookupASN(nil, a) != 2 {
		t.Errorf("a new file: %v, %v, AS%d", changed, err, f.LookupASN(nil, a))
	}
	if changed, err := replace([]byte("<html>"), 2*time.Hour); changed || !errors.Is(err, ErrTable) || f.LookupASN(nil, a) != 2 {
		t.Errorf("a bad file: %v, %v, AS%d", changed, err, f.LookupASN(nil, a))
	}
	if changed, err := replace(mmdbOf(map[string]any{"192.0.2.0/24": uint32(3)}), 3*time.Hour); !changed || err != nil || f.LookupASN(nil, a) != 3 {
		t.Errorf("a database instead: %v, %v, AS%d", changed, err, f.LookupASN(nil, a))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Reload(); err == nil || f.LookupASN(nil, a) != 3 {
		t.Errorf("the file is gone: %v, AS%d", err, f.LookupASN(nil, a))
	}
	close(stop)
	wg.Wait()
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	f := open(t, []byte(table))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx, time.Hour, slog.New(slog.DiscardHandler)); close(done) }()
	cancel()
	<-done
}

func TestHeader(t *testing.T) {
	t.Parallel()
	edge := netip.MustParseAddr("203.0.113.1")
	source := &core.ClientSource{Peers: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, PeerSecretHeader: "X-Edge", PeerSecrets: []string{"a-secret-of-the-edge-0123"}}
	h, err := FromHeader("Cloudfront-Viewer-Asn", source)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		peer   netip.Addr
		header http.Header
		want   uint32
	}{
		{"a proven edge", edge, http.Header{"Cloudfront-Viewer-Asn": {"16509"}}, 16509},
		{"with AS and spaces", edge, http.Header{"Cloudfront-Viewer-Asn": {" AS16509\t"}}, 16509},
		{"by secret", netip.MustParseAddr("198.51.100.1"), http.Header{"Cloudfront-Viewer-Asn": {"16509"}, "X-Edge": {"a-secret-of-the-edge-0123"}}, 16509},
		{"anybody", netip.MustParseAddr("198.51.100.1"), http.Header{"Cloudfront-Viewer-Asn": {"16509"}}, 0},
		{"anybody with a wrong secret", netip.MustParseAddr("198.51.100.1"), http.Header{"Cloudfront-Viewer-Asn": {"16509"}, "X-Edge": {""}}, 0},
		{"absent", edge, http.Header{}, 0},
		{"twice", edge, http.Header{"Cloudfront-Viewer-Asn": {"1", "2"}}, 0},
		{"a list", edge, http.Header{"Cloudfront-Viewer-Asn": {"1, 2"}}, 0},
		{"signed", edge, http.Header{"Cloudfront-Viewer-Asn": {"+1"}}, 0},
		{"AS and a sign", edge, http.Header{"Cloudfront-Viewer-Asn": {"AS-1"}}, 0},
		{"too large", edge, http.Header{"Cloudfront-Viewer-Asn": {"4294967296"}}, 0},
		{"long", edge, http.Header{"Cloudfront-Viewer-Asn": {strings.Repeat("0", 1<<20) + "1"}}, 0},
		{"AS 0", edge, http.Header{"Cloudfront-Viewer-Asn": {"0"}}, 0},
		{"NUL", edge, http.Header{"Cloudfront-Viewer-Asn": {"1\x00"}}, 0},
	} {
		if got := h.LookupASN(&core.Request{Header: tt.header, Peer: tt.peer}, tt.peer); got != tt.want {
			t.Errorf("%s: AS%d, want %d", tt.name, got, tt.want)
		}
	}
	if got := h.LookupASN(&core.Request{Peer: edge}, edge); got != 0 {
		t.Errorf("no header at all: AS%d", got)
	}
	for name, source := range map[string]*core.ClientSource{"": source, "A": nil, "B": {}} {
		if _, err := FromHeader(name, source); err == nil {
			t.Errorf("%q over %v is accepted", name, source)
		}
	}
}

func TestHosting(t *testing.T) {
	t.Parallel()
	set := Hosting()
	if len(set) < 10 || set[24940] != "Hetzner" {
		t.Errorf("the shipped list has %d networks, AS24940 is %q", len(set), set[24940])
	}
	for _, carriesPeople := range []uint32{13335, 36183, 54113, 15169, 8075} {
		if name, ok := set[carriesPeople]; ok {
			t.Errorf("AS%d %s is in the shipped list", carriesPeople, name)
		}
	}
	for _, bad := range []string{"x", "AS1\nAS1", "4294967296", "0", "AS"} {
		if _, err := ParseSet([]byte(bad)); !errors.Is(err, ErrTable) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	own, err := ParseSet([]byte("# mine\n\n64500 one # why\nAS64501"))
	if err != nil || len(own) != 2 || own[64500] != "one" || own[64501] != "" {
		t.Errorf("%v, %v", own, err)
	}
}

// TestHostingBucket: a crawler over the addresses of one hosting company shares
// one outer bucket, and the people of another network have none.
func TestHostingBucket(t *testing.T) {
	t.Parallel()
	f := open(t, []byte("192.0.2.0\t192.0.2.255\t24940\n198.51.100.0\t198.51.100.255\t64501\n"))
	l, err := core.New(core.Policy{Claims: core.ClaimsOff, Buckets: []core.Bucket{
		{Name: "address", Key: rows.Address, Algorithm: core.FixedWindow, Limit: 5, Window: time.Hour},
		{Name: "hosting", Key: rows.ASN, Algorithm: core.FixedWindow, Limit: 50, Window: time.Hour},
	}}, core.Options{Store: memory.New(memory.Config{}), ASN: Only(f, Hosting())})
	if err != nil {
		t.Fatal(err)
	}
	for network, want := range map[string]int{"192.0.2": 50, "198.51.100": 200} {
		admitted := 0
		for i := range 200 {
			d := l.Decide(t.Context(), &core.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr(fmt.Sprintf("%s.%d", network, i/4)), Time: time.Date(2026, 10, 6, 12, 0, 0, 0, time.UTC)})
			if d.Outcome == core.Admit {
				admitted++
			}
		}
		if admitted != want {
			t.Errorf("%s.0/24: %d admitted, want %d", network, admitted, want)
		}
	}
}

func FuzzRanges(f *testing.F) {
	f.Add([]byte(table), uint32(3221225985))
	f.Add([]byte("1.1.1.1\t1.1.1.1\t1"), uint32(0))
	f.Add([]byte("::\tffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\t1\n"), uint32(1))
	f.Fuzz(func(t *testing.T, data []byte, at uint32) {
		r, err := parseRanges(bytes.NewReader(data))
		if err != nil {
			return
		}
		a := netip.AddrFrom4([4]byte{byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)})
		want := uint32(0)
		for _, x := range r.four {
			if as4(a) >= x.first && as4(a) <= x.last {
				want = x.asn
			}
		}
		if got := r.lookup(a); got != want {
			t.Fatalf("%v is of AS%d, want %d", a, got, want)
		}
		r.lookup(netip.AddrFrom16([16]byte{0: byte(at), 15: byte(at >> 8)}))
	})
}

// internet is a table as large as the real one: 500,000 ranges of IPv4, 150,000
// of IPv6.
func internet() []byte {
	var b bytes.Buffer
	for i := range uint32(500_000) {
		first := i * 8000
		a := func(n uint32) netip.Addr {
			return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		}
		fmt.Fprintf(&b, "%v\t%v\t%d\tZZ\tNAME\n", a(first), a(first+7000), i%80_000+1)
	}
	for i := range 150_000 {
		fmt.Fprintf(&b, "2a%02x:%x::\t2a%02x:%x:ffff:ffff:ffff:ffff:ffff:ffff\t%d\tZZ\tNAME\n", i>>16, i&0xffff, i>>16, i&0xffff, i%80_000+1)
	}
	return b.Bytes()
}

func BenchmarkLookup(b *testing.B) {
	f := open(b, zipped(internet()))
	for name, a := range map[string]string{"IPv4": "203.0.113.7", "IPv6": "2a01:1234::1"} {
		b.Run(name, func(b *testing.B) {
			a := netip.MustParseAddr(a)
			b.ReportAllocs()
			for b.Loop() {
				f.LookupASN(nil, a)
			}
		})
	}
}

func BenchmarkMMDB(b *testing.B) {
	f := open(b, mmdbOf(map[string]any{"203.0.113.0/24": uint32(64500)}))
	a := netip.MustParseAddr("203.0.113.7")
	b.ReportAllocs()
	for b.Loop() {
		if f.LookupASN(nil, a) == 0 {
			b.Fatal("unknown")
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	path := write(b, zipped(internet()))
	b.ReportAllocs()
	for b.Loop() {
		f, err := OpenFile(path)
		if err != nil {
			b.Fatal(err)
		}
		t := f.table.Load().ranges
		b.ReportMetric(float64(len(t.four)*12+len(t.six)*36)/1e6, "MB-held")
	}
}
