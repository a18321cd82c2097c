package accesslog

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestAddressForms: every way in which logs write one client is that client.
func TestAddressForms(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.1":                           "192.0.2.1",
		"192.0.2.1:50111":                     "192.0.2.1",
		"::ffff:192.0.2.1":                    "192.0.2.1",
		"::ffff:c000:201":                     "192.0.2.1",
		"[::ffff:192.0.2.1]:80":               "192.0.2.1",
		"2001:db8:1:2:3:4:5:f215":             "2001:db8:1:2:3:4:5:f215",
		"2001:db8:1:2:3:4:5:f215:50718":       "2001:db8:1:2:3:4:5:f215",
		"[2001:db8::1]:443":                   "2001:db8::1",
		"[2001:db8::1]":                       "2001:db8::1",
		"2001:db8::1":                         "2001:db8::1",
		"2001:db8::f215:50718":                "2001:db8::f215", // five digits cannot be a group
		"fe80::d9e3%3":                        "fe80::d9e3",
		`"192.0.2.1"`:                         "192.0.2.1",
		"192.0.2.256":                         "",
		"192.0.2":                             "",
		"192.0.2.1.1":                         "",
		"1234567.1":                           "",
		"host.example":                        "",
		"xx.xx.xx.xx":                         "",
		"-":                                   "",
		"":                                    "",
		"[2001:db8::1":                        "",
		strings.Repeat("1:", 60):              "",
		"192.0.2.1:123456":                    "",
		"2001:db8:1:2:3:4:5:f215:50718:50718": "",
		"0192.0.2.1":                          "",
		"192..2.1":                            "",
	} {
		a, ok := parseAddr(in)
		if ok != (want != "") || ok && a.String() != want {
			t.Errorf("%q: %v %v, want %q", in, a, ok, want)
		}
	}
}

// TestClientRule: a header counts only when the rule names it, and from the right.
func TestClientRule(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:f::/48")}
	nginx := func(xff string) string {
		return `10.0.0.9 - - [05/Mar/2024:10:20:30 +0000] "GET / HTTP/1.1" 200 1 "-" "M" "` + xff + `"`
	}
	caddy := `{"ts":1709634030,"request":{"remote_ip":"10.0.0.9","client_ip":"10.0.0.8","method":"GET","uri":"/","headers":{"User-Agent":["M"],"Cf-Connecting-Ip":["192.0.2.77"],"X-Forwarded-For":["203.0.113.5:50111"]}},"status":200}`
	ngjson := `{"msec":"1709634030.1","remote_addr":"10.0.0.9","http_cf_connecting_ip":"192.0.2.78","request":"GET / HTTP/1.1","status":"200"}`
	for _, tc := range []struct {
		name, line string
		rule       ClientRule
		want       string
		short      int64
	}{
		{"no rule", nginx("6.6.6.6, 198.51.100.7"), ClientRule{}, "10.0.0.9", 0},
		{"one hop", nginx("6.6.6.6, 198.51.100.7"), ClientRule{Hops: 1}, "198.51.100.7", 0},
		{"two hops", nginx("6.6.6.6,198.51.100.7"), ClientRule{Hops: 2}, "6.6.6.6", 0},
		{"too short", nginx("198.51.100.7"), ClientRule{Hops: 2}, "10.0.0.9", 1},
		{"no list", nginx("-"), ClientRule{Hops: 1}, "10.0.0.9", 0},
		{"trusted ranges", nginx("6.6.6.6, 198.51.100.7, 10.0.0.1"), ClientRule{Trusted: trusted}, "198.51.100.7", 0},
		{"trusted ranges, longer", nginx("6.6.6.6, 198.51.100.7, [2001:db8:f::1]:80, 10.0.0.1"), ClientRule{Trusted: trusted}, "198.51.100.7", 0},
		{"only trusted", nginx("10.0.0.2, 10.0.0.1"), ClientRule{Trusted: trusted}, "10.0.0.9", 1},
		{"caddy own", caddy, ClientRule{}, "10.0.0.8", 0},
		{"caddy list with port", caddy, ClientRule{Hops: 1}, "203.0.113.5", 0},
		{"caddy header", caddy, ClientRule{Header: "CF-Connecting-IP"}, "192.0.2.77", 0},
		{"nginx JSON header", ngjson, ClientRule{Header: "CF-Connecting-IP"}, "192.0.2.78", 0},
	} {
		p := NewParser(Options{Now: now, Client: tc.rule})
		var r Record
		if k := p.Parse(tc.line, &r); k != Parsed {
			t.Errorf("%s: %v", tc.name, k)
			continue
		}
		if got := r.Client.String(); got != tc.want || p.Stats().ShortChains != tc.short {
			t.Errorf("%s: client %s, short chains %d; want %s, %d", tc.name, got, p.Stats().ShortChains, tc.want, tc.short)
		}
	}
}

