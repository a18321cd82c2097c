package hitlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

var at = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

func newLog(t testing.TB, c Config) (*Log, *bytes.Buffer) {
	t.Helper()
	var buf bytes.Buffer
	if c.Handler == nil {
		c.Handler = NewHandler(&buf, Names{})
	}
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, &buf
}

func parseAll(t testing.TB, buf *bytes.Buffer) []Entry {
	t.Helper()
	var out []Entry
	for line := range bytes.Lines(buf.Bytes()) {
		e, err := Parse(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, e)
	}
	return out
}

func record(outcome core.Outcome) Record {
	client := netip.MustParseAddr("203.0.113.9")
	return Record{
		Status: 200,
		Request: &core.Request{Method: "GET", Host: "example.org", Path: "/a b/é", RawQuery: "q=secret", Time: at, Header: http.Header{
			"User-Agent": {"Mozilla/5.0"}, "Sec-Fetch-Dest": {"document"},
		}},
		Decision: &core.Decision{
			Outcome: outcome, Reason: core.ReasonWithin, Class: core.Counted, Binding: 0, StoreTime: 1234 * time.Microsecond,
			Client: core.Client{Addr: client, Network: netip.MustParsePrefix("203.0.113.0/24")},
			Key:    core.Key{Kind: rows.Address, Net: netip.PrefixFrom(client, 32)},
			States: []core.State{{Bucket: "hour", Count: 3, Limit: 60, Remaining: 57, Reset: 90*time.Second + 1}},
		},
	}
}

// TestFields holds the line against the names that scripts rely on.
func TestFields(t *testing.T) {
	t.Parallel()
	l, buf := newLog(t, Config{Site: "s", Store: "memory"})
	r := record(core.Admit)
	r.Trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	l.Write(t.Context(), r)
	want := `{"time":"2026-11-30T12:00:00.123456Z","severity":"INFO","event":"hit","reason":"within-limit","site":"s","host":"example.org",` +
		`"ip":"203.0.113.9","key_type":"address","key":"203.0.113.9","user_agent":"Mozilla/5.0","method":"GET","path":"/a%20b/%C3%A9","sec_fetch_dest":"document",` +
		`"status":200,"buckets":[{"name":"hour","count":3,"limit":60,"remaining":57,"reset_s":91}],"store":"memory","store_ms":1.234,` +
		`"trace":"4bf92f3577b34da6a3ce929d0e0e4736"}` + "\n"
	if got := buf.String(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	if strings.Contains(buf.String(), "secret") {
		t.Error("the query is in the log")
	}
}

func TestEventsByOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Record)
		want   []Event
	}{
		{func(r *Record) { r.Decision.Outcome = core.Pass }, nil},
		{func(*Record) {}, []Event{Hit}},
		{func(r *Record) { r.Decision.Outcome = core.Refuse }, []Event{Limited}},
		{func(r *Record) { r.Decision.Outcome, r.Decision.Observe = core.Refuse, true }, []Event{WouldLimit}},
		{func(r *Record) { r.Decision.Err = errors.New("dial: refused") }, []Event{StoreError, Hit}},
		{func(r *Record) { r.Decision.Outcome, r.Decision.Err = core.Unavailable, errors.New("x") }, []Event{StoreError}},
	} {
		l, buf := newLog(t, Config{})
		r := record(core.Admit)
		c.change(&r)
		l.Write(t.Context(), r)
		var got []Event
		for _, e := range parseAll(t, buf) {
			got = append(got, e.Event)
			if (e.Severity == "ERROR") != (e.Event == StoreError) || (e.Error != "") != (e.Event == StoreError) {
				t.Errorf("%s has severity %s and error %q", e.Event, e.Severity, e.Error)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("outcome %v: %v, want %v", r.Decision.Outcome, got, c.want)
		}
	}
}

