package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForwardAuth: asked by a proxy on this machine, serve answers 200 and then
// 429 with its page, for the client that the proxy names.
func TestForwardAuth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stile.yaml")
	policy := "version: 1\nsite: asked\ncontact: mailto:ops@example.org\n" +
		"client: {from: xff, trusted_hops: 1, peers: [127.0.0.0/8]}\n" +
		"buckets:\n  - {name: hour, algorithm: fixed-window, limit: 2, window: 1h}\n"
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "--forward-auth", "--policy", file)
	ask := func(client string) int {
		r, err := http.NewRequest("GET", p.url+"check", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-For", client)
		r.Header.Set("X-Forwarded-Method", "GET")
		r.Header.Set("X-Forwarded-Uri", "/articles/1")
		r.Header.Set("X-Forwarded-Host", "example.org")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for i, want := range []int{200, 200, 429} {
		if got := ask("203.0.113.9"); got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	if got := ask("203.0.113.10"); got != 200 {
		t.Errorf("another client: %d", got)
	}
}

// TestOriginHost: the origin is sent the visitor's Host, or its own if told so.
func TestOriginHost(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" for "+r.Header.Get("X-Forwarded-Host"))
	}))
	t.Cleanup(origin.Close)
	own := strings.TrimPrefix(origin.URL, "http://")
	for whose, want := range map[string]string{"visitor": "www.example.org for www.example.org", "origin": own + " for www.example.org"} {
		p := start(t, nil, "--origin", origin.URL, "--origin-host", whose)
		r, err := http.NewRequest("GET", p.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "www.example.org"
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != want {
			t.Errorf("%s: %q, want %q", whose, body, want)
		}
	}
	if r := command(t, nil, "", "serve", "--forward-auth", "--origin", origin.URL); r.code != 2 || !strings.Contains(r.stderr, "--forward-auth") {
		t.Errorf("both: exit %d, %s", r.code, r.stderr)
	}
}
