package crawlers

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		format  Format
		body    string
		want    string
		created string
	}{
		{"google", GoogleJSON, `{"creationTime":"2026-05-05T14:46:06.000000","prefixes":[{"ipv6Prefix":"2001:4860:4801:10::/64"},{"ipv4Prefix":"66.249.64.0/27"}]}`,
			"66.249.64.0/27 2001:4860:4801:10::/64", "2026-05-05T14:46:06Z"},
		{"google, more members, bare addresses, duplicates, host bits", GoogleJSON,
			`{"syncToken":"1","prefixes":[{"ipv4Prefix":"20.1.2.3","scope":"x"},{"ipv4Prefix":"20.1.2.3/32"},{"ipv4Prefix":"8.8.8.8/24"}]}`, "8.8.8.0/24 20.1.2.3/32", ""},
		{"google, zoned time", GoogleJSON, `{"creationTime":"2026-05-05T14:46:06+02:00","prefixes":[{"ipv4Prefix":"8.8.8.8"}]}`, "8.8.8.8/32", "2026-05-05T12:46:06Z"},
		{"google, unreadable time", GoogleJSON, `{"creationTime":"last week","prefixes":[{"ipv4Prefix":"8.8.8.8"}]}`, "8.8.8.8/32", ""},
		{"text", PlainText, "\xef\xbb\xbf# probes\r\n5.161.90.230\r\n\r\n2a01:4f9::1 # Helsinki\r\n", "5.161.90.230/32 2a01:4f9::1/128", ""},
		{"csv", CSV, "# geofeed\n31.13.24.0/21,IE,,Dublin,\n\"31.13.64.0/18\",US\n2a03:2880::/32\n", "31.13.24.0/21 31.13.64.0/18 2a03:2880::/32", ""},
		{"nested ranges count once", CSV, "31.0.0.0/10\n31.13.64.0/18\n31.13.64.0/19\n", "31.0.0.0/10 31.13.64.0/18 31.13.64.0/19", ""},
	} {
		prefixes, created, err := ParseList(c.format, []byte(c.body), 0)
		var got []string
		for _, p := range prefixes {
			got = append(got, p.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v; want %s", c.name, got, err, c.want)
		}
		if c.created == "" && !created.IsZero() || c.created != "" && created.Format("2006-01-02T15:04:05Z") != c.created {
			t.Errorf("%s: created %v, want %q", c.name, created, c.created)
		}
	}
}

func TestParseListRefuses(t *testing.T) {
	t.Parallel()
	google := func(p string) string { return `{"prefixes":[{"ipv4Prefix":"66.249.64.0/27"},` + p + `]}` }
	for _, c := range []struct {
		name   string
		format Format
		body   string
		why    string
	}{
		{"empty", PlainText, "", "empty"},
		{"only comments", PlainText, "# moved\n", "no prefixes"},
		{"empty JSON list", GoogleJSON, `{"prefixes":[]}`, "no prefixes"},
		{"JSON of another shape", GoogleJSON, `{"prefixes":["8.8.8.8"]}`, "shape"},
		{"JSON cut short", GoogleJSON, `{"prefixes":[{"ipv4Prefix":"8.8.8.`, "shape"},
		{"HTML", PlainText, "\n <!doctype html><p>Moved", "HTML"},
		{"HTML for JSON", GoogleJSON, "<html>", "HTML"},
		{"HTML for CSV", CSV, "<html>", "HTML"},
		{"everything", GoogleJSON, google(`{"ipv4Prefix":"0.0.0.0/0"}`), "too wide"},
		{"everything of IPv6", GoogleJSON, google(`{"ipv6Prefix":"::/0"}`), "too wide"},
		{"half of everything", PlainText, "128.0.0.0/1", "too wide"},
		{"a /7", PlainText, "8.0.0.0/7", "too wide"},
		{"a /8", PlainText, "8.0.0.0/8", "covers"},
		{"an IPv6 /15", PlainText, "2400::/15", "too wide"},
		{"an IPv6 /16", PlainText, "2400::/16", "covers"},
		{"the internet in /12s", PlainText, "8.0.0.0/12\n9.0.0.0/12\n11.0.0.0/12\n12.0.0.0/12\n13.0.0.0/12", "covers"},
		{"private", PlainText, "66.249.64.0/27\n10.1.2.3", "reserved"},
		{"carrier NAT", PlainText, "100.64.0.0/24", "reserved"},
		{"loopback", PlainText, "::1", "reserved"},
		{"around private space", PlainText, "172.0.0.0/9", "reserved"},
		{"multicast", PlainText, "224.0.0.1", "reserved"},
		{"documentation", PlainText, "2001:db8::/48", "reserved"},
		{"mapped", PlainText, "::ffff:66.249.64.0/120", "no prefix"},
		{"zoned", PlainText, "2a03::1%eth0", "no prefix"},
		{"a name", PlainText, "66.249.64.0/27\nexample.com", "line 2"},
		{"two on a line", PlainText, "66.249.64.0/27 66.249.64.32/27", "no prefix"},
		{"empty entry", GoogleJSON, google(`{}`), "entry 1"},
		{"two in one entry", GoogleJSON, google(`{"ipv4Prefix":"8.8.8.8","ipv6Prefix":"2a03::/64"}`), "two prefixes"},
		{"wrong family", GoogleJSON, google(`{"ipv4Prefix":"2a03::/64"}`), "family"},
		{"csv with a heading", CSV, "prefix,country\n31.13.24.0/21,IE\n", "line 1"},
		{"csv with a bare quote", CSV, "31.13.24.0/21,\"IE\n", "CSV"},
		{"unknown format", "yaml", "8.8.8.8", "format"},
		{"too many", PlainText, strings.Repeat("8.8.8.8\n", DefaultMaxPrefixes+1), "more than"},
		{"too many in JSON", GoogleJSON, google(strings.Repeat(`{"ipv4Prefix":"8.8.8.8"},`, DefaultMaxPrefixes) + `{"ipv4Prefix":"8.8.8.8"}`), "more than"},
		{"too long", PlainText, strings.Repeat("#", MaxListBytes+1), "bytes"},
	} {
		prefixes, _, err := ParseList(c.format, []byte(c.body), 0)
		if !errors.Is(err, ErrList) || !strings.Contains(fmt.Sprint(err), c.why) || prefixes != nil {
			t.Errorf("%s: %d prefixes, %v; want a refusal that says %q", c.name, len(prefixes), err, c.why)
		}
	}
}

