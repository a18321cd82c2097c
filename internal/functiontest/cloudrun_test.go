package functiontest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stilehq/stile/cmd/stile/demo"
	"github.com/stilehq/stile/stores/firestore/firestoretest"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// generatedMain is what Google's buildpack writes into functions.local/app of
// the uploaded module, but for the address: a test listens on loopback only.
const generatedMain = `package main

import (
	"log"
	"net/http"
	"os"

	_ "github.com/stilehq/stile"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
)

func main() {
	http.HandleFunc("/robots.txt", http.NotFound)
	http.HandleFunc("/favicon.ico", http.NotFound)
	if err := funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT")); err != nil {
		log.Fatal(err)
	}
}
`

// buildFlags are the flags that terraform/gcp hands to Google's buildpack, as
// GOOGLE_GOLDFLAGS and GOFLAGS.
var buildFlags = []string{"-ldflags=-s -w", "-tags=grpcnotrace"}

// maxFunction is the most bytes of the function's program. It is kept by letting
// the linker drop unused methods, which one reachable reflect.Type.MethodByName
// anywhere forbids: gRPC's trace pages have one (buildFlags), and so had reflect2
// up to the commit that go.mod names.
const maxFunction = 25_000_000

var function struct {
	once sync.Once
	path string
}

// cloudRun builds the function once, from what scripts/build-function.sh packs,
// and returns the program.
func cloudRun(t testing.TB) string {
	t.Helper()
	function.once.Do(func() {
		dir, err := os.MkdirTemp("", "functiontest")
		if err != nil {
			t.Fatal(err)
		}
		cleanups = append(cleanups, func() { os.RemoveAll(dir) })
		path := filepath.Join(dir, "main")
		layOut(t, filepath.Join(dir, "source"))
		goBuild(t, filepath.Join(dir, "source"), path, "./functions.local/app", buildFlags...)
		function.path = path
	})
	if function.path == "" {
		t.Fatal("the function was not built")
	}
	return function.path
}

// layOut puts the function's sources into dir as the buildpack has them when it
// compiles.
func layOut(t testing.TB, dir string, args ...string) {
	t.Helper()
	Script(t, "build-function.sh", append(args, "--dir", dir)...)
	roots, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(roots) == 0 {
		t.Fatalf("no function in the root of the sources: %v", err)
	}
	for _, f := range roots {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), "\npackage stile\n") {
			t.Errorf("%s is not of package stile, and the buildpack wants one package there (%v)", filepath.Base(f), err)
		}
	}
	app := filepath.Join(dir, "functions.local", "app")
	if err := os.MkdirAll(app, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), []byte(generatedMain), 0o644); err != nil {
		t.Fatal(err)
	}
}

// policyText is a policy as one would hand it over in STILE_POLICY.
func policyText(client string, limit int, more string) string {
	return fmt.Sprintf(`version: 1
site: functiontest
contact: mailto:ops@example.org
client: %s
buckets:
  - {name: hour, key: address, algorithm: fixed-window, limit: %d, window: 1h}
exempt: {crawlers: {search: exempt}}
%s
`, client, limit, more)
}

// runFunction starts the function in front of an origin.
func runFunction(t *testing.T, origin string, env ...string) (url string, p *Process) {
	t.Helper()
	program := cloudRun(t)
	addr := FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	p = Start(t, t.TempDir(), append([]string{"PORT=" + port, "FUNCTION_TARGET=Stile", "STILE_ORIGIN=" + origin}, env...), program)
	p.Await(t, "http://"+addr+"/robots.txt")
	return "http://" + addr, p
}

func demoSite(t testing.TB) string {
	t.Helper()
	site, err := demo.New()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(site)
	t.Cleanup(s.Close)
	return s.URL
}

// TestCloudRunFunctionLimits proves the function on every store that can be had
// here, as the buildpack builds it, under the framework that runs it.
func TestCloudRunFunctionLimits(t *testing.T) {
	stores := map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"redis": func(t *testing.T) []string {
			return []string{"STILE_STORE=redis://" + redistest.Start(t).Addr}
		},
		"firestore": func(t *testing.T) []string {
			return []string{"STILE_STORE=firestore://demo-functiontest", "FIRESTORE_EMULATOR_HOST=" + firestoretest.Start(t).Addr}
		},
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			const limit = 60
			// Emulators on a busy machine are slower than the default deadline.
			policy := "STILE_POLICY=" + policyText("{from: remote}", limit, "store: {timeout: 5s, connect_timeout: 10s}")
			url, p := runFunction(t, demoSite(t), append(store(t), policy)...)
			Hammer(t, url+"/", limit,
				"--client-header", "X-Forwarded-For: 198.51.100.1",
				"--second-client-header", "X-Forwarded-For: 198.51.100.9",
				"--crawler-header", "X-Forwarded-For: 66.249.66.1",
				"--redirect", "/redirect/3", "--contact", "mailto:ops@example.org")
			if out := p.Output.String(); !strings.Contains(out, `"event":"limited"`) || !strings.Contains(out, `"httpRequest":{`) || strings.Contains(out, "store-error") {
				t.Errorf("the log has no refusal in Cloud Logging's form, or an error of the store:\n%.2000s", out)
			}
		})
	}
}

