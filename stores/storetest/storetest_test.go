package storetest

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
)

// reference is the contract written down plainly, with a switch for each fault
// that the suite must notice.
type reference struct {
	mu     *sync.Mutex
	data   map[string]*refRow
	fault  string
	closed bool
	clocks bool
	cells  int
}

type refRow struct {
	cells map[uint16]int64
	until int64
}

func newReference(fault string) *reference {
	return &reference{mu: new(sync.Mutex), data: map[string]*refRow{}, fault: fault, clocks: true}
}

func (s *reference) Features() core.Features {
	return core.Features{Name: "reference", Clocks: s.clocks, MaxCells: s.cells, Shared: s.fault == "claims to share"}
}

func (s *reference) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.fault != "works after Close"
	return nil
}

// name identifies a row; the faults drop a part of it.
func (s *reference) name(r *core.Row) string {
	k := r.Key
	switch s.fault {
	case "kinds meet":
		k.Kind = 0
	case "ids are cut at NUL":
		k.ID, _, _ = strings.Cut(k.ID, "\x00")
	case "ids are made valid UTF-8":
		k.ID = strings.ToValidUTF8(k.ID, "\ufffd")
	case "ids are cut at 1 KB":
		k.ID = k.ID[:min(len(k.ID), 1024)]
	case "ids are lower case":
		k.ID = strings.ToLower(k.ID)
	case "prefix lengths meet":
		return fmt.Sprintf("%d %s %q %d %d", k.Kind, k.Net.Addr(), k.ID, r.Plan, r.Epoch)
	case "plans meet":
		return fmt.Sprintf("%v %q %d", k, k.ID, r.Epoch)
	case "epochs meet":
		return fmt.Sprintf("%v %q %d", k, k.ID, r.Plan)
	case "plan and epoch run together":
		return fmt.Sprintf("%d %v %q %x%d", k.Kind, k.Net, k.ID, r.Plan, r.Epoch)
	}
	return fmt.Sprintf("%d %v %q %d %d", k.Kind, k.Net, k.ID, r.Plan, r.Epoch)
}

func (s *reference) Apply(ctx context.Context, b *core.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if ctx.Err() != nil && s.fault != "ignores the context" {
		err = fmt.Errorf("%w: %w", core.ErrNotApplied, ctx.Err())
		if s.fault == "unknown outcome for a dead context" {
			err = ctx.Err()
		}
	}
	if s.closed {
		err = core.ErrNotApplied
	}
	if err != nil {
		for i := range b.Rows {
			if i > 0 && s.fault == "sets the first Row.Err only" {
				break
			}
			b.Rows[i].Err = err
		}
		return err
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Err = s.unsupported(r); r.Err == nil {
			s.row(r)
		} else if err == nil {
			err = r.Err
		}
		if i == 0 && s.fault == "applies the first row only" {
			break
		}
	}
	if s.fault == "leaves Row.Err" {
		for i := range b.Rows {
			b.Rows[i].Err = errStale
		}
	}
	return err
}

func (s *reference) unsupported(r *core.Row) error {
	if s.cells > 0 && len(r.Cells) > s.cells {
		return core.ErrUnsupported
	}
	for _, c := range r.Cells {
		if c.Floor != 0 && !s.clocks {
			return core.ErrUnsupported
		}
	}
	return nil
}

