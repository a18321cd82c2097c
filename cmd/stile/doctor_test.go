package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/wire"
)

var doctorSecret = strings.Repeat("s3", 20)

func doctor(t *testing.T, args ...string) (run, doctorResult) {
	t.Helper()
	r := command(t, map[string]string{"STILE_DOCTOR_SECRET": doctorSecret}, "", append([]string{"doctor", "--json"}, args...)...)
	var result doctorResult
	if r.stdout != "" {
		if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
			t.Fatalf("%v\n%s", err, r.stdout)
		}
	}
	if strings.Contains(r.stdout+r.stderr, doctorSecret) {
		t.Errorf("the secret is shown:\n%s%s", r.stdout, r.stderr)
	}
	return r, result
}

// of returns the results of one check.
func (r *doctorResult) of(name string) (results []string) {
	for _, k := range r.Checks {
		if k.Name == name {
			results = append(results, k.Result+": "+k.Text)
		}
	}
	return results
}

// TestDoctorOnARunningInstance finds a real process over a real Redis well, and
// then its store gone.
func TestDoctorOnARunningInstance(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	store := "redis://" + server.Addr
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	policy := write(t, "stile.yaml", shared(1, "")+"doctor: {secrets: env:STILE_DOCTOR_SECRET}\n")
	p := start(t, []string{"STILE_DOCTOR_SECRET=" + doctorSecret}, "--origin", site, "--policy", policy, "--store", store)
	for range 3 { // more than the limit: nothing is counted
		// The built-in ranges grow old with this program; their age is another test's.
		r, result := doctor(t, "--expect", "127.0.0.1", "--max-age", "87600h", "--policy", policy, "--store", store, p.url)
		if r.code != 0 || !result.OK {
			t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	}
	expect(t, "the one page", visit(t, p.url, 2), 200, 429)
	if r, result := doctor(t, "--expect", "203.0.113.9", p.url); r.code != 1 || !strings.Contains(fmt.Sprint(result.of("client")), "bad: seen as 127.0.0.1, expected 203.0.113.9") {
		t.Errorf("another address than expected: exit %d\n%s", r.code, r.stdout)
	}
	r := command(t, map[string]string{"STILE_DOCTOR_SECRET": strings.Repeat("x", 40)}, "", "doctor", p.url)
	if r.code != 1 || !strings.Contains(r.stdout, "answered 429 like any page") {
		t.Errorf("a wrong secret: exit %d\n%s", r.code, r.stdout)
	}
	server.Kill()
	if r, result := doctor(t, p.url); r.code != 1 || !strings.Contains(fmt.Sprint(result.of("store")), "bad: redis cannot be read (store.on_error: open)") {
		t.Errorf("the store is gone: exit %d\n%s", r.code, r.stdout)
	}
}

// sick serves a page to strangers and answer to the doctor, who is seen as
// he claims to be if the instance is gullible.
func sick(t *testing.T, change func(*wire.Diagnosis, *http.Request)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(gate.DoctorHeader) != doctorSecret {
			fmt.Fprint(w, "page")
			return
		}
		d := wire.Diagnosis{
			Stile: "diagnosis", Site: "shop", Mode: "enforce", Scale: 1, Warnings: []string{}, Time: time.Date(2026, 10, 5, 12, 20, 0, 0, time.UTC),
			Client:   wire.ClientDiagnosis{Addr: "127.0.0.1", Key: "address 127.0.0.1", From: "xff", Problem: "ok"},
			Store:    wire.StoreDiagnosis{Name: "firestore", Shared: true, Reachable: true, ReadMS: 4.2, Breaker: "closed", OnError: "open"},
			Crawlers: wire.CrawlersDiagnosis{Proving: true, Lists: 14, OldestS: 86400, MaxAgeS: 30 * 86400},
		}
		change(&d, r)
		_ = json.NewEncoder(w).Encode(d)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

// TestDoctorFinds one illness after the other.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*wire.Diagnosis, *http.Request)
		check  string
		want   string // "" = all is well
	}{
		"nothing":   {func(*wire.Diagnosis, *http.Request) {}, "client", ""},
		"observe":   {func(d *wire.Diagnosis, _ *http.Request) { d.Mode = "observe" }, "mode", ""},
		"off":       {func(d *wire.Diagnosis, _ *http.Request) { d.Mode = "off" }, "mode", "bad: off"},
		"lifted":    {func(d *wire.Diagnosis, _ *http.Request) { d.Open = "2026-10-05T14:00:00Z" }, "mode", "nobody be refused until 2026-10-05T14:00:00Z"},
		"no client": {func(d *wire.Diagnosis, _ *http.Request) { d.Client.Addr = "" }, "client", "bad: seen as nobody"},
		"wrong chain": {func(d *wire.Diagnosis, _ *http.Request) { d.Client.Problem = "short-chain" }, "client",
			"bad: seen as 127.0.0.1, because client.from: xff is short-chain"},
		"gullible": {func(d *wire.Diagnosis, r *http.Request) {
			if a := r.Header.Get("X-Forwarded-For"); a != "" {
				d.Client.Addr = a
			}
		}, "forgery", "unknown: believed, as this machine may be a peer"},
		"breaker":      {func(d *wire.Diagnosis, _ *http.Request) { d.Store.Breaker = "half-open" }, "store", "the breaker is half-open"},
		"no expiry":    {func(d *wire.Diagnosis, _ *http.Request) { d.Store.Finding = "expiry is off" }, "store", "bad: expiry is off"},
		"own memory":   {func(d *wire.Diagnosis, _ *http.Request) { d.Store.Shared = false }, "store", "is each instance's own"},
		"old tables":   {func(d *wire.Diagnosis, _ *http.Request) { d.Crawlers.OldestS = 31 * 86400 }, "crawlers", "bad: ranges are 31d old, more than 30d"},
		"no tables":    {func(d *wire.Diagnosis, _ *http.Request) { d.Crawlers.Empty = 14 }, "crawlers", "bad: no ranges are held"},
		"few tables":   {func(d *wire.Diagnosis, _ *http.Request) { d.Crawlers.Empty = 3 }, "crawlers", ""},
		"spent budget": {func(d *wire.Diagnosis, _ *http.Request) { d.Store.Spent = 5 }, "store", ""},
	} {
		r, result := doctor(t, sick(t, c.change))
		found := fmt.Sprint(result.of(c.check))
		switch {
		case c.want == "" && (r.code != 0 || !result.OK || len(result.of(c.check)) == 0):
			t.Errorf("%s: exit %d, want all well\n%s", name, r.code, r.stdout)
		case c.want != "" && (r.code != 1 || result.OK || !strings.Contains(found, c.want)):
			t.Errorf("%s: exit %d, %s: want %q", name, r.code, found, c.want)
		}
	}
}

