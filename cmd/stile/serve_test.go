package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stilehq/stile/cmd/stile/demo"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/internal/require"
)

// A process is a running "stile serve".
type process struct {
	t    *testing.T
	cmd  *osexec.Cmd
	url  string // with a slash at the end
	done chan struct{}

	mu   sync.Mutex
	errs strings.Builder
	out  strings.Builder
}

var serving = regexp.MustCompile(`(?:demo site at |listen=)(http://[0-9.:]+)`)

// start runs serve and waits until it listens. It is told to stop at the end of
// the test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = osexec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Env = append([]string{"STILE_TEST_MAIN=1", "PATH=" + os.Getenv("PATH")}, env...)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var copied sync.WaitGroup
	for from, to := range map[io.Reader]*strings.Builder{stdout: &p.out, stderr: &p.errs} {
		copied.Go(func() {
			for sc := bufio.NewScanner(from); sc.Scan(); {
				p.mu.Lock()
				to.WriteString(sc.Text() + "\n")
				p.mu.Unlock()
			}
		})
	}
	go func() {
		copied.Wait()
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() { p.stop() })
	p.url = serving.FindStringSubmatch(p.waitFor(serving))[1] + "/"
	return p
}

// waitFor returns the standard error once it matches.
func (p *process) waitFor(want *regexp.Regexp) string {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if text := p.stderr(); want.MatchString(text) {
			return text
		}
		select {
		case <-p.done:
			if text := p.stderr(); want.MatchString(text) {
				return text
			}
			p.t.Fatalf("ended without %v:\n%s", want, p.stderr())
		case <-deadline:
			p.t.Fatalf("no %v:\n%s", want, p.stderr())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs.String()
}

func (p *process) stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stop ends the process in order and returns its exit status.
func (p *process) stop() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		p.t.Errorf("did not end on SIGTERM:\n%s", p.stderr())
	}
	return p.cmd.ProcessState.ExitCode()
}

// visit sends navigations of one client and returns their statuses.
func visit(t *testing.T, url string, n int) (statuses []int) {
	t.Helper()
	for range n {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		statuses = append(statuses, res.StatusCode)
	}
	return statuses
}

func expect(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func needHammer(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		_, err := osexec.LookPath(tool)
		require.Server(t, tool, err == nil, "hammer.sh needs it")
	}
}

func hammer(t *testing.T, line string) (string, int) {
	t.Helper()
	needHammer(t)
	cmd := osexec.Command("bash", "-c", line)
	cmd.Dir = "../.." // as the banner says: in the repository
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

var hammerLine = regexp.MustCompile(`(?m)^  (scripts/hammer\.sh .*)$`)

// TestDemoPassesTheProof runs the very command that the banner gives, with the
// redirect chain and with requests side by side.
func TestDemoPassesTheProof(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", " --redirect /redirect/3 --parallel 8"} {
		p := start(t, nil)
		m := hammerLine.FindStringSubmatch(p.stderr())
		if m == nil {
			t.Fatalf("the banner gives no command:\n%s", p.stderr())
		}
		out, code := hammer(t, m[1]+more)
		if code != 0 || !strings.Contains(out, " 0 missed, 0 not run") {
			t.Errorf("%s: exit %d\n%s", m[1]+more, code, out)
		}
		if code := p.stop(); code != 0 {
			t.Errorf("serve: exit %d\n%s", code, p.stderr())
		}
		// The piped output is the hit log and nothing else; all of it.
		events := map[hitlog.Event]int{}
		for line := range strings.Lines(p.stdout()) {
			e, err := hitlog.Parse([]byte(line))
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			events[e.Event] += 1 + int(e.LeftOut)
		}
		if events[hitlog.Hit] != 61 || events[hitlog.Limited] < 9 { // 60, and the second client's one
			t.Errorf("%s: hit log has %v, want 61 hits and at least 9 limited", more, events)
		}
	}
}

// TestProofFailsWithoutALimiter points the same proof at the bare demo site.
func TestProofFailsWithoutALimiter(t *testing.T) {
	t.Parallel()
	site, err := demo.New()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(site)
	defer srv.Close()
	out, code := hammer(t, "scripts/hammer.sh --url "+srv.URL+" --limit 10")
	if code != 1 || !regexp.MustCompile(`(?m)^MISS +the next navigation`).MatchString(out) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestDemoSaysHowToMeetThe429(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"STILE_SCALE=0.05"})
	if !strings.Contains(p.stderr(), "3 per hour, 10 per day") {
		t.Errorf("the banner does not show the scaled limits:\n%s", p.stderr())
	}
	expect(t, "pages", visit(t, p.url+"articles/1", 4), 200, 200, 200, 429)
	expect(t, "assets", visit(t, p.url+"assets/style.css", 3), 200, 200, 200)
	p.signal(syscall.SIGHUP)
	p.waitFor(regexp.MustCompile(`no policy file to read again`))
}

