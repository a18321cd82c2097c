package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// asked is a gateway that asks Stile about each page and logs as CloudWatch's
// reader prints it: a time and a stream before the line.
func asked(t *testing.T, line func(r *http.Request) map[string]any) (url, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "hits.log")
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page")
		e := line(r)
		if e == nil {
			return
		}
		for k, v := range map[string]any{"timestamp": "2026-10-05T12:20:00Z", "level": "INFO", "site": "shop", "user_agent": r.UserAgent(), "method": "GET", "path": "/", "store_ms": 1.5} {
			if _, ok := e[k]; !ok {
				e[k] = v
			}
		}
		text, _ := json.Marshal(e)
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintf(f, "2026-10-05T12:20:00 2026/10/05/[$LATEST]abc\n2026-10-05T12:20:00 %s\n", text)
			f.Close()
		}
	}))
	t.Cleanup(srv.Close)
	if err := os.WriteFile(log, []byte("START RequestId: 1\n{broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return srv.URL + "/", log
}

// TestDoctorThroughTheLog: what an authorizer cannot answer, its log says.
func TestDoctorThroughTheLog(t *testing.T) {
	t.Parallel()
	hit := func(ip string) map[string]any {
		return map[string]any{"event": "hit", "reason": "counted", "ip": ip, "store": "dynamodb"}
	}
	for name, c := range map[string]struct {
		line  func(r *http.Request) map[string]any
		args  []string
		code  int
		check string
		want  string
	}{
		"well":            {func(*http.Request) map[string]any { return hit("203.0.113.9") }, []string{"--expect", "203.0.113.9"}, 0, "client", "ok: seen as 203.0.113.9"},
		"not counted":     {func(*http.Request) map[string]any { return nil }, []string{"--wait", "10ms"}, 1, "log", "bad: no line for the page"},
		"the gateway's":   {func(*http.Request) map[string]any { return hit("198.51.100.1") }, []string{"--expect", "203.0.113.9"}, 1, "client", "bad: seen as 198.51.100.1, expected 203.0.113.9"},
		"not to be known": {func(*http.Request) map[string]any { return hit("203.0.113.9") }, nil, 1, "client", "unknown: seen as 203.0.113.9"},
		"digests":         {func(*http.Request) map[string]any { return hit("h:abc") }, nil, 1, "client", "unknown: the log has no addresses"},
		"nobody":          {func(*http.Request) map[string]any { return hit("") }, nil, 1, "client", "bad: seen as nobody"},
		"gullible": {func(r *http.Request) map[string]any {
			if a := r.Header.Get("X-Forwarded-For"); a != "" {
				return hit(a)
			}
			return hit("203.0.113.9")
		}, []string{"--expect", "203.0.113.9"}, 1, "forgery", "bad: whoever writes 192.0.2.123"},
		"own memory": {func(*http.Request) map[string]any {
			e := hit("203.0.113.9")
			e["store"] = "memory"
			return e
		}, []string{"--expect", "203.0.113.9"}, 1, "store", "bad: memory is each instance's own"},
		"store down": {func(*http.Request) map[string]any {
			return map[string]any{"event": "store-error", "reason": "store-error-open", "ip": "203.0.113.9", "store": "dynamodb", "error": "timeout"}
		}, []string{"--expect", "203.0.113.9"}, 1, "store", "bad: dynamodb failed: store-error-open"},
		"observes": {func(*http.Request) map[string]any {
			e := hit("203.0.113.9")
			e["event"] = "would-limit"
			return e
		}, []string{"--expect", "203.0.113.9"}, 0, "mode", "ok: observe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, log := asked(t, c.line)
			r, result := doctor(t, append(append([]string{"--hit-log", log}, c.args...), url)...)
			if found := fmt.Sprint(result.of(c.check)); r.code != c.code || result.OK != (c.code == 0) || !strings.Contains(found, c.want) {
				t.Errorf("exit %d, want %d; %s: want %q\n%s%s", r.code, c.code, found, c.want, r.stdout, r.stderr)
			}
		})
	}
}

// TestDoctorSendsNoSecretThere: the pages are a visitor's.
func TestDoctorSendsNoSecretThere(t *testing.T) {
	t.Parallel()
	url, log := asked(t, func(r *http.Request) map[string]any {
		if r.Header.Get("Stile-Doctor") != "" || r.Header.Get("Sec-Fetch-Dest") != "document" {
			return nil
		}
		return map[string]any{"event": "hit", "reason": "counted", "ip": "203.0.113.9", "store": "redis"}
	})
	if r, _ := doctor(t, "--hit-log", log, "--expect", "203.0.113.9", url); r.code != 0 {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r, _ := doctor(t, "--hit-log", log+".none", url); r.code != 3 {
		t.Errorf("a log that is not there: exit %d, want 3\n%s", r.code, r.stderr)
	}
	// Standard input that ends without the lines.
	if r, result := doctor(t, "--hit-log", "-", url); r.code != 1 || len(result.of("log")) != 1 {
		t.Errorf("an empty log: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
