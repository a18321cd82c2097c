package hitlog

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

func TestRoundTripKeepsEveryField(t *testing.T) {
	t.Parallel()
	e := Entry{
		Time: at, Severity: "WARNING", Event: Limited, Reason: "over-limit", Ref: "ABCDEFGH2345", Site: "s", Host: "example.org:8080", IP: "2001:db8::1",
		KeyType: "address", Key: "2001:db8::/64", UserAgent: `a "b" \c <d>`, Method: "GET", Path: "/x%0A", SecFetchDest: "document", Status: 429,
		Buckets: Buckets{{Name: `ho"ur`, Count: 61, Limit: 60, Remaining: 0, ResetS: 12}, {Name: "day"}},
		Store:   "redis", StoreMS: 0.25, Trace: "t", LeftOut: 7, Error: "e",
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("field %s is not in this test", v.Type().Field(i).Name)
		}
	}
	l, buf := newLog(t, Config{})
	l.emit(t.Context(), e)
	got, err := Parse(buf.Bytes())
	if err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, e)
	}
}

func TestParseForeign(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "\n", "{", "[]", "null", `{"event":"hit"}`, `{"time":"2026-11-30T12:00:00Z"}`, `{"time":"2026-11-30T12:00:00Z","event":"start"}`,
		`{"time":1,"event":"hit"}`, `{"time":"2026-11-30T12:00:00Z","event":"hit","status":"200"}`, `203.0.113.9 - - [30/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`{"jsonPayload":{"event":"hit"}}`, `{"jsonPayload":"hit","timestamp":"2026-11-30T12:00:00Z"}`,
	} {
		if e, err := Parse([]byte(line)); !errors.Is(err, ErrForeign) {
			t.Errorf("%q: %v %+v", line, err, e)
		}
	}
}

func TestParseCloudLoggingExport(t *testing.T) {
	t.Parallel()
	e, err := Parse([]byte(`{"insertId":"x","jsonPayload":{"message":"limited","ip":"203.0.113.9","left_out":-3},"severity":"WARNING","timestamp":"2026-11-30T13:00:00+01:00","trace":"projects/p/traces/t"}`))
	if err != nil || e.Event != Limited || e.IP != "203.0.113.9" || !e.Time.Equal(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)) || e.Severity != "WARNING" || e.Trace != "projects/p/traces/t" || e.LeftOut != 0 {
		t.Errorf("%v %+v", err, e)
	}
}

// FuzzParse: what was read can be written and read again without change, and
// what was written is one line.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-30T12:00:00.1Z","severity":"INFO","event":"hit","path":"/a","buckets":[{"name":"hour","count":1,"limit":60}],"store_ms":1.5}`))
	f.Add([]byte(`{"timestamp":"2026-11-30T12:00:00Z","message":"limited","user_agent":"\r\n\u001b\ud800","left_out":3}`))
	f.Add([]byte(`{"jsonPayload":{"event":"store-error","error":"x"},"timestamp":"0000-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			if !errors.Is(err, ErrForeign) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		e.clean()
		e.Severity = SeverityText(e.Event.level())
		l, buf := newLog(t, Config{})
		l.emit(t.Context(), e)
		if n := bytes.IndexByte(buf.Bytes(), '\n'); n != buf.Len()-1 {
			t.Fatalf("not one line: %q", buf)
		}
		got, err := Parse(buf.Bytes())
		if err != nil {
			t.Fatalf("%v: %s", err, buf)
		}
		got.clean()
		if len(e.Buckets) == 0 {
			e.Buckets = nil
		}
		if !reflect.DeepEqual(got, e) {
			t.Fatalf("got  %+v\nwant %+v\nline %s", got, e, buf)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	l, buf := newLog(b, Config{Site: "s", Store: "memory"})
	l.Write(b.Context(), record(core.Refuse))
	line := bytes.Clone(buf.Bytes())
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
