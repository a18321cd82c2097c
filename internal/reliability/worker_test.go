// Package reliability tests whole limiters, from policy to server, over real
// stores: several processes on one counter, and everything that can go wrong on
// the way. What was seen is written in docs/reliability.md.
package reliability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/wire"
)

// A job is what one worker process does: hits navigations by ways goroutines.
type job struct {
	Store  string
	Policy string
	Hits   int
	Ways   int
	Skew   time.Duration // of this process's clock
	Stop   bool          // SIGSTOP itself when the last answer is out
	Pause  bool          // the same, and as many hits again when it is let go on
}

// A done is what it found.
type done struct {
	Admitted, Refused, Errors int64
}

// TestMain lets the test binary be a worker: another process on the same store.
func TestMain(m *testing.M) {
	if text := os.Getenv("STILE_TEST_WORKER"); text != "" {
		work(text)
		return
	}
	os.Exit(m.Run())
}

func work(text string) {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fatal(err)
	}
	r, err := limiter(j.Store, j.Policy)
	if err != nil {
		fatal(err)
	}
	var d done
	d.add(r, j)
	if j.Pause {
		last := time.Now()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		// This thread may run on for a moment after the signal was sent: the pause
		// has been when time has made a leap.
		for time.Since(last) < 700*time.Millisecond {
			last = time.Now()
			time.Sleep(10 * time.Millisecond)
		}
		d.add(r, j)
	}
	if err := json.NewEncoder(os.Stdout).Encode(d); err != nil {
		fatal(err)
	}
	if j.Stop {
		// What a serverless platform does when the response is out: the CPU is
		// gone, and nothing after this line may matter. This thread may run on for
		// a moment after the signal was sent.
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Hour) // until the test kills it
	}
	_ = r.Close(context.Background())
}

// add does the hits of the job and adds up what it finds.
func (d *done) add(r *wire.Ready, j job) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range j.Ways {
		wg.Go(func() {
			for next.Add(1) <= int64(j.Hits) {
				switch got := visit(r, "203.0.113.9", time.Now().Add(j.Skew)); {
				case got.Err != nil:
					atomic.AddInt64(&d.Errors, 1)
				case got.Outcome == core.Admit:
					atomic.AddInt64(&d.Admitted, 1)
				default:
					atomic.AddInt64(&d.Refused, 1)
				}
				if err := r.Settle(context.Background()); err != nil {
					fmt.Fprintln(os.Stderr, "settle:", err)
				}
			}
		})
	}
	wg.Wait()
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// limiter wires a policy text to a store URL, as every program of ours does.
func limiter(store, text string) (*wire.Ready, error) {
	f, _, err := policy.Parse("stile.yaml", []byte(text), os.Getenv)
	if err != nil {
		return nil, err
	}
	registry, err := all.Registry()
	if err != nil {
		return nil, err
	}
	return wire.New(context.Background(), wire.Config{
		Policy: f, Stores: registry, StoreURL: store, Getenv: os.Getenv,
		HitLog: hitlog.NewHandler(&bytes.Buffer{}, hitlog.Names{}),
	})
}

func visit(r *wire.Ready, addr string, at time.Time) core.Decision {
	return r.Decide(context.Background(), &core.Request{
		Method: "GET", Host: "example.org", Path: "/article", Header: http.Header{},
		Peer: netip.MustParseAddr(addr), Time: at,
	})
}

// policyText is a policy of one daily limit, or hour and day.
func policyText(limit int, onError string, timeout time.Duration) string {
	return fmt.Sprintf(`version: 1
site: r%d
contact: mailto:ops@example.org
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: %d, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 24h}
store: {on_error: %s, timeout: %s, connect_timeout: 5s}
`, runs.Add(1), limit, limit, onError, timeout)
}

// runs makes the namespace of every policy text another one.
var runs atomic.Int64

func init() { runs.Store(time.Now().UnixNano() % 1e9 * 1000) }

// start starts a worker process.
func start(t *testing.T, j job) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STILE_TEST_WORKER="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, &out
}

// finish waits for a worker and returns what it found.
func finish(t *testing.T, cmd *exec.Cmd, out *bytes.Buffer) done {
	t.Helper()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("worker: %v", err)
	}
	var d done
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatalf("worker said %q: %v", out, err)
	}
	return d
}
