package gate

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

// Metrics counts what the gate did and writes it in the Prometheus text format.
// Labels come from closed lists of this program, never from a request. It is
// written out by hand: the client library would add more to the functions that
// link this package than all of the gate.
type Metrics struct {
	mu        sync.RWMutex
	decisions map[decisionLabels]*atomic.Int64
	problems  [8]atomic.Int64 // by core.ClientProblem

	storeErrors    atomic.Int64
	settleFailed   atomic.Int64
	originFailed   atomic.Int64
	checkClosed    atomic.Int64
	checkMalformed atomic.Int64
	late           atomic.Int64
	inFlight       atomic.Int64

	latency [len(latencyBounds) + 1]atomic.Int64
	spent   atomic.Int64 // nanoseconds

	extraMu sync.Mutex
	extra   []extra
}

type decisionLabels struct {
	class   core.Class
	outcome core.Outcome
	observe bool
	reason  core.Reason
}

type extra struct {
	name, help, kind string
	read             func() float64
}

// latencyBounds are the upper bounds of the store's latency histogram.
var latencyBounds = [...]time.Duration{
	250 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// maxSeries bounds the decision counters. Classes, outcomes and reasons make
// fewer; it is there in case a limiter of another make invents reasons.
const maxSeries = 512

// NewMetrics returns empty metrics. One may serve several gates.
func NewMetrics() *Metrics {
	return &Metrics{decisions: map[decisionLabels]*atomic.Int64{}}
}

// Gauge adds a value that is read when metrics are asked for, such as the age
// of a crawler table. The name is used as it is and must be a valid metric name.
func (m *Metrics) Gauge(name, help string, read func() float64) { m.add(name, help, "gauge", read) }

// Counter is Gauge for a number that only grows.
func (m *Metrics) Counter(name, help string, read func() float64) { m.add(name, help, "counter", read) }

func (m *Metrics) add(name, help, kind string, read func() float64) {
	m.extraMu.Lock()
	defer m.extraMu.Unlock()
	m.extra = append(m.extra, extra{name, help, kind, read})
}

func (m *Metrics) decision(d *core.Decision) {
	l := decisionLabels{d.Class, d.Outcome, d.Observe, d.Reason}
	m.mu.RLock()
	n := m.decisions[l]
	m.mu.RUnlock()
	if n == nil {
		m.mu.Lock()
		if n = m.decisions[l]; n == nil {
			if len(m.decisions) >= maxSeries {
				l.reason = "other"
			}
			if n = m.decisions[l]; n == nil {
				n = new(atomic.Int64)
				m.decisions[l] = n
			}
		}
		m.mu.Unlock()
	}
	n.Add(1)
	if d.Err != nil {
		m.storeErrors.Add(1)
	}
	if p := int(d.Client.Problem); p > 0 && p < len(m.problems) {
		m.problems[p].Add(1)
	}
	if d.StoreTime > 0 {
		i, _ := slices.BinarySearch(latencyBounds[:], d.StoreTime)
		m.latency[i].Add(1)
		m.spent.Add(int64(d.StoreTime))
	}
}

// ServeHTTP writes all metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	b := bufio.NewWriter(w)
	defer b.Flush()
	head := func(name, kind, help string) {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	head("stile_decisions_total", "counter", "Requests by class, outcome and reason; would-refuse is a refusal of a policy that observes.")
	for _, s := range m.series() {
		outcome := s.outcome.String()
		if s.observe && s.outcome == core.Refuse {
			outcome = "would-refuse"
		}
		fmt.Fprintf(b, "stile_decisions_total{class=%q,outcome=%q,reason=%q} %d\n", s.class, outcome, string(s.reason), s.n)
	}
	head("stile_client_problems_total", "counter", "Requests whose client address was not where the policy says.")
	for p := core.ClientMissing; p <= core.ClientUntrusted; p++ {
		fmt.Fprintf(b, "stile_client_problems_total{problem=%q} %d\n", p, m.problems[p].Load())
	}
	for _, c := range []struct {
		name, kind, help string
		n                *atomic.Int64
	}{
		{"stile_store_errors_total", "counter", "Decisions that met a store error; never a limit.", &m.storeErrors},
		{"stile_settle_errors_total", "counter", "Leftover work of the store that failed.", &m.settleFailed},
		{"stile_origin_errors_total", "counter", "Requests that the origin did not answer.", &m.originFailed},
		{"stile_late_charges_total", "counter", "Requests charged after the origin answered a page to what asked for none.", &m.late},
		{"stile_check_closed_total", "counter", "Forward-auth requests from peers that are not listed.", &m.checkClosed},
		{"stile_check_malformed_total", "counter", "Forward-auth requests that do not name their original.", &m.checkMalformed},
		{"stile_requests_in_flight", "gauge", "Requests at the origin right now.", &m.inFlight},
	} {
		head(c.name, c.kind, c.help)
		fmt.Fprintf(b, "%s %d\n", c.name, c.n.Load())
	}
	head("stile_store_seconds", "histogram", "Time that decisions spent in the store.")
	var sum int64
	for i := range m.latency {
		sum += m.latency[i].Load()
		le := "+Inf"
		if i < len(latencyBounds) {
			le = strconv.FormatFloat(latencyBounds[i].Seconds(), 'g', -1, 64)
		}
		fmt.Fprintf(b, "stile_store_seconds_bucket{le=%q} %d\n", le, sum)
	}
	fmt.Fprintf(b, "stile_store_seconds_sum %g\nstile_store_seconds_count %d\n", time.Duration(m.spent.Load()).Seconds(), sum)
	m.extraMu.Lock()
	defer m.extraMu.Unlock()
	for _, e := range m.extra {
		head(e.name, e.kind, e.help)
		fmt.Fprintf(b, "%s %g\n", e.name, e.read())
	}
}

type series struct {
	decisionLabels
	n int64
}

func (m *Metrics) series() []series {
	m.mu.RLock()
	out := make([]series, 0, len(m.decisions))
	for l, n := range m.decisions {
		out = append(out, series{l, n.Load()})
	}
	m.mu.RUnlock()
	slices.SortFunc(out, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.reason, b.reason), compareBool(a.observe, b.observe))
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Admin returns the handler for an operator's port: /healthz and /metrics. It
// is not for the public.
func Admin(m *Metrics) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", serveHealth)
	mux.Handle("/metrics", m)
	return mux
}