// TestDoctorIsReadByPeople holds the human form, with text that an instance
// wrote.
func TestDoctorIsReadByPeople(t *testing.T) {
	t.Parallel()
	url := sick(t, func(d *wire.Diagnosis, _ *http.Request) {
		d.Store.Reachable, d.Store.Error = false, "connection refused\x1b[2J"
		d.Warnings = []string{"contact: is empty: who is refused cannot ask why"}
	})
	r := command(t, map[string]string{"STILE_DOCTOR_SECRET": doctorSecret}, "", "doctor", url)
	if r.code != 1 || strings.ContainsRune(r.stdout, 0x1b) {
		t.Errorf("exit %d\n%q", r.code, r.stdout)
	}
	golden(t, "doctor.golden", strings.ReplaceAll(r.stdout, url, "https://www.example.org/"))
}

func TestDoctorWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	moved := httptest.NewServer(http.RedirectHandler("https://www.example.org/", http.StatusMovedPermanently))
	t.Cleanup(moved.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	plainSite := sick(t, func(*wire.Diagnosis, *http.Request) {})
	for _, c := range []struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		{nil, []string{plainSite}, 1, "not asked: set STILE_DOCTOR_SECRET"},
		{map[string]string{"STILE_DOCTOR_SECRET": doctorSecret}, []string{moved.URL}, 1, "redirect to https://www.example.org/"},
		{nil, []string{gone.URL}, 3, "refused"},
		{nil, []string{"nonsense"}, 2, "want an address such as"},
		{nil, []string{"https://u:p@www.example.org/"}, 2, "want an address such as"},
		{nil, []string{"--expect", "x", plainSite}, 2, "--expect"},
		{map[string]string{"STILE_DOCTOR_SECRET": doctorSecret}, []string{"http://www.example.org/"}, 2, "a secret is sent over https: only"},
		{nil, []string{"--policy", "/does/not/exist", "--store", "memory:", plainSite}, 3, "no such file"},
	} {
		r := command(t, c.env, "", append([]string{"doctor"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("doctor %v: exit %d, want %d and %q\n%s%s", c.args, r.code, c.code, c.want, r.stdout, r.stderr)
		}
	}
}
