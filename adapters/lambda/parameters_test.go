package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openmemory"
)

// TestSignature: AWS's own library signs the same request alike.
func TestSignature(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, token := range []string{"", "session/token+=="} {
		body := []byte(`{"Names":["/stile/cookie"],"WithDecryption":true}`)
		var signed [2]string
		for i := range signed {
			r := httptest.NewRequest("POST", "https://ssm.eu-central-1.amazonaws.com/", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/x-amz-json-1.1")
			r.Header.Set("X-Amz-Target", "AmazonSSM.GetParameters")
			if i == 0 {
				sign(r, body, credentials{"AKIDEXAMPLE", "secret/key", token}, "eu-central-1", "ssm", at)
			} else {
				r.ContentLength = -1 // their signer would sign the length besides
				who := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret/key", SessionToken: token}
				if err := v4.NewSigner().SignHTTP(t.Context(), who, r, digest(body), "ssm", "eu-central-1", at); err != nil {
					t.Fatal(err)
				}
			}
			signed[i] = r.Header.Get("Authorization")
		}
		if signed[0] != signed[1] {
			t.Errorf("token %q:\n%s\n%s", token, signed[0], signed[1])
		}
	}
}

// parameterStore answers as the service does, after failing some times.
type parameterStore struct {
	values map[string]string
	fail   []int // statuses of the first answers
	calls  atomic.Int32
	asked  atomic.Pointer[[]string]
}

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKID/\d{8}/eu-central-1/ssm/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=[0-9a-f]{64}$`)

func (s *parameterStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s.calls.Add(1))
	if !authorization.MatchString(r.Header.Get("Authorization")) || r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameters" || r.URL.Path != "/" {
		http.Error(w, `{"__type":"IncompleteSignature"}`, http.StatusBadRequest)
		return
	}
	if n <= len(s.fail) {
		w.WriteHeader(s.fail[n-1])
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.ssm#ThrottlingException","message":"hunter2"}`)
		return
	}
	var q struct {
		Names          []string
		WithDecryption bool
	}
	if json.NewDecoder(r.Body).Decode(&q) != nil || !q.WithDecryption || len(q.Names) > 10 {
		http.Error(w, `{"__type":"ValidationException"}`, http.StatusBadRequest)
		return
	}
	s.asked.Store(&q.Names)
	type parameter struct{ Name, Selector, Value string }
	var out struct{ Parameters []parameter }
	for _, name := range q.Names {
		if v, ok := s.values[name]; ok {
			base, selector, _ := strings.Cut(name, ":")
			if selector != "" {
				selector = ":" + selector
			}
			out.Parameters = append(out.Parameters, parameter{base, selector, v})
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// resolve reads references against a server.
func resolve(t *testing.T, url string, budget time.Duration, environ ...string) (func(string) string, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	environ = append(environ, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t", "AWS_ENDPOINT_URL_SSM="+url)
	p := &parameters{
		logger: slog.New(slog.NewJSONHandler(log, nil)), client: parameterClient, now: time.Now, budget: budget,
		getenv: func(name string) string {
			for _, pair := range environ {
				if v, ok := strings.CutPrefix(pair, name+"="); ok {
					return v
				}
			}
			return ""
		},
	}
	return p.resolved(t.Context(), environ), log
}

func TestReferencesAreReadOnce(t *testing.T) {
	t.Parallel()
	store := &parameterStore{values: map[string]string{"/stile/cookie": "a secret", "/stile/doctor:3": "another"}, fail: []int{400, 503}}
	s := httptest.NewServer(store)
	defer s.Close()
	env, log := resolve(t, s.URL, 30*time.Second, "STILE_COOKIE_SECRETS=ssm:/stile/cookie", "STILE_DOCTOR_SECRET=ssm:/stile/doctor:3",
		"STILE_OTHER=ssm:/stile/cookie", "STILE_SITE=ssm:relative", "STILE_GONE=ssm:/stile/gone")
	for range 2 {
		for name, want := range map[string]string{
			"STILE_COOKIE_SECRETS": "a secret", "STILE_OTHER": "a secret", "STILE_DOCTOR_SECRET": "another",
			"STILE_SITE": "ssm:relative", "STILE_GONE": "", "AWS_REGION": "eu-central-1",
		} {
			if got := env(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	if n := store.calls.Load(); n != 3 {
		t.Errorf("%d calls, want two that failed and one", n)
	}
	if asked := *store.asked.Load(); !slices.Equal(asked, []string{"/stile/cookie", "/stile/doctor:3", "/stile/gone"}) {
		t.Errorf("asked for %v", asked)
	}
	if !strings.Contains(log.String(), "/stile/gone") || strings.Contains(log.String(), "secret\"") {
		t.Errorf("log: %s", log)
	}
}

func TestManyReferencesGoInTens(t *testing.T) {
	t.Parallel()
	store := &parameterStore{values: map[string]string{}}
	var environ []string
	for i := range 21 {
		store.values[fmt.Sprintf("/p/%d", i)] = fmt.Sprint(i)
		environ = append(environ, fmt.Sprintf("V%d=ssm:/p/%d", i, i))
	}
	s := httptest.NewServer(store)
	defer s.Close()
	env, log := resolve(t, s.URL, 30*time.Second, environ...)
	for i := range 21 {
		if got := env(fmt.Sprintf("V%d", i)); got != fmt.Sprint(i) {
			t.Errorf("V%d is %q\n%s", i, got, log)
		}
	}
	if n := store.calls.Load(); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
}

// TestUnreadableReferences: what cannot be read is missing, within the budget,
// and no answer of the service's gets into the log.
func TestUnreadableReferences(t *testing.T) {
	t.Parallel()
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","Message":"hunter2"}`)
	}))
	defer denied.Close()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client leave
		<-r.Context().Done()
	}))
	defer hang.Close()
	for name, c := range map[string]struct{ url, says string }{
		"denied":    {denied.URL, "AccessDeniedException"},
		"silent":    {hang.URL, "no answer"},
		"gone":      {"http://127.0.0.1:1", "no answer"},
		"nonsense":  {"http://%zz", "no URL"},
		"elsewhere": {"nowhere", "no URL"},
	} {
		env, log := resolve(t, c.url, 300*time.Millisecond, "STILE_COOKIE_SECRETS=ssm:/stile/cookie")
		if got := env("STILE_COOKIE_SECRETS"); got != "" {
			t.Errorf("%s: the reference itself was taken for the secret: %q", name, got)
		}
		if !strings.Contains(log.String(), c.says) || strings.Contains(log.String(), "hunter2") {
			t.Errorf("%s: log %s", name, log)
		}
	}
}