func (s *reference) row(r *core.Row) {
	name := s.name(r)
	row := s.data[name]
	if row == nil {
		row = &refRow{cells: map[uint16]int64{}, until: r.Until}
		if r.Creates() || s.fault == "reads create" || s.fault == "refunds create" && r.Writes() {
			s.data[name] = row
		}
	}
	if r.Writes() && s.fault != "expiry never moves" {
		row.until = max(row.until, r.Until)
	}
	if s.fault == "expiry in the past" {
		row.until = r.Until - 3600
	}
	snapshot := maps.Clone(row.cells)
	for i := range r.Cells {
		c := &r.Cells[i]
		slot := c.Slot
		if s.fault == "slots wrap at 128" {
			slot %= 128
		}
		v := row.cells[slot]
		if s.fault == "reads and writes apart" && !r.Key.Net.IsValid() {
			s.mu.Unlock() // the lost update of a get and a set
			runtime.Gosched()
			s.mu.Lock()
		}
		switch s.fault {
		case "floor after add":
			v = max(v+c.Add, c.Floor)
		case "floor is added":
			v += c.Floor + c.Add
		default:
			v = max(v, c.Floor) + c.Add
		}
		if s.fault != "below zero" {
			v = max(v, 0)
		}
		if s.fault == "32 bits" {
			v = int64(uint32(v))
		}
		if s.fault == "refunds are ignored" && c.Add < 0 {
			v = row.cells[slot]
		}
		if v != 0 || row.cells[slot] != 0 {
			row.cells[slot] = v
		}
		c.Value = v
		if s.fault == "value before the add" {
			c.Value = v - c.Add
		}
	}
	switch s.fault {
	case "values after the whole row":
		for i := range r.Cells {
			r.Cells[i].Value = row.cells[r.Cells[i].Slot]
		}
	case "a slot counts once a row":
		for i := range r.Cells {
			c := &r.Cells[i]
			c.Value = max(0, max(snapshot[c.Slot], c.Floor)+c.Add)
			row.cells[c.Slot] = c.Value
		}
	case "every second hit is lost":
		if len(r.Cells) == 1 && r.Cells[0].Value%2 == 0 {
			row.cells[r.Cells[0].Slot]--
		}
	}
}

func referenceHarness(fault string) Harness {
	return Harness{
		Open: func(testing.TB) core.Store { return newReference(fault) },
		Exists: func(st core.Store, r *core.Row) (bool, error) {
			s := st.(*reference)
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.data[s.name(r)] != nil, nil
		},
		Expiry: func(st core.Store, r *core.Row) (time.Time, bool) {
			s := st.(*reference)
			s.mu.Lock()
			defer s.mu.Unlock()
			row := s.data[s.name(r)]
			if row == nil {
				return time.Time{}, false
			}
			return time.Unix(row.until, 0), true
		},
	}
}

func TestReferencePasses(t *testing.T) {
	t.Parallel()
	Run(t, referenceHarness(""))
}

// A store of window counters only, of ten cells, as declared.
func TestDeclaredLimitsPass(t *testing.T) {
	t.Parallel()
	h := referenceHarness("")
	h.Open = func(testing.TB) core.Store {
		s := newReference("")
		s.clocks, s.cells = false, 10
		return s
	}
	Run(t, h)
}

// passing is a wrapper that does nothing: the suite and its probes must work
// through it.
type passing struct{ core.Store }

func (p passing) Features() core.Features { return FeaturesOf(p.Store) }

func TestWrapperPasses(t *testing.T) {
	t.Parallel()
	Run(t, referenceHarness("").With(func(inner core.Store) core.Store { return &passing{inner} }))
}

// Every fault is noticed by some case.
func TestFaultsAreNoticed(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		"kinds meet", "ids are cut at NUL", "ids are made valid UTF-8", "ids are cut at 1 KB", "ids are lower case",
		"prefix lengths meet", "plans meet", "epochs meet", "plan and epoch run together", "slots wrap at 128",
		"works after Close", "ignores the context", "unknown outcome for a dead context", "sets the first Row.Err only",
		"leaves Row.Err", "applies the first row only", "reads create", "refunds create", "expiry never moves",
		"expiry in the past", "floor after add", "floor is added", "below zero", "32 bits", "refunds are ignored",
		"value before the add", "values after the whole row", "a slot counts once a row", "every second hit is lost",
		"claims to share", "reads and writes apart",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			h := referenceHarness(fault)
			h.Slow = true // no fault needs the long runs
			if failed := failures(h); len(failed) == 0 {
				t.Fatalf("no case notices a store in which %s", fault)
			}
		})
	}
}

// failures runs the suite over h and returns the names of the cases that fail.
func failures(h Harness) []string { return failuresOf(h, cases(h)) }

func failuresOf(h Harness, list []testCase) []string {
	var failed []string
	for _, c := range list {
		r := &recorder{}
		done := make(chan struct{})
		go func() { // FailNow ends its goroutine
			defer close(done)
			defer r.cleanup()
			c.run(newEnv(r, h))
		}()
		<-done
		if r.failed {
			failed = append(failed, c.name)
		}
	}
	return failed
}

// recorder is a testing.TB that notes failures. The embedded nil interface makes
// any method that the suite must not call fail loudly.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) cleanup() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) FailNow() {
	r.Errorf("")
	runtime.Goexit()
}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Error(...any)          { r.Errorf("") }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }
