// Package recipes holds what the pages of docs tell people to copy, and the tests
// that run it.
package recipes

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/functiontest"
	"github.com/stilehq/stile/internal/require"
)

const secret = "0123456789abcdef0123456789abcdef"

// policy is the one of docs/placement.md, with a limit that a test reaches.
const policy = `version: 1
site: recipe
contact: mailto:ops@example.org
client: {from: "header:X-Stile-Client", peer_secret: {header: X-Stile-Peer, secrets: env:STILE_PEER_SECRET}}
buckets: [{name: day, key: address, algorithm: fixed-window, limit: 2, window: 24h}]
exempt: {crawlers: {search: ordinary, preview: ordinary}}
`

// stile starts the real program as placement.md has it and returns its URL.
func stile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "stile")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/stilehq/stile/cmd/stile").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "stile.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := functiontest.FreeAddr(t)
	p := functiontest.Start(t, dir, []string{"STILE_PEER_SECRET=" + secret}, program, "serve", "--forward-auth", "--listen", addr, "--policy", file)
	p.Await(t, "http://"+addr+"/check")
	return "http://" + addr
}

// types are all that is TypeScript in proxy.ts.
var types = strings.NewReplacer(
	`import { NextResponse, type NextRequest } from "next/server";`,
	`const NextResponse = { next: () => new Response(null, { headers: { "x-middleware-next": "1" } }) };`,
	"(request: NextRequest)", "(request)")

// site runs the recipe in front of pages and returns where visitors reach it.
func site(t *testing.T, stileURL string, env ...string) string {
	t.Helper()
	node, err := exec.LookPath("node")
	require.Server(t, "node", err == nil, "install Node.js 20 or newer")
	text, err := os.ReadFile("proxy.ts")
	if err != nil {
		t.Fatal(err)
	}
	plain := types.Replace(string(text))
	if strings.Contains(plain, "NextRequest") {
		t.Fatal("proxy.ts has types that the test does not know")
	}
	module := filepath.Join(t.TempDir(), "proxy.mjs")
	if err := os.WriteFile(module, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "harness.mjs", module)
	cmd.Env = append(os.Environ(), "STILE_URL="+stileURL, "STILE_PEER_SECRET="+secret)
	cmd.Env = append(cmd.Env, env...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("node said %q, %v\n%s", port, err, problems.String())
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// patient is for a busy machine: the recipe's own 300 ms would let visitors in.
const patient = "STILE_DEADLINE_MS=30000"

type page struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

func get(t *testing.T, url string, fields ...string) page {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Dest", "document")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	began := time.Now()
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{res.StatusCode, res.Header, string(body), time.Since(began)}
}

// TestProxyRecipe: proxy.ts against a real `stile serve --forward-auth`.
func TestProxyRecipe(t *testing.T) {
	t.Parallel()
	url := site(t, stile(t), patient)
	for range 2 {
		if p := get(t, url+"/walks/one?page=2", "X-Real-Ip", "198.51.100.7"); p.status != 200 || p.body != "page" {
			t.Fatalf("an allowed page: %d %q", p.status, p.body)
		}
	}
	refused := get(t, url+"/walks/one?page=2", "X-Real-Ip", "198.51.100.7")
	if refused.status != 429 {
		t.Fatalf("%d after two pages, want 429", refused.status)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8"} {
		if got := refused.header.Get(name); got != want {
			t.Errorf("the refusal's %s is %q, want %q", name, got, want)
		}
	}
	if refused.header.Get("Retry-After") == "" || refused.header.Get("Ratelimit") == "" || !strings.Contains(refused.body, "mailto:ops@example.org") {
		t.Errorf("the refusal: %v\n%s", refused.header, refused.body)
	}
	// Another address is another visitor, whoever claims what in other fields.
	if p := get(t, url+"/", "X-Real-Ip", "198.51.100.8", "X-Forwarded-For", "198.51.100.7", "X-Stile-Client", "198.51.100.7"); p.status != 200 {
		t.Errorf("another visitor: %d", p.status)
	}
	// Assets never ask, nor does the router's own fetch count.
	for _, path := range []string{"/_next/static/a.js", "/logo.png", "/api/list"} {
		if p := get(t, url+path, "X-Real-Ip", "198.51.100.7"); p.status != 200 {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	for range 3 {
		if p := get(t, url+"/", "X-Real-Ip", "198.51.100.9", "Sec-Fetch-Dest", "empty", "Rsc", "1"); p.status != 200 {
			t.Errorf("a router's fetch: %d", p.status)
		}
	}
}

// TestProxyRecipeAsksRightly: what reaches Stile, and nothing else.
func TestProxyRecipeAsksRightly(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []*http.Request
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r)
		mu.Unlock()
		w.Header().Add("Set-Cookie", "__Host-stile=a; Path=/; Secure")
	}))
	defer fake.Close()
	p := get(t, site(t, fake.URL, patient)+"/walks/a%20b?x=1&y=2", "X-Real-Ip", "198.51.100.7", "Cookie", "a=1", "X-Private", "mine", "User-Agent", "Walker/1")
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0].URL.Path != "/check" {
		t.Fatalf("%d questions", len(asked))
	}
	h := asked[0].Header
	for name, want := range map[string]string{
		"X-Forwarded-Method": "GET", "X-Forwarded-Uri": "/walks/a%20b?x=1&y=2", "X-Stile-Client": "198.51.100.7", "X-Stile-Peer": secret,
		"Cookie": "a=1", "User-Agent": "Walker/1", "Sec-Fetch-Dest": "document", "Accept": "text/html", "X-Private": "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := h.Get("X-Forwarded-Host"); !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("X-Forwarded-Host is %q", got)
	}
	if p.status != 200 || p.header.Get("Set-Cookie") != "__Host-stile=a; Path=/; Secure" {
		t.Errorf("the visitor got %d, cookie %q", p.status, p.header.Get("Set-Cookie"))
	}
}

// TestProxyRecipeWithoutStile: who does not answer, answers nonsense or answers
// late keeps nobody out.
func TestProxyRecipeWithoutStile(t *testing.T) {
	t.Parallel()
	hang, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer hang.Close()
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Forbidden", http.StatusForbidden) }))
	defer odd.Close()
	for name, url := range map[string]string{"gone": "http://" + functiontest.FreeAddr(t), "silent": fmt.Sprintf("http://%s", hang.Addr()), "refuses us": odd.URL, "no URL": "nowhere"} {
		if p := get(t, site(t, url)+"/", "X-Real-Ip", "198.51.100.7"); p.status != 200 || p.body != "page" || p.took > 30*time.Second {
			t.Errorf("%s: %d %q after %v", name, p.status, p.body, p.took)
		}
	}
}

// TestPlacementPage: the page's policy is the one tested, and it points here.
func TestPlacementPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../placement.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"recipes/proxy.ts", strings.Split(policy, "\n")[3]} {
		if !strings.Contains(string(text), want) {
			t.Errorf("placement.md has no %q", want)
		}
	}
}