func TestWithoutReferencesNobodyIsAsked(t *testing.T) {
	t.Parallel()
	store := &parameterStore{}
	s := httptest.NewServer(store)
	defer s.Close()
	if env, _ := resolve(t, s.URL, time.Second, "STILE_COOKIE_SECRETS=plain"); env("STILE_COOKIE_SECRETS") != "plain" || store.calls.Load() != 0 {
		t.Errorf("%d calls", store.calls.Load())
	}
}

// TestFunctionTakesReferences: a policy's secret comes from the service, and
// without it the function says that nothing is limited.
func TestFunctionTakesReferences(t *testing.T) {
	t.Parallel()
	store := &parameterStore{values: map[string]string{"/stile/cookie": strings.Repeat("0123456789abcdef", 4)}}
	s := httptest.NewServer(store)
	defer s.Close()
	for path, limited := range map[string]bool{"/stile/cookie": true, "/stile/gone": false} {
		env := map[string]string{
			"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t", "AWS_ENDPOINT_URL_SSM": s.URL,
			"STILE_COOKIE_SECRETS": "ssm:" + path,
			"STILE_POLICY":         policyOf("{from: remote}", 1, "identify: {cookie: {secrets: env:STILE_COOKIE_SECRETS}}\n"),
		}
		log := &logBuffer{}
		f := New(context.Background(), Config{
			Openers: []open.Opener{openmemory.Opener}, Output: log, Now: time.Now,
			Getenv: func(n string) string { return env[n] },
			Environ: func() (list []string) {
				for k, v := range env {
					list = append(list, k+"="+v)
				}
				return list
			},
		})
		t.Cleanup(f.Close)
		if got := f.site.Problem == nil; got != limited {
			t.Errorf("%s: limits: %v, want %v\n%s", path, got, limited, log)
		}
		if !limited && !strings.Contains(log.String(), "NOTHING IS LIMITED") {
			t.Errorf("%s: %s", path, log)
		}
	}
}