// TestTimes: the same instant in every notation.
func TestTimes(t *testing.T) {
	t.Parallel()
	want := time.Date(2024, 3, 10, 8, 49, 16, 0, time.UTC)
	for _, s := range []string{
		"10/Mar/2024:16:49:16 +0800", "10/Mar/2024:08:49:16 +0000", "10/Mar/2024:00:49:16 -0800", "[10/Mar/2024:08:49:16 +0000]",
		"10/Mar/2024:08:49:16.000", "10/Mar/2024:14:19:16 +0530",
		"2024-03-10T08:49:16Z", "2024-03-10T08:49:16.000000000Z", "2024-03-10T16:49:16+08:00", "2024-03-10T16:49:16+0800",
		"2024-03-10 08:49:16", "2024-03-10T08:49:16", "2024/03/10 08:49:16", "2024-03-10T08:49:16,000Z",
		"1710060556", "1710060556.000", "1710060556000", "1710060556000000", "1710060556000000000", "1.710060556e9",
	} {
		p := NewParser(Options{})
		var r Record
		if !p.setTime(&r, s) || !r.Time.Equal(want) {
			t.Errorf("%s: %v, want %v", s, r.Time, want)
		}
	}
	for _, s := range []string{"", "-", "x", "10/Xxx/2024:16:49:16 +0800", "2024-13-10T08:49:16Z", "2024-02-30T08:49:16Z",
		"2024-03-10T25:49:16Z", "10/Mar/2024:16:61:16 +0800", "10/Mar/2024:16:49:16 +9900x", "-1710060556", "NaN", "1e300",
		"2024-03-10T08:49:16 lunch", "1710060556.x"} {
		p := NewParser(Options{})
		var r Record
		if p.setTime(&r, s) && s != "10/Mar/2024:16:49:16 +9900x" {
			t.Errorf("%q was taken for %v", s, r.Time)
		}
	}
}

// TestZones: local times follow the configured zone over its change, offsets in
// the line need none, and there is neither a gap nor a double hour.
func TestZones(t *testing.T) {
	t.Parallel()
	la, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	p := NewParser(Options{Now: now, Location: la})
	var r Record
	for line, want := range map[string]string{
		"1.2.3.4:5 [11/Mar/2012:01:59:59.000] f b/s 0/0/0/0/0 200 1 - - ---- 0/0/0/0/0 0/0 \"GET / HTTP/1.1\"": "2012-03-11T09:59:59Z",
		"1.2.3.4:5 [11/Mar/2012:03:00:00.000] f b/s 0/0/0/0/0 200 1 - - ---- 0/0/0/0/0 0/0 \"GET / HTTP/1.1\"": "2012-03-11T10:00:00Z",
		`1.2.3.4 - - [11/Mar/2012:01:59:59 -0800] "GET / HTTP/1.1" 200 1`:                                      "2012-03-11T09:59:59Z",
		`1.2.3.4 - - [11/Mar/2012:03:00:00 -0700] "GET / HTTP/1.1" 200 1`:                                      "2012-03-11T10:00:00Z",
	} {
		if k := p.Parse(line, &r); k != Parsed || r.Time.Format(time.RFC3339) != want {
			t.Errorf("%s: %v %v, want %s", line, k, r.Time, want)
		}
	}
	if p.Stats().LocalTimes != 2 {
		t.Errorf("%d local times, want 2", p.Stats().LocalTimes)
	}
}

