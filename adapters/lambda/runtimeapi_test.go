package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/functiontest"
)

// built is where the program is, once a test has asked for it.
var built string

// bootstrap builds the program once.
var bootstrap = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stile-lambda")
	if err != nil {
		return "", err
	}
	built = dir
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "bootstrap"), "-tags=lambda.norpc,grpcnotrace", "./cmd")
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return filepath.Join(dir, "bootstrap"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// A front is a STAND-IN for AWS: the Runtime API that the real bootstrap asks
// for events, streamed answers and their error trailers included, and before it
// what turns a visitor's request into an event and the answer back into HTTP, by
// AWS's documented rules: a function URL, or an ALB with multi-value headers. It
// is no proof of what AWS does.
type front struct {
	balancer bool
	limit    time.Duration // of an invocation

	turn    sync.Mutex // one event at a time, as each instance has
	last    int
	events  chan *invocation
	mu      sync.Mutex
	pending map[string]*invocation
}

type invocation struct {
	id    string
	event []byte
	limit time.Duration
	w     http.ResponseWriter
	done  chan error
}

// startFront starts the bootstrap with its settings and returns where visitors
// reach it.
func startFront(t *testing.T, balancer bool, limit time.Duration, env ...string) (url string, p *functiontest.Process) {
	t.Helper()
	program, err := bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	f := &front{balancer: balancer, limit: limit, events: make(chan *invocation), pending: map[string]*invocation{}}
	api := httptest.NewServer(f.runtimeAPI())
	site := httptest.NewServer(f)
	p = functiontest.Start(t, t.TempDir(), append([]string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(api.URL, "http://")}, env...), program)
	// The bootstrap goes first: it has a question open that no answer ends.
	t.Cleanup(func() {
		p.Kill()
		site.CloseClientConnections()
		site.Close()
		api.CloseClientConnections()
		api.Close()
	})
	return site.URL, p
}

// runtimeAPI serves what a bootstrap asks: events, and the extension that the
// library registers to be told of the end.
func (f *front) runtimeAPI() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case i := <-f.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", i.id)
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(i.limit).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:stile")
			_, _ = w.Write(i.event)
		case <-r.Context().Done():
		}
	})
	m.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		i := f.pending[r.PathValue("id")]
		delete(f.pending, r.PathValue("id"))
		f.mu.Unlock()
		if i == nil {
			http.Error(w, "unknown invocation", http.StatusBadRequest)
			return
		}
		err := errors.New("the function failed")
		if r.PathValue("kind") == "response" {
			err = f.answer(i, r)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		i.done <- err
		w.WriteHeader(http.StatusAccepted)
	})
	m.HandleFunc("POST /2020-01-01/extension/register", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Lambda-Extension-Identifier", "1")
		_, _ = io.WriteString(w, "{}")
	})
	m.HandleFunc("GET /2020-01-01/extension/event/next", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return m
}