func limit(n int) string {
	return fmt.Sprintf("version: 1\nsite: test\ncontact: mailto:ops@example.org\nclient: {from: remote}\n"+
		"buckets:\n  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 48h}\n", n)
}

// shared is limit for counts in a real store: with the default deadline a busy
// machine lets a page pass uncounted, as it should, and the counts are off.
func shared(n int, more string) string { return limit(n) + "store: {timeout: 20s" + more + "}\n" }

func origin(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestReloadOnHangup raises the limit of a running process, then hands it a
// file with errors.
func TestReloadOnHangup(t *testing.T) {
	t.Parallel()
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })
	path := write(t, "stile.yaml", limit(3))
	p := start(t, nil, "--origin", site, "--policy", path)
	expect(t, "limit 3", visit(t, p.url, 4), 200, 200, 200, 429)

	overwrite(t, path, limit(5))
	p.signal(syscall.SIGHUP)
	p.waitFor(regexp.MustCompile(`the policy was exchanged; counts are kept`))
	expect(t, "raised to 5, three are spent", visit(t, p.url, 3), 200, 200, 429)

	overwrite(t, path, limit(0)+"buckets_of: 7\n")
	p.signal(syscall.SIGHUP)
	text := p.waitFor(regexp.MustCompile(`the policy was not exchanged`))
	for _, want := range []string{"buckets[0].limit", "buckets_of"} {
		if !strings.Contains(text, want) {
			t.Errorf("not all errors were told, %s is missing:\n%s", want, text)
		}
	}
	expect(t, "after a bad file", visit(t, p.url, 1), 429)

	overwrite(t, path, strings.Replace(limit(9), "site: test", "site: other", 1))
	p.signal(syscall.SIGHUP)
	p.waitFor(regexp.MustCompile(`site: cannot change while the store is open`))
	expect(t, "after a change of what needs a restart", visit(t, p.url, 1), 429)
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDrainsOnTerm asks for a page, tells the process to stop while the origin
// still works on it, and wants the page.
func TestDrainsOnTerm(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	site := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, "late page")
	})
	p := start(t, nil, "--origin", site, "--policy", write(t, "stile.yaml", limit(3)))
	type result struct {
		body string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
		if err != nil {
			got <- result{err: err}
			return
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			got <- result{err: err}
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		got <- result{string(body), err}
	}()
	<-arrived
	p.signal(syscall.SIGTERM)
	p.waitFor(regexp.MustCompile(`msg=stopping`))
	close(release)
	if r := <-got; r.err != nil || r.body != "late page" {
		t.Errorf("the request under way got %q, %v", r.body, r.err)
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr())
	}
	if e, err := hitlog.Parse([]byte(strings.TrimSpace(p.stdout()))); err != nil || e.Event != hitlog.Hit || e.Status != 200 {
		t.Errorf("its line is missing from the hit log: %v\n%s", err, p.stdout())
	}
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "--admin", "127.0.0.1:0")
	admin := regexp.MustCompile(`metrics=(http://[0-9.:]+/)metrics`).FindStringSubmatch(p.stderr())
	if admin == nil {
		t.Fatalf("no address of the admin port:\n%s", p.stderr())
	}
	visit(t, p.url, 2)
	res, err := http.Get(admin[1] + "metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`stile_decisions_total{class="counted",outcome="admit",reason="within-limit"} 2`,
		"stile_store_writes_total 2",
		"stile_store_breaker_open 0",
		"stile_refunds_lost_total 0",
		"stile_local_evicted_busy_total 0",
		"stile_crawlers_dropped_total 0",
		"stile_mode 2",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("after two pages the metrics lack %q:\n%s", want, text)
		}
	}
	expect(t, "health", visit(t, admin[1]+"healthz", 1), 200)
	expect(t, "the public has no metrics", visit(t, p.url+"metrics", 1), 404)
}

// TestOriginDown wants an honest 502 that is no limit.
func TestOriginDown(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	p := start(t, nil, "--origin", srv.URL, "--policy", write(t, "stile.yaml", limit(3)))
	expect(t, "no origin", visit(t, p.url, 1), http.StatusBadGateway)
}

// TestObserve refuses nobody and logs whom it would have refused.
func TestObserve(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"STILE_MODE=observe", "STILE_SCALE=0.05"})
	expect(t, "pages", visit(t, p.url, 5), 200, 200, 200, 200, 200)
	p.stop()
	would := 0
	for line := range strings.Lines(p.stdout()) {
		var e struct{ Event string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == string(hitlog.WouldLimit) {
			would++
		}
	}
	if would != 2 {
		t.Errorf("%d would-limit lines, want 2:\n%s", would, p.stdout())
	}
}
