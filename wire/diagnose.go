package wire

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// probeTimeout bounds what a diagnosis waits for the store.
const probeTimeout = 5 * time.Second

// doctorHeader is gate.DoctorHeader; adapters import wire, not the other way.
const doctorHeader = "Stile-Doctor"

// A Diagnosis is how an instance sees one request, and how it is itself. It is
// for the operator: it names addresses and quotes errors.
type Diagnosis struct {
	Stile    string            `json:"stile"` // "diagnosis": what this document is
	Site     string            `json:"site"`
	Mode     string            `json:"mode"`
	Scale    float64           `json:"scale"`
	Open     string            `json:"nobody_refused_until,omitempty"` // by the control record
	Client   ClientDiagnosis   `json:"client"`
	Store    StoreDiagnosis    `json:"store"`
	Crawlers CrawlersDiagnosis `json:"crawlers"`
	Warnings []string          `json:"warnings"` // of the policy on this store
	Time     time.Time         `json:"time"`     // the instance's clock
}

// ClientDiagnosis is who the asking client is to this instance.
type ClientDiagnosis struct {
	Addr    string `json:"addr"`    // empty = unidentified
	Key     string `json:"key"`     // what its pages are counted by, without proofs of identity
	From    string `json:"from"`    // the policy's client.from
	Problem string `json:"problem"` // "ok", or why the configured source was not used
	Hops    int    `json:"hops"`    // entries of the forwarding chain
}

// StoreDiagnosis is the state of the shared counters.
type StoreDiagnosis struct {
	Name      string  `json:"name"`
	Shared    bool    `json:"shared"`
	Reachable bool    `json:"reachable"` // one record was read just now
	ReadMS    float64 `json:"read_ms"`
	Breaker   string  `json:"breaker"` // closed, half-open or open
	Error     string  `json:"error,omitempty"`
	// Finding is what the store's own probe found beyond that: expiry that is off,
	// an eviction policy that drops counters.
	Finding string `json:"finding,omitempty"`
	Unknown int64  `json:"unknown_rows"` // since the start: outcomes that nobody knows
	Spent   int64  `json:"spent_rows"`   // not sent because of a spending limit
	OnError string `json:"on_error"`
}

// CrawlersDiagnosis is the state of the crawler tables.
type CrawlersDiagnosis struct {
	Proving bool    `json:"proving"` // the policy treats some crawlers specially
	Lists   int     `json:"lists"`
	Empty   int     `json:"empty"` // lists that hold nothing
	Stale   int     `json:"stale"` // older than crawlers.max_age, empty ones among them
	OldestS float64 `json:"oldest_s"`
	MaxAgeS float64 `json:"max_age_s"`
}

// A prober is a store that can examine its server.
type prober interface {
	Probe(ctx context.Context) error
}

// Diagnose implements gate.Diagnoser: it answers whoever sends one of the
// policy's doctor.secrets. It costs one read and the store's probe, and counts
// nothing.
func (r *Ready) Diagnose(ctx context.Context, q *core.Request) (any, bool) {
	p := r.Parts()
	sent := q.Header.Values(doctorHeader)
	if len(sent) != 1 {
		return nil, false
	}
	match := 0
	for _, secret := range p.Policy.Doctor.Secrets.Values() {
		match |= subtle.ConstantTimeCompare([]byte(sent[0]), []byte(secret))
	}
	if match != 1 {
		return nil, false
	}
	return r.diagnosis(ctx, p, q), true
}

func (r *Ready) diagnosis(ctx context.Context, p *Parts, q *core.Request) Diagnosis {
	f := p.Policy
	d := Diagnosis{Stile: "diagnosis", Site: f.Site, Mode: string(f.Mode), Scale: f.Scale, Time: q.Time.UTC(), Warnings: []string{}}
	for _, w := range r.Warnings {
		d.Warnings = append(d.Warnings, w.String())
	}
	c := p.Limiter.Policy().Client.Resolve(q)
	d.Client = ClientDiagnosis{From: string(f.Client.From), Problem: c.Problem.String(), Hops: c.Hops}
	if c.Addr.IsValid() {
		d.Client.Addr = c.Addr.String()
		d.Client.Key = core.Key{Kind: rows.Address, Net: c.Prefix}.String()
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var open time.Time
	d.Store, open = r.examine(ctx, p, q.Time)
	if open.After(q.Time) {
		d.Open = open.UTC().Format(time.RFC3339)
	}
	d.Crawlers.MaxAgeS = f.Crawlers.MaxAge.Seconds()
	if v := p.Crawlers; v != nil {
		d.Crawlers.Proving = true
		oldest, empty := v.Age()
		d.Crawlers.OldestS, d.Crawlers.Empty = oldest.Seconds(), empty
		for _, l := range v.List() {
			if l.URL == "" {
				continue
			}
			d.Crawlers.Lists++
			if l.Stale {
				d.Crawlers.Stale++
			}
		}
	}
	return d
}

// examine asks the store for one record, which every store can do, and for what
// its own probe finds.
func (r *Ready) examine(ctx context.Context, p *Parts, now time.Time) (StoreDiagnosis, time.Time) {
	s := StoreDiagnosis{
		Name: r.features.Name, Shared: r.features.Shared, OnError: string(p.Policy.Store.OnError),
		Unknown: r.store.Meter.Read().Unknown, Spent: r.store.Spend.Refused(),
	}
	began := time.Now()
	control, err := p.Limiter.Control(ctx, now)
	s.ReadMS = float64(time.Since(began).Microseconds()) / 1000
	s.Reachable = err == nil
	if err != nil {
		s.Error = err.Error()
	}
	if d, ok := r.driver.(prober); ok {
		if err := d.Probe(ctx); err != nil {
			s.Finding = err.Error()
		}
	}
	s.Breaker = r.store.Guard.State()
	return s, control.OpenUntil
}

// Examine is what [Ready.Diagnose] says of the store, for commands that have
// opened it themselves.
func (r *Ready) Examine(ctx context.Context) StoreDiagnosis {
	s, _ := r.examine(ctx, r.Parts(), r.cfg.Now())
	return s
}

// Driver returns the store without its wrappers, for commands that ask what only
// one kind of store knows. It must not be written to.
func (r *Ready) Driver() core.Store { return r.driver }
