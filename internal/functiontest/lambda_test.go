package functiontest

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxLambdaZip is the most bytes of the zip for arm64.
const maxLambdaZip = 8 << 20

var bootstrap struct {
	once sync.Once
	path string
}

// buildBootstrap builds the Lambda once, as scripts/build-lambda.sh does but
// for this machine's processor.
func buildBootstrap(t *testing.T) string {
	t.Helper()
	bootstrap.once.Do(func() {
		dir, err := os.MkdirTemp("", "functiontest")
		if err != nil {
			t.Fatal(err)
		}
		cleanups = append(cleanups, func() { os.RemoveAll(dir) })
		path := filepath.Join(dir, "bootstrap")
		goBuild(t, Root(t), path, "./adapters/lambda/cmd", "-buildvcs=false", "-tags=lambda.norpc,grpcnotrace", "-ldflags=-s -w -buildid=")
		bootstrap.path = path
	})
	if bootstrap.path == "" {
		t.Fatal("the bootstrap was not built")
	}
	return bootstrap.path
}

func lambdaEvent(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Root(t), "adapters", "lambda", "testdata", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLambdaServesEveryEvent sends each documented event to the real binary
// under AWS's emulator.
func TestLambdaServesEveryEvent(t *testing.T) {
	origin := httptest.NewServer(Origin())
	defer origin.Close()
	l := StartLambda(t, buildBootstrap(t), "STILE_ORIGIN="+origin.URL, "STILE_POLICY="+policyText("{from: remote}", 1000, ""))
	for name, want := range map[string]string{
		"rest-authorizer":         `"Effect":"Allow"`,
		"rest-authorizer-token":   `"Effect":"Allow"`,
		"websocket-authorizer":    `"Effect":"Allow"`,
		"http-authorizer-1.0":     `"Effect":"Allow"`,
		"http-authorizer-2.0":     `"isAuthorized":true`,
		"http-proxy-2.0":          `"statusCode":404`, // the test's origin has no such page
		"function-url":            `"statusCode":404`,
		"function-url-cloudfront": `"statusCode":404`,
		"function-url-post":       `body: 5 00fffe6869`,
		"alb":                     `"statusDescription":"404 Not Found"`,
		"alb-multi-value":         `"multiValueHeaders":{`,
		"alb-health-check":        `"body":"ok\n"`,
	} {
		out, _, err := l.Invoke(lambdaEvent(t, name))
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %v, no %s in %.300s", name, err, want, out)
		}
	}
	if out, _, _ := l.Invoke([]byte(`{"Records":[]}`)); !bytes.Contains(out, []byte("errorMessage")) {
		t.Errorf("what is no request: %s", out)
	}
	if out, _, err := l.Invoke(lambdaEvent(t, "rest-authorizer")); err != nil || !bytes.Contains(out, []byte("Allow")) {
		t.Errorf("after an error: %s, %v", out, err)
	}
}

// TestLambdaLimit: the sixtieth navigation passes and the sixty-first does not.
// Latencies are printed: processes of this machine, no Lambda of AWS's.
func TestLambdaLimit(t *testing.T) {
	program := buildBootstrap(t)
	var cold []time.Duration
	var warm []time.Duration
	for range 5 {
		l := StartLambda(t, program, "STILE_POLICY="+policyText("{from: remote}", 60, ""))
		for i := range 62 {
			out, took, err := l.Invoke(lambdaEvent(t, "rest-authorizer"))
			if err != nil {
				t.Fatal(err)
			}
			if allowed := bytes.Contains(out, []byte(`"Effect":"Allow"`)); allowed != (i < 60) {
				t.Fatalf("navigation %d: %s", i+1, out)
			}
			if i == 0 {
				cold = append(cold, took)
			} else {
				warm = append(warm, took)
			}
		}
		l.Kill()
	}
	slices.Sort(cold)
	slices.Sort(warm)
	t.Logf("%s, memory store: cold (process start included) p50 %v, max %v; warm p50 %v, p99 %v, of %d",
		runtime.GOARCH, cold[len(cold)/2], cold[len(cold)-1], warm[len(warm)/2], warm[len(warm)*99/100], len(warm))
}

func TestLambdaZip(t *testing.T) {
	var zips [2][]byte
	for i := range zips {
		out := filepath.Join(t.TempDir(), "lambda.zip")
		Script(t, "build-lambda.sh", "--out", out)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		zips[i] = data
	}
	t.Logf("Lambda, arm64: zip %.2f MB", float64(len(zips[0]))/1e6)
	if len(zips[0]) > maxLambdaZip {
		t.Errorf("the zip has %d bytes, more than %d", len(zips[0]), maxLambdaZip)
	}
	if !bytes.Equal(zips[0], zips[1]) {
		t.Error("two builds of the same sources differ")
	}
}