// TestVendoredFunction builds from packed dependencies, without module cache.
func TestVendoredFunction(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "source")
	layOut(t, dir, "--vendor")
	if _, err := os.Stat(filepath.Join(dir, "vendor", "github.com", "GoogleCloudPlatform", "functions-framework-go", "funcframework")); err != nil {
		t.Fatal("the buildpack refuses vendor/ without the package funcframework")
	}
	goBuild(t, dir, "", "./...", "-mod=vendor")
}

func TestFunctionSize(t *testing.T) {
	n := size(t, cloudRun(t))
	t.Logf("function: %.1f MB", float64(n)/1e6)
	if n > maxFunction {
		t.Errorf("the function has %d bytes, more than %d", n, maxFunction)
	}
}

// TestFunctionUncleanPath: the framework's own mux redirects before the function
// runs: uncounted, and counted once where it leads.
func TestFunctionUncleanPath(t *testing.T) {
	url, _ := runFunction(t, demoSite(t), "STILE_POLICY="+policyText("{from: remote}", 1000, ""))
	client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(url + "//page")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusTemporaryRedirect || res.Header.Get("Location") != "/page" {
		t.Errorf("%s to %q: the framework changed its ways, and docs/adapters-gcp.md with it", res.Status, res.Header.Get("Location"))
	}
}

// TestFunctionDrains: SIGTERM waits for what is under way and writes what the
// log holds back.
func TestFunctionDrains(t *testing.T) {
	origin := httptest.NewServer(Origin())
	defer origin.Close()
	url, p := runFunction(t, origin.URL, "STILE_POLICY="+policyText("{from: remote}", 1, ""))
	const refusals = 150 // beyond the twenty that are written each minute
	for range refusals {
		res, err := http.Get(url + "/page")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	slow := make(chan error, 1)
	go func() {
		res, err := http.Get(url + "/slow?x.css")
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		slow <- err
	}()
	time.Sleep(100 * time.Millisecond) // the first half of the answer is out
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Errorf("a request under way was cut: %v", err)
	}
	p.Wait(t, 10*time.Second)
	if status, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v, want SIGTERM", p.Cmd.ProcessState)
	}
	if !strings.Contains(p.Output.String(), `"left_out":`) {
		t.Error("the refusals that sampling held back were not written")
	}
}

// TestBrokenConfigurationLetsVisitorsIn: nobody is locked out by a mistake of
// the operator's, and the log says so loudly.
func TestBrokenConfigurationLetsVisitorsIn(t *testing.T) {
	for name, env := range map[string][]string{
		"no policy":       nil,
		"wrong policy":    {"STILE_POLICY=version: 1\nbuckets: {}\n"},
		"missing file":    {"STILE_POLICY=nowhere.yaml"},
		"unknown store":   {"STILE_POLICY=" + policyText("{from: remote}", 1, ""), "STILE_STORE=dynamodb://table?region=eu-west-1"},
		"unknown ingress": {"STILE_POLICY=" + policyText("{from: remote}", 1, ""), "STILE_INGRESS=cdn"},
	} {
		t.Run(name, func(t *testing.T) {
			url, p := runFunction(t, demoSite(t), env...)
			for range 5 {
				res, err := http.Get(url + "/")
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Fatalf("%s, want 200", res.Status)
				}
			}
			if out := p.Output.String(); !strings.Contains(out, "NOTHING IS LIMITED") || !strings.Contains(out, `"severity":"ERROR"`) {
				t.Errorf("the log does not say so:\n%s", out)
			}
		})
	}
	t.Run("wrong origin", func(t *testing.T) {
		url, _ := runFunction(t, "https://user:secret@site.example/path", "STILE_POLICY="+policyText("{from: remote}", 1, ""))
		res, err := http.Get(url + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: want 503 with Retry-After", res.Status)
		}
	})
}
