package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Schema is the version of [Result] as a file. A reader refuses any other.
const Schema = 1

// ErrSchema marks a result file of another version: measure again.
var ErrSchema = errors.New("bench: a result of another version")

// Kind says what answered a store's calls.
type Kind string

// The kinds of server. Only times of a KindReal server that is not on the
// loopback interface say anything about production.
const (
	KindReal      Kind = "real"       // the server that production runs
	KindEmulator  Kind = "emulator"   // a stand-in that the vendor or somebody else made for tests
	KindFront     Kind = "own front"  // our stand-in for a service, over a real Redis
	KindInProcess Kind = "in process" // no server
)

// A Result is one store measured once.
type Result struct {
	Schema  int       `json:"schema"`
	Date    time.Time `json:"date"`
	Stile   string    `json:"stile"` // module version or commit; "unknown" where the build does not say
	Machine Machine   `json:"machine"`
	Store   Server    `json:"store"`
	Policy  string    `json:"policy"` // what a decision is
	States  []State   `json:"states"`
	Floor   *Floor    `json:"floor,omitempty"` // nil: the store offers none
	Loads   []Load    `json:"loads"`
	Notes   []string  `json:"notes,omitempty"`

	// File is where ReadDir found the result, without its folder.
	File string `json:"-"`
}

// A Machine is the shape of the one that measured. It names nobody's.
type Machine struct {
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

// A Server is what was measured.
type Server struct {
	Name     string `json:"name"`     // as in the log field "store"
	Server   string `json:"server"`   // "Redis 7.0.15"; "unknown" if it does not say
	Kind     Kind   `json:"kind"`     // real or stand-in
	Loopback bool   `json:"loopback"` // on the machine that measured, so the network is missing from the times
	Unit     string `json:"unit"`     // what an operation is: "command", "document", ...
}

// Latency is in microseconds, to within 2 %.
type Latency struct {
	P50 float64 `json:"p50_us"`
	P90 float64 `json:"p90_us"`
	P99 float64 `json:"p99_us"`
}

// A State is what navigations cost whose clients are all in the same state.
// Counts are totals over Navigations, so they are whole numbers.
type State struct {
	Name        string `json:"state"`
	Meaning     string `json:"meaning"`
	Navigations int64  `json:"navigations"`

	Writes   int64 `json:"writes"`   // records changed
	Reads    int64 `json:"reads"`    // records only read
	Expiries int64 `json:"expiries"` // expiry set by an operation of its own
	Trips    int64 `json:"round_trips"`

	// Bytes of TCP payload, headers and framing included, TLS not. Nil where the
	// connection could not be looked into.
	BytesOut *int64 `json:"bytes_out"`
	BytesIn  *int64 `json:"bytes_in"`

	Latency
}

// Operations is the sum of what is billed by operation.
func (s *State) Operations() int64 { return s.Writes + s.Reads + s.Expiries }

// A Floor is the least that a call to the same server takes, one at a time.
type Floor struct {
	What string `json:"what"` // "PING", "empty commit"
	Latency
}

// A Load is decisions as fast as they go.
type Load struct {
	Ways      int     `json:"ways"` // goroutines
	Keys      string  `json:"keys"` // "hot": one key; "spread": Distinct of them
	Distinct  int     `json:"distinct_keys"`
	Decisions int64   `json:"decisions"`
	Errors    int64   `json:"errors"` // not among the decisions
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"decisions_per_second"`
	Latency
}

// State returns the state of that name.
func (r *Result) State(name string) (State, bool) {
	for _, s := range r.States {
		if s.Name == name {
			return s, true
		}
	}
	return State{}, false
}

// Write puts the result into dir as STORE.json and returns the file's name. An
// older result of the same store is replaced.
func (r *Result) Write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, r.Store.Name+".json")
	return name, os.WriteFile(name, append(data, '\n'), 0o644)
}

// Parse reads one result. The error wraps [ErrSchema] for another version.
func Parse(data []byte) (*Result, error) {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("bench: not a result: %w", err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("%w: it has %d, this program reads %d; run stile bench again", ErrSchema, head.Schema, Schema)
	}
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("bench: not a result: %w", err)
	}
	if r.Store.Name == "" || len(r.States) == 0 {
		return nil, errors.New("bench: not a result: no store or no states")
	}
	for _, s := range r.States {
		if s.Navigations <= 0 || s.Writes < 0 || s.Reads < 0 || s.Expiries < 0 {
			return nil, fmt.Errorf("bench: not a result: state %q", s.Name)
		}
	}
	return &r, nil
}

// ReadFS reads every *.json in the root of f, by store name. Results that cannot
// be read are left out and reported in the error beside the others.
func ReadFS(f fs.FS) ([]*Result, error) {
	names, err := fs.Glob(f, "*.json")
	if err != nil {
		return nil, err
	}
	var list []*Result
	var errs []error
	for _, name := range names {
		data, err := fs.ReadFile(f, name)
		var r *Result
		if err == nil {
			r, err = Parse(data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		r.File = name
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *Result) int { return strings.Compare(a.Store.Name, b.Store.Name) })
	return list, errors.Join(errs...)
}