// gateway puts the emulation, with the pages of the Terraform module, around
// the real binary.
func gateway(t *testing.T, origin string, env ...string) *Gateway {
	t.Helper()
	l := StartLambda(t, buildBootstrap(t), env...)
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(Root(t), "terraform", "aws", "files", name))
		if err != nil {
			t.Fatal(err)
		}
		out := strings.NewReplacer("${contact}", "mailto:ops@example.org", "${words}", "ops@example.org").Replace(string(text))
		if rest := variable.ReplaceAllString(out, ""); strings.Contains(rest, "$") {
			t.Fatalf("%s has a $ that is no variable of the authorizer's", name)
		}
		return out
	}
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	return &Gateway{
		Origin: u,
		Invoke: func(event []byte) ([]byte, error) { out, _, err := l.Invoke(event); return out, err },
		Responses: map[string]GatewayResponse{
			"ACCESS_DENIED": {
				Status:    429,
				Headers:   map[string]string{"Retry-After": "context.authorizer.retryAfter", "RateLimit": "context.authorizer.rateLimit", "Cache-Control": "'no-store'"},
				Templates: map[string]string{"text/html": page("limited.html"), "application/json": page("limited.json")},
			},
			"AUTHORIZER_FAILURE": {
				Status:    503,
				Headers:   map[string]string{"Retry-After": "'5'", "Cache-Control": "'no-store'"},
				Templates: map[string]string{"text/html": page("unavailable.html"), "application/json": page("unavailable.json")},
			},
		},
	}
}

// TestDenyPathEmulated proves the way of a refusal from the real binary to the
// visitor, by an emulation of API Gateway's documented rules.
func TestDenyPathEmulated(t *testing.T) {
	const limit = 60
	g := gateway(t, demoSite(t), "STILE_POLICY="+policyText("{from: remote}", limit, ""))
	s := httptest.NewServer(g)
	defer s.Close()
	Hammer(t, s.URL+"/", limit,
		"--client-header", "X-Test-Client: 198.51.100.1", "--second-client-header", "X-Test-Client: 198.51.100.9",
		"--crawler-header", "X-Test-Client: 66.249.66.1", "--contact", "mailto:ops@example.org")
	if g.Seen.Failed > 0 || g.Seen.Denied < 5 || g.Seen.Allowed < limit {
		t.Errorf("the gateway saw %+v", g.Seen)
	}
}

// TestClosedPolicyEmulated: a store that is down under on_error: closed is a
// 503, and never looks like a limit.
func TestClosedPolicyEmulated(t *testing.T) {
	g := gateway(t, demoSite(t), "STILE_STORE=redis://"+FreeAddr(t),
		"STILE_POLICY="+policyText("{from: remote}", 1, "store: {on_error: closed, connect_timeout: 100ms}"))
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Dest", "document")
	r.Header.Set("X-Test-Client", "198.51.100.1")
	g.ServeHTTP(w, r)
	if w.Code != 503 || w.Header().Get("RateLimit") != "" || !strings.Contains(w.Body.String(), "<!doctype html>") {
		t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
}

// TestOpenPolicyEmulated: with the default, visitors pass while the store is
// down, quickly.
func TestOpenPolicyEmulated(t *testing.T) {
	g := gateway(t, demoSite(t), "STILE_STORE=redis://"+FreeAddr(t),
		"STILE_POLICY="+policyText("{from: remote}", 1, "store: {connect_timeout: 100ms}"))
	for range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Sec-Fetch-Dest", "document")
		r.Header.Set("X-Test-Client", "198.51.100.1")
		g.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("%d", w.Code)
		}
	}
}

// TestLambdaAnswersAreWhatTheGatewayReads decodes the answers as strictly as the
// emulated gateway, for both effects.
func TestLambdaAnswersAreWhatTheGatewayReads(t *testing.T) {
	l := StartLambda(t, buildBootstrap(t), "STILE_POLICY="+policyText("{from: remote}", 1, ""))
	for i, want := range []string{"Allow", "Deny"} {
		out, _, err := l.Invoke(lambdaEvent(t, "rest-authorizer"))
		if err != nil {
			t.Fatal(err)
		}
		effect, context, err := judge(out, arn+"GET/walks/three")
		if err != nil || effect != want || context["limited"] != string(rune('0'+i)) {
			t.Errorf("%s, %v, %v: want %s", effect, context, err, want)
		}
		if !json.Valid(out) {
			t.Error("no JSON")
		}
	}
}