// TestHostileText: nothing that a client sends begins a line, drives a terminal
// or fills the disk.
func TestHostileText(t *testing.T) {
	t.Parallel()
	l, buf := newLog(t, Config{})
	r := record(core.Refuse)
	bad := "a\r\n{\"event\":\"hit\"}\x1b[2J\x9b\u0085\u2028\u202e\xff\x00\x7f\"\\" + strings.Repeat("é", 5000)
	r.Request.Host, r.Request.Path, r.Request.Method = bad, "/"+bad, bad
	r.Request.Header = http.Header{"User-Agent": {bad}, "Sec-Fetch-Dest": {bad}}
	r.Trace, r.Ref = bad, bad
	r.Decision.Key = core.Key{Kind: rows.User, ID: bad}
	r.Decision.Err = errors.New(bad)
	r.Decision.States[0].Bucket = bad
	l.Write(t.Context(), r)
	if n := bytes.Count(buf.Bytes(), []byte("\n")); n != 2 || buf.Len() > 12000 {
		t.Fatalf("%d lines, %d bytes", n, buf.Len())
	}
	for _, c := range buf.Bytes() {
		if c < ' ' && c != '\n' || c == 0x7f {
			t.Fatalf("byte %#x in the log", c)
		}
	}
	for _, e := range parseAll(t, buf) {
		for name, s := range map[string]string{"host": e.Host, "path": e.Path, "agent": e.UserAgent, "key": e.Key, "trace": e.Trace, "bucket": bucketName(e)} {
			if strings.ContainsFunc(s, unsafeRune) || name != "bucket" && !strings.HasSuffix(s, ellipsis) {
				t.Errorf("%s: %q", name, s)
			}
		}
		if len(e.Path) > maxPath || len(e.UserAgent) > maxAgent || len(e.Host) > maxHost || len(e.Error) > maxError {
			t.Errorf("too long: path %d, agent %d, host %d, error %d", len(e.Path), len(e.UserAgent), len(e.Host), len(e.Error))
		}
	}
}

func bucketName(e Entry) string {
	if len(e.Buckets) == 0 {
		return ""
	}
	return e.Buckets[0].Name
}

func TestIPModes(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef")
	v6 := netip.MustParseAddr("2001:db8:1:2::3")
	for _, c := range []struct {
		mode    IPMode
		change  func(*Record)
		ip, key string
	}{
		{FullIP, func(*Record) {}, "203.0.113.9", "203.0.113.9"},
		{PrefixIP, func(*Record) {}, "203.0.113.0/24", "203.0.113.0/24"},
		{FullIP, func(r *Record) {
			r.Decision.Client = core.Client{Addr: v6, Network: netip.MustParsePrefix("2001:db8:1::/48")}
			r.Decision.Key.Net = netip.MustParsePrefix("2001:db8:1:2::/64")
		}, "2001:db8:1:2::3", "2001:db8:1:2::/64"},
		{FullIP, func(r *Record) {
			r.Decision.Client, r.Decision.Key = core.Client{}, core.Key{Kind: rows.Address, ID: "unidentified"}
		}, "", "unidentified"},
		{PrefixIP, func(r *Record) { r.Decision.Key = core.Key{Kind: rows.User, ID: "u1"} }, "203.0.113.0/24", "u1"},
	} {
		l, buf := newLog(t, Config{IP: c.mode, Secret: secret})
		r := record(core.Admit)
		c.change(&r)
		l.Write(t.Context(), r)
		if e := parseAll(t, buf)[0]; e.IP != c.ip || e.Key != c.key {
			t.Errorf("mode %d: ip %q key %q, want %q %q", c.mode, e.IP, e.Key, c.ip, c.key)
		}
	}
	digest := func(secret, addr, user string) (string, string, string) {
		l, buf := newLog(t, Config{IP: HMACIP, Secret: []byte(secret)})
		r := record(core.Admit)
		r.Decision.Client.Addr = netip.MustParseAddr(addr)
		if user != "" {
			r.Decision.Key = core.Key{Kind: rows.User, ID: user}
		}
		l.Write(t.Context(), r)
		e := parseAll(t, buf)[0]
		return e.IP, e.Key, buf.String()
	}
	ip1, key1, line := digest("0123456789abcdef", "203.0.113.9", "")
	ip2, user, line2 := digest("0123456789abcdef", "203.0.113.9", "alice@example.org")
	ip3, _, _ := digest("0123456789abcdef", "203.0.113.10", "")
	ip4, _, _ := digest("another secret 16", "203.0.113.9", "")
	if ip1 != ip2 || ip1 == ip3 || ip1 == ip4 || !strings.HasPrefix(ip1, "h:") || !strings.HasPrefix(key1, "h:") || !strings.HasPrefix(user, "h:") {
		t.Errorf("digests %q %q %q %q %q %q", ip1, ip2, ip3, ip4, key1, user)
	}
	if strings.Contains(line, "203.0.113") || strings.Contains(line2, "alice") {
		t.Errorf("clear text: %s%s", line, line2)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	h := NewHandler(io.Discard, Names{})
	for _, c := range []Config{{}, {Handler: h, IP: HMACIP}, {Handler: h, IP: HMACIP, Secret: make([]byte, 15)}, {Handler: h, IP: 9}} {
		if _, err := New(c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}

// TestFloodIsThinnedOutAndAddsUp: whatever is left out is accounted for, line by
// line, over keys that share slots, over minutes, and at the end.
func TestFloodIsThinnedOutAndAddsUp(t *testing.T) {
	t.Parallel()
	l, buf := newLog(t, Config{SampleAfter: 3, SampleEvery: 10})
	const keys, repeats = 600, 20
	sent := map[string]int64{}
	now := at
	for i := range repeats {
		for k := range keys {
			if k%40 < i/2 { // keys fall silent at different times
				continue
			}
			r := record(core.Refuse)
			r.Request.Time = now
			r.Decision.Key.Net = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, byte(k >> 8), byte(k)}), 32)
			l.Write(t.Context(), r)
			sent[r.Decision.Key.Net.Addr().String()]++
		}
		now = now.Add(2 * time.Second)
	}
	l.Flush(t.Context())
	got := map[string]int64{}
	lines := 0
	for _, e := range parseAll(t, buf) {
		got[e.Key] += 1 + e.LeftOut
		lines++
	}
	if !reflect.DeepEqual(got, sent) {
		t.Error("the lines do not add up to what was refused")
	}
	l.Flush(t.Context())
	if again := bytes.Count(buf.Bytes(), []byte("\n")); again != lines {
		t.Errorf("a second Flush wrote %d lines more", again-lines)
	}
}