// answer passes on what the function said. Its error means that the visitor's
// connection breaks.
func (f *front) answer(i *invocation, r *http.Request) error {
	if r.Header.Get("Content-Type") != "application/vnd.awslambda.http-integration-response" {
		return f.whole(i, r.Body)
	}
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, make([]byte, 8)) {
		if _, err := io.ReadFull(r.Body, one); err != nil {
			return err
		}
		head = append(head, one[0])
	}
	if err := begin(i.w, head[:len(head)-8]); err != nil {
		return err
	}
	flush := http.NewResponseController(i.w)
	piece := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(piece)
		if _, e := i.w.Write(piece[:n]); e != nil {
			return e
		}
		_ = flush.Flush()
		switch {
		case err == io.EOF && r.Trailer.Get("Lambda-Runtime-Function-Error-Type") != "":
			return errors.New("the stream ended in an error")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// begin writes status and fields of an answer's JSON.
func begin(w http.ResponseWriter, text []byte) error {
	var v response
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	for name, value := range v.Headers {
		w.Header().Set(name, value)
	}
	for name, values := range v.MultiValueHeaders {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.Header()["Set-Cookie"] = append(w.Header()["Set-Cookie"], v.Cookies...)
	w.WriteHeader(v.StatusCode)
	return nil
}

// whole passes an answer on that came in one piece, if it is not too large.
func (f *front) whole(i *invocation, body io.Reader) error {
	most := maxURLAnswer
	if f.balancer {
		most = maxBalancerAnswer
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var v response
	if err := json.Unmarshal(text, &v); err != nil || len(text) > most || v.StatusCode < 200 {
		i.w.WriteHeader(http.StatusBadGateway) // the platform's own, which is not Stile's page
		return nil
	}
	if err := begin(i.w, text); err != nil {
		return err
	}
	content := []byte(v.Body)
	if v.IsBase64Encoded {
		if content, err = base64.StdEncoding.DecodeString(v.Body); err != nil {
			return err
		}
	}
	_, err = i.w.Write(content)
	return err
}

// ServeHTTP is the visitor's side.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, err := f.event(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	f.last++
	i := &invocation{id: strconv.Itoa(f.last), event: event, limit: f.limit, w: w, done: make(chan error, 1)}
	f.mu.Lock()
	f.pending[i.id] = i
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	select {
	case f.events <- i:
	case <-ctx.Done():
		http.Error(w, "no function", http.StatusBadGateway)
		return
	}
	if err := <-i.done; err != nil {
		panic(http.ErrAbortHandler)
	}
}

// event is the request as AWS hands it to a function.
func (f *front) event(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e := map[string]any{"body": base64.StdEncoding.EncodeToString(body), "isBase64Encoded": true}
	single, multi := map[string]string{"host": r.Host}, map[string][]string{"host": {r.Host}}
	for name, lines := range r.Header {
		single[strings.ToLower(name)], multi[strings.ToLower(name)] = strings.Join(lines, ","), lines
	}
	if f.balancer {
		query := map[string][]string{}
		for _, pair := range strings.FieldsFunc(r.URL.RawQuery, func(c rune) bool { return c == '&' }) {
			k, v, _ := strings.Cut(pair, "=")
			query[k] = append(query[k], v)
		}
		e["path"], e["httpMethod"], e["multiValueHeaders"], e["multiValueQueryStringParameters"] = r.URL.EscapedPath(), r.Method, multi, query
		e["requestContext"] = map[string]any{"elb": map[string]string{"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/stile/1"}}
	} else {
		e["version"], e["rawPath"], e["rawQueryString"], e["headers"] = "2.0", r.URL.EscapedPath(), r.URL.RawQuery, single
		e["requestContext"] = map[string]any{"stage": "$default", "domainName": r.Host, "http": map[string]string{"method": r.Method, "path": r.URL.EscapedPath(), "sourceIp": "198.51.100.7"}}
	}
	return json.Marshal(e)
}

// TestFaultTable holds the real program against docs/origin-faults.md, through
// the stand-in.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	for column, c := range map[string]struct {
		balancer  bool
		responses string
	}{
		"Lambda URL, streamed": {false, "streamed"},
		"Lambda URL, buffered": {false, "buffered"},
		"Lambda behind an ALB": {true, "buffered"},
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			functiontest.CheckFaults(t, column, func(t *testing.T, origin string, limit time.Duration) string {
				site, _ := startFront(t, c.balancer, limit, "STILE_ORIGIN="+origin, "STILE_RESPONSES="+c.responses, "STILE_POLICY="+policyOf("{from: remote}", 1000, ""))
				return site
			})
		})
	}
}

// TestTheStandInCountsVisitors ties the stand-in to the program: the refusal
// reaches a visitor whole, in each form.
func TestTheStandInCountsVisitors(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	for _, responses := range []string{"streamed", "buffered"} {
		site, _ := startFront(t, false, time.Minute, "STILE_ORIGIN="+origin.URL, "STILE_RESPONSES="+responses, "STILE_POLICY="+policyOf("{from: remote}", 2, ""))
		u, err := url.JoinPath(site, "/page")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			res, err := http.Get(u)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if want := map[bool]int{true: 429, false: 200}[i == 2]; err != nil || res.StatusCode != want {
				t.Errorf("%s: page %d: %d, %v; want %d", responses, i+1, res.StatusCode, err, want)
			}
			if i == 2 && (res.Header.Get("Retry-After") == "" || !bytes.Contains(text, []byte("mailto:ops@example.org"))) {
				t.Errorf("%s: refusal %v\n%s", responses, res.Header, text)
			}
		}
	}
}