// FuzzParseList: whatever comes in, what comes out is sorted, masked, of public
// space, and survives being written and read.
func FuzzParseList(f *testing.F) {
	for _, format := range []Format{GoogleJSON, PlainText, CSV} {
		for _, b := range []string{
			`{"creationTime":"2026-05-05T14:46:06.000000","prefixes":[{"ipv6Prefix":"2001:4860:4801:10::/64"},{"ipv4Prefix":"66.249.64.0/27"}]}`,
			"# probes\n5.161.90.230\n2a01:4f9::1/128\n", "31.13.24.0/21,IE,,Dublin,\n\"31.13.64.0/18\",US\n", "0.0.0.0/0", "<html>",
		} {
			f.Add(string(format), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, format string, b []byte) {
		prefixes, created, err := ParseList(Format(format), b, 0)
		if err != nil {
			if !errors.Is(err, ErrList) || prefixes != nil {
				t.Fatalf("error %v with %d prefixes", err, len(prefixes))
			}
			return
		}
		var sum uint64
		for i, p := range prefixes {
			if p != p.Masked() || p.Addr().Is4In6() || p.Addr().IsPrivate() || p.Addr().IsLoopback() || p.Addr().IsMulticast() {
				t.Fatalf("%v was accepted", p)
			}
			if i > 0 && comparePrefix(prefixes[i-1], p) >= 0 {
				t.Fatalf("%v before %v", prefixes[i-1], p)
			}
			if p.Addr().Is4() && (i == 0 || !prefixes[i-1].Overlaps(p)) {
				sum += 1 << (32 - p.Bits())
			}
		}
		if sum > 1<<32/8 {
			t.Fatalf("%d addresses accepted", sum)
		}
		s := Snapshot{"x": {Prefixes: prefixes, Created: created, Source: "fuzz"}}
		var w strings.Builder
		if err := s.Encode(&w, day); err != nil {
			t.Fatal(err)
		}
		back, err := ReadSnapshot([]byte(w.String()))
		if err != nil || len(back["x"].Prefixes) != len(prefixes) {
			t.Fatalf("written and read: %v, %d of %d", err, len(back["x"].Prefixes), len(prefixes))
		}
	})
}

// corpus returns the published lists in the directory that STILE_RANGES names,
// by file, or nothing.
func corpus(tb testing.TB) map[string][]netip.Prefix {
	tb.Helper()
	dir := os.Getenv("STILE_RANGES")
	files, _ := filepath.Glob(filepath.Join(dir, "crawler-ranges", "*.txt"))
	if dir == "" || len(files) == 0 {
		return nil
	}
	out := map[string][]netip.Prefix{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		p, _, err := ParseList(PlainText, b, 0)
		if err != nil {
			tb.Fatalf("%s: %v", filepath.Base(name), err)
		}
		out[filepath.Base(name)] = p
	}
	return out
}

// TestRealListsArePlausible: the bounds refuse no list that is published.
func TestRealListsArePlausible(t *testing.T) {
	t.Parallel()
	n := 0
	for _, p := range corpus(t) {
		n += len(p)
	}
	t.Logf("%d prefixes of real lists accepted (0: STILE_RANGES is not set)", n)
}

// FuzzReadSnapshot: what is read can be written and read again, unchanged.
func FuzzReadSnapshot(f *testing.F) {
	f.Add(shipped)
	f.Add([]byte("stile-crawler-ranges 1\nlist a\nsource x\ncreated 2026-05-05T00:00:00Z\nfetched 2026-05-05T00:00:00Z\netag \"e\"\npartial\n8.8.8.0/24\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSnapshot(b)
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		var first, second strings.Builder
		if err := s.Encode(&first, day); err != nil {
			t.Fatal(err)
		}
		back, err := ReadSnapshot([]byte(first.String()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, first.String())
		}
		if err := back.Encode(&second, day); err != nil || first.String() != second.String() {
			t.Fatalf("%v: wrote\n%s\nthen\n%s", err, first.String(), second.String())
		}
	})
}