// TestLayouts reads lines by custom formats of both notations.
func TestLayouts(t *testing.T) {
	t.Parallel()
	const want = `192.0.2.1 GET a.example /p?q=1 200 77 M "x"`
	for _, tc := range []struct{ layout, line, want string }{
		{"combined", `192.0.2.1 - - [05/Mar/2024:10:20:30 +0000] "GET /p?q=1 HTTP/1.1" 200 77 "-" "M"`, `192.0.2.1 GET - /p?q=1 200 77 M`},
		{`$time_iso8601 $host $remote_addr "$request" $status $body_bytes_sent "$http_user_agent" $request_time`,
			`2024-03-05T11:20:30+01:00 a.example 192.0.2.1 "GET /p?q=1 HTTP/1.1" 200 77 "M \"x\"" 0.125`, `192.0.2.1 GET a.example /p?q=1 200 77 M \"x\"`},
		{`log_format up escape=default '$msec|$remote_addr|$request_method|'
		   '$host|$uri|$args|$status|$bytes_sent|${http_user_agent}|$upstream_cache_status';`,
			`1709634030.123|192.0.2.1|GET|a.example|/p|q=1|200|77|M "x"|HIT`, want},
		{`LogFormat "%v %a %{%Y-%m-%dT%H:%M:%S%z}t \"%r\" %>s %O \"%{User-Agent}i\" %D" mine`,
			`a.example 192.0.2.1 2024-03-05T10:20:30+0000 "GET /p?q=1 HTTP/1.1" 200 77 "M" 5`, `192.0.2.1 GET a.example /p?q=1 200 77 M`},
		{`%{msec}t %h %m %v %U%q`, `1709634030123 192.0.2.1 GET a.example /p?q=1`, ""},
		{`%{sec}t;%h;%m;%v;%U;%q;%s;%B;%{User-agent}i`, `1709634030;192.0.2.1;GET;a.example;/p;?q=1;200;77;M "x"`, want},
	} {
		l, err := ParseLayout(tc.layout)
		if tc.want == "" {
			if !errors.Is(err, ErrLayout) {
				t.Errorf("%s: error %v", tc.layout, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.layout, err)
			continue
		}
		p := NewParser(Options{Now: now, Layout: l})
		var r Record
		if k := p.Parse(tc.line, &r); k != Parsed || brief(&r) != tc.want || r.Time.Unix() != 1709634030 {
			t.Errorf("%s: %v %s at %v\nwant %s", tc.layout, k, brief(&r), r.Time, tc.want)
		}
		if k := p.Parse(`{"msec":"1709634030.1","remote_addr":"192.0.2.9","request":"GET / HTTP/1.1","status":"200"}`, &r); k != Parsed || r.Format != FormatJSON {
			t.Errorf("%s: another shape in the same file: %v %v", tc.layout, k, r.Format)
		}
	}
	for _, bad := range []string{"", "hello", "$remote_addr $request", "%h %t", "%{%Q}t %h %r", "$time_local $", "%", "%{x", "${x"} {
		if _, err := ParseLayout(bad); !errors.Is(err, ErrLayout) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// TestSignals: what a format cannot tell is told apart from what a line left empty.
func TestSignals(t *testing.T) {
	t.Parallel()
	p := NewParser(Options{Now: now})
	var r Record
	p.Parse(`192.0.2.1 - - [05/Mar/2024:10:20:30 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, &r)
	if want := HasMethod | HasUserAgent | HasReferer | HasStatus | HasQuery; r.Has != want {
		t.Errorf("combined has %v, want %v", r.Has.Names(), want.Names())
	}
	p.Parse(`{"ts":1709634030,"request":{"remote_ip":"192.0.2.1","method":"GET","uri":"/","headers":{"Sec-Fetch-Dest":["document"],"Sec-Purpose":["prefetch;prerender"],"Accept":["text/html"]}},"status":200,"resp_headers":{}}`, &r)
	if r.SecFetchDest != "document" || r.SecPurpose != "prefetch;prerender" || r.Accept != "text/html" || r.Has&HasReferer == 0 {
		t.Errorf("caddy: %+v", r)
	}
	if got := p.Stats().Lacking & HasSecFetch; got == 0 {
		t.Error("a log in which some lines lack Sec-Fetch-Dest does not say so")
	}
}