// TestOneKeysFlood has exact numbers: 20 lines, then one in 100.
func TestOneKeysFlood(t *testing.T) {
	t.Parallel()
	l, buf := newLog(t, Config{})
	for i := range 1020 {
		r := record(core.Refuse)
		r.Request.Time = at.Add(time.Duration(i) * time.Millisecond)
		l.Write(t.Context(), r)
	}
	es := parseAll(t, buf)
	if len(es) != 30 || es[20].LeftOut != 99 || es[19].LeftOut != 0 {
		t.Errorf("%d lines, want 30", len(es))
	}
	// The next minute writes again, and says what is still open.
	l.Write(t.Context(), record(core.Refuse))
	r := record(core.Refuse)
	r.Request.Time = at.Add(2 * time.Minute)
	l.Write(t.Context(), r)
	es = parseAll(t, buf)
	if last := es[len(es)-1]; len(es) != 31 || last.LeftOut != 1 {
		t.Errorf("%d lines, the last left out %d", len(es), last.LeftOut)
	}
	hits, buf := newLog(t, Config{})
	for range 1000 {
		hits.Write(t.Context(), record(core.Admit))
	}
	if n := len(parseAll(t, buf)); n != 1000 {
		t.Errorf("%d of 1000 hits are in the log: hits are never sampled", n)
	}
}

func TestStoreErrorsAreRateLimited(t *testing.T) {
	t.Parallel()
	l, buf := newLog(t, Config{})
	for i := range 101 {
		r := record(core.Unavailable)
		r.Decision.Err = errors.New("down")
		r.Request.Time = at.Add(time.Duration(i) * 200 * time.Millisecond)
		l.Write(t.Context(), r)
	}
	es := parseAll(t, buf)
	if len(es) != 3 || es[1].LeftOut != 49 || es[2].LeftOut != 49 {
		t.Errorf("%d lines: %+v", len(es), es)
	}
}

func TestPlatformNames(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	h := NewHandler(&buf, Names{
		Rename: map[string]string{"event": "message", "time": "timestamp", "severity": "level", "trace": "logging.googleapis.com/trace"},
		Trace:  func(id string) string { return "projects/p/traces/" + id },
	})
	l, _ := newLog(t, Config{Handler: h})
	r := record(core.Admit)
	r.Trace = "abc"
	l.Write(t.Context(), r)
	e := parseAll(t, &buf)[0]
	if e.Event != Hit || !e.Time.Equal(at) || e.Severity != "INFO" || e.Trace != "projects/p/traces/abc" {
		t.Errorf("%+v from %s", e, buf.String())
	}
	var raw map[string]any
	if err := json.Unmarshal(buf.Bytes(), &raw); err != nil || raw["message"] != "hit" || raw["event"] != nil {
		t.Errorf("%v %v", err, raw)
	}
}

func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	l, buf := newLog(t, Config{SampleAfter: 1, SampleEvery: 7})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l.Write(context.Background(), record(core.Refuse))
			}
		})
	}
	wg.Wait()
	l.Flush(t.Context())
	var total int64
	for _, e := range parseAll(t, buf) {
		total += 1 + e.LeftOut
	}
	if total != 1600 {
		t.Errorf("lines stand for %d of 1600", total)
	}
}

func BenchmarkWriteHit(b *testing.B) {
	l, _ := newLog(b, Config{Handler: NewHandler(io.Discard, Names{})})
	r := record(core.Admit)
	b.ReportAllocs()
	for b.Loop() {
		l.Write(b.Context(), r)
	}
}
