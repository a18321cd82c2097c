package gate_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/require"
)

// nginx runs the real one, as a child in the foreground without root, with a
// configuration whose LISTEN is a free port and DIR a directory of its own. It
// returns where it listens.
func nginx(t *testing.T, http string) string {
	t.Helper()
	bin, err := exec.LookPath("nginx")
	if err != nil {
		for _, p := range []string{"/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"} {
			if _, statErr := os.Stat(p); statErr == nil {
				bin, err = p, nil
				break
			}
		}
	}
	require.Server(t, "nginx", err == nil, "apt-get install nginx-light, or brew install nginx")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	dir := t.TempDir()
	conf := `daemon off; master_process off; pid DIR/nginx.pid; error_log stderr warn;
events { worker_connections 64; }
http { access_log off; client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
` + http + "\n}\n"
	conf = strings.NewReplacer("DIR", dir, "LISTEN", addr).Replace(conf)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd := exec.Command(bin, "-p", dir, "-c", file)
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-exited
		if t.Failed() {
			t.Logf("nginx: %s", complaints.String())
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return "http://" + addr
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("nginx ended: %v: %s", err, complaints.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("nginx does not listen: %s", complaints.String())
		}
	}
}

// through asks the gate by way of another server.
func (r *rig) through(base string) *rig {
	return &rig{t: r.t, url: base}
}

// TestBehindACachingNginx: the refusal of one client is not the next one's page,
// a public page carries nobody's numbers, and what is private is not cached.
func TestBehindACachingNginx(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := newRig(t, hourly(2), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasPrefix(r.URL.Path, "/public") {
			w.Header().Set("Cache-Control", "public, max-age=600")
		}
		page(w, r)
	}))
	// A careless rule caches what does not say otherwise, errors included.
	front := r.through(nginx(t, `
proxy_cache_path DIR/cache keys_zone=c:1m;
server {
	listen LISTEN;
	location / {
		proxy_pass `+r.url+`;
		proxy_cache c; proxy_cache_valid any 10m;
		proxy_set_header X-Forwarded-For $http_x_test_client;
		add_header X-Cache $upstream_cache_status always;
	}
}`))
	get := func(client, path string) reply {
		return front.get("", path, "X-Test-Client: "+client, "Sec-Fetch-Dest: document")
	}
	get("203.0.113.9", "/public/1")
	get("203.0.113.9", "/public/2")
	first := get("203.0.113.9", "/contested")
	if first.status != 429 || first.header.Get("X-Cache") != "MISS" {
		t.Fatalf("%+v", first)
	}
	next := get("203.0.113.10", "/contested")
	if next.status != 200 || !strings.Contains(next.body, "page /contested") {
		t.Fatalf("the next client got the refusal: %+v", next)
	}
	again := get("203.0.113.9", "/public/1")
	if again.status != 200 || again.header.Get("X-Cache") != "HIT" {
		t.Fatalf("the cache does not cache, so this test shows nothing: %+v", again)
	}
	for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
		if v := again.header.Get(name); v != "" {
			t.Errorf("a cached page carries %s: %s", name, v)
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the origin was asked %d times, want 3", n)
	}
}

// TestNginxAuthRequest is the recipe of the documentation, word by word.
func TestNginxAuthRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(2), nil)
	app := httptest.NewServer(pages)
	t.Cleanup(app.Close)
	front := r.through(nginx(t, `
server {
	listen LISTEN;
	location = /_limit {
		internal;
		proxy_pass `+r.url+`/check?mode=nginx;
		proxy_pass_request_body off;
		proxy_set_header Content-Length "";
		proxy_set_header Host $http_host;
		proxy_set_header X-Original-URI $request_uri;
		proxy_set_header X-Original-Method $request_method;
		proxy_set_header X-Forwarded-For $http_x_test_client;
	}
	location / {
		auth_request /_limit;
		auth_request_set $stile_retry $upstream_http_retry_after;
		auth_request_set $stile_ref $upstream_http_x_stile_ref;
		auth_request_set $stile_outcome $upstream_http_x_stile_outcome;
		auth_request_set $stile_ratelimit $upstream_http_ratelimit;
		error_page 403 = @refused;
		add_header RateLimit $stile_ratelimit always;
		proxy_pass `+app.URL+`;
	}
	location @refused {
		rewrite ^ /denied break;
		proxy_pass `+r.url+`;
		proxy_method GET;
		proxy_pass_request_body off;
		proxy_set_header Content-Length "";
		proxy_set_header X-Retry-After $stile_retry;
		proxy_set_header X-Stile-Ref $stile_ref;
		proxy_set_header X-Stile-Outcome $stile_outcome;
		add_header RateLimit $stile_ratelimit always;
	}
}`))
	ask := func(path string, fields ...string) reply {
		return front.get("", path, append([]string{"X-Test-Client: 203.0.113.9", "Sec-Fetch-Dest: document"}, fields...)...)
	}
	for i := range 2 {
		got := ask(fmt.Sprintf("/page/%d?x=1;y=2", i), "X-Forwarded-Uri: /x.css", "X-Forwarded-Method: POST")
		if got.status != 200 || !strings.Contains(got.body, fmt.Sprintf("page /page/%d", i)) || !strings.HasPrefix(got.header.Get("RateLimit"), fmt.Sprintf(`"hour";r=%d;`, 1-i)) {
			t.Fatalf("%+v", got)
		}
	}
	got := ask("/page/3", "X-Stile-Ref: ZZZZZZZZZZZZ", "X-Retry-After: 1", "X-Stile-Outcome: unavailable")
	es := r.entries()
	last := es[len(es)-1]
	if got.status != 429 || got.header.Get("Retry-After") != "1800" || !strings.Contains(got.body, last.Ref) || !strings.HasPrefix(got.header.Get("RateLimit"), `"hour";r=0;`) || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%+v\nlog %+v", got, last)
	}
	if len(es) != 3 || last.Path != "/page/3" || last.IP != "203.0.113.9" {
		t.Errorf("log %+v", es)
	}
	if got := ask("/page/3", "Accept: application/json, text/html;q=0.1"); got.status != 429 || !strings.HasPrefix(got.body, `{"error"`) {
		t.Errorf("JSON: %+v", got)
	}
	if got := ask("/site.css"); got.status != 200 {
		t.Errorf("an asset: %+v", got)
	}
	if got := front.get("", "/page/3", "X-Test-Client: 203.0.113.10", "Sec-Fetch-Dest: document"); got.status != 200 {
		t.Errorf("another client: %+v", got)
	}
	if got := front.get("", "/_limit", "X-Test-Client: 203.0.113.10"); got.status != 404 {
		t.Errorf("the internal location is open: %+v", got)
	}
}
