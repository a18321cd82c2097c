package gate_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/core"
)

// offers gives every counted hit a cookie, and counts the decisions it was told.
type offers struct{ asked atomic.Int64 }

func (o *offers) Offer(_ *core.Request, d *core.Decision) string {
	o.asked.Add(1)
	if d.Class != core.Counted {
		return ""
	}
	return "__Host-stile=x; Path=/; Secure; HttpOnly; SameSite=Lax"
}

// TestCookie goes with pages and refusals, never with what a shared cache may
// keep, and leaves the origin's own alone.
func TestCookie(t *testing.T) {
	t.Parallel()
	o := &offers{}
	r := newRig(t, hourly(4), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "session=1")
		if cc := r.URL.Query().Get("cc"); cc != "" {
			w.Header().Set("Cache-Control", cc)
		}
		page(w, r)
	}), func(c *gate.Config) { c.Cookies = o })
	for _, tt := range []struct {
		path string
		want bool
	}{
		{"/", true}, {"/?cc=private,max-age=60", true}, {"/?cc=public,max-age=60", false}, {"/?cc=s-maxage=60", false},
		{"/style.css", false}, {"/", true}, // the last one is refused
	} {
		got := r.get("198.51.100.1", tt.path)
		cookies := strings.Join(got.header["Set-Cookie"], "\n")
		if strings.Contains(cookies, "__Host-stile=x") != tt.want {
			t.Errorf("%s: %d with cookies %q", tt.path, got.status, cookies)
		}
		if got.status == 200 && !strings.Contains(cookies, "session=1") {
			t.Errorf("%s: the origin's cookie was lost: %q", tt.path, cookies)
		}
	}
	if n := o.asked.Load(); n != 6 {
		t.Errorf("asked %d times in 6 decisions", n)
	}
	check := newRig(t, hourly(1), nil, func(c *gate.Config) { c.Cookies = &offers{} })
	for i, status := range []int{200, 429} {
		got := check.get("198.51.100.1", "/check", "X-Forwarded-Uri: /", "X-Forwarded-Method: GET")
		if got.status != status || !strings.Contains(got.header.Get("Set-Cookie"), "__Host-stile=x") {
			t.Errorf("forward-auth %d: %d with %q", i, got.status, got.header["Set-Cookie"])
		}
	}
}

// doctored answers whoever knows the word.
type doctored struct {
	*core.Limiter
	asked atomic.Int64
}

func (d *doctored) Diagnose(_ context.Context, r *core.Request) (any, bool) {
	d.asked.Add(1)
	if r.Header.Values(gate.DoctorHeader)[0] != "open" {
		return nil, false
	}
	return map[string]string{"path": r.Path, "xff": strings.Join(r.Header.Values("X-Forwarded-For"), "|")}, true
}

// TestDiagnose: who may know is told and not counted; a stranger gets the page
// like anybody, and is counted.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	var origin atomic.Int64
	var d *doctored
	r := newRig(t, hourly(1), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin.Add(1)
		page(w, r)
	}), func(c *gate.Config) {
		d = &doctored{Limiter: c.Limiter.(*core.Limiter)}
		c.Limiter = d
	})
	for range 3 {
		got := r.get("198.51.100.1", "/a/b", "Stile-Doctor: open")
		if got.status != 200 || got.body != "{\"path\":\"/a/b\",\"xff\":\"198.51.100.1\"}\n" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
	if origin.Load() != 0 || len(r.entries()) != 0 {
		t.Errorf("a diagnosis reached the origin %d times, and the log: %v", origin.Load(), r.entries())
	}
	if got := r.get("198.51.100.1", "/", "Stile-Doctor: guess"); got.status != 200 || !strings.Contains(got.body, "page /") {
		t.Errorf("a stranger: %d %s", got.status, got.body)
	}
	if got := r.get("198.51.100.1", "/", "Stile-Doctor: guess"); got.status != 429 {
		t.Errorf("a stranger's second page: %d, want 429", got.status)
	}
	asked := d.asked.Load()
	r.get("198.51.100.2", "/")
	if d.asked.Load() != asked {
		t.Error("a plain request is held against the secret")
	}
}
