package firestore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// testOperations asserts what each state of a decision costs, as exact counts of
// requests, together with the values that come back.
func testOperations(t *testing.T, addr string) {
	var net rpcs
	s := open(t, addr, net.options()...)
	if commits, reads := net.take(); commits != 1 || reads != 0 {
		t.Errorf("Open sent %d commits and %d reads, want 1 empty commit", commits, reads)
	}
	hit := func(hour uint16) core.Row {
		return row(20605, core.Cell{Slot: 1 + hour, Add: 1}, core.Cell{Slot: hour}, core.Cell{Slot: 0, Add: 1})
	}
	gcra := core.Row{Key: addressKey(9), Plan: 7, Until: 1800000100, Cells: []core.Cell{{Floor: 1_700_000_000_000_000, Add: 120_000_000}}}
	refund := func(epoch int64) core.Row {
		return row(epoch, core.Cell{Slot: 2, Add: -1}, core.Cell{Slot: 0, Add: -1})
	}
	for _, step := range []struct {
		state          string
		rows           []core.Row
		want           [][]int64
		commits, reads int
	}{
		{"first hit", []core.Row{hit(1)}, [][]int64{{1, 0, 1}}, 1, 0},
		{"steady", []core.Row{hit(1)}, [][]int64{{2, 0, 2}}, 1, 0},
		{"next hour", []core.Row{hit(2)}, [][]int64{{1, 2, 3}}, 1, 0},
		{"epoch's first hour", []core.Row{
			row(20606, core.Cell{Slot: 1, Add: 1}, core.Cell{Slot: 0, Add: 1}),
			row(20605, core.Cell{Slot: 3}, core.Cell{Slot: 24}),
		}, [][]int64{{1, 1}, {1, 0}}, 1, 1},
		{"read of nothing", []core.Row{row(20600, core.Cell{Slot: 3})}, [][]int64{{0}}, 0, 1},
		{"refund", []core.Row{refund(20605)}, [][]int64{{1, 2}}, 1, 0},
		{"refund to zero", []core.Row{refund(20605)}, [][]int64{{0, 1}}, 1, 0},
		{"refund below zero", []core.Row{refund(20605)}, [][]int64{{0, 0}}, 1, 0},
		{"count after it", []core.Row{hit(1)}, [][]int64{{1, 0, 1}}, 1, 0},
		{"refund of nothing", []core.Row{refund(20599)}, [][]int64{{0, 0}}, 1, 0},
		{"which made nothing", []core.Row{row(20599, core.Cell{Slot: 2})}, [][]int64{{0}}, 0, 1},
		{"new clock", []core.Row{gcra}, [][]int64{{1_700_000_120_000_000}}, 1, 0},
		{"busy clock", []core.Row{gcra}, [][]int64{{1_700_000_240_000_000}}, 1, 0},
		{"empty row", []core.Row{row(20605)}, [][]int64{nil}, 0, 0},
	} {
		w0, r0, t0 := s.Operations()
		if err := apply(t, s, step.rows...); err != nil {
			t.Fatalf("%s: %v", step.state, err)
		}
		for i, r := range step.rows {
			if got := values(r); !slices.Equal(got, step.want[i]) {
				t.Errorf("%s, row %d: values %v, want %v", step.state, i, got, step.want[i])
			}
		}
		commits, reads := net.take()
		if commits != step.commits || reads != step.reads {
			t.Errorf("%s: %d commits and %d reads were sent, want %d and %d", step.state, commits, reads, step.commits, step.reads)
		}
		w1, r1, t1 := s.Operations()
		trips := int64(min(1, step.commits+step.reads))
		if w1-w0 != int64(step.commits) || r1-r0 != int64(step.reads) || t1-t0 != trips {
			t.Errorf("%s: Operations rose by %d, %d, %d; want %d, %d, %d", step.state, w1-w0, r1-r0, t1-t0, step.commits, step.reads, trips)
		}
	}
}

// document reads a record as another program would see it.
func document(t *testing.T, s *Store, r core.Row) *firestorepb.Document {
	t.Helper()
	doc, err := lookUp(s, &r)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// testExpiry asserts that the document expires with its row, from the first hit
// on, and that a refund does not lose the expiry.
func testExpiry(t *testing.T, addr string) {
	s := open(t, addr)
	r := row(20605, core.Cell{Slot: 0, Add: 1})
	for range 2 {
		must(t, s, r)
		if got := document(t, s, r).Fields["exp"].GetTimestampValue().GetSeconds(); got != r.Until {
			t.Errorf("exp = %d, want %d", got, r.Until)
		}
	}
	must(t, s, row(20605, core.Cell{Slot: 0, Add: -1}))
	doc := document(t, s, r)
	if got := doc.Fields["exp"].GetTimestampValue().GetSeconds(); got != r.Until {
		t.Errorf("after a refund exp = %d, want %d", got, r.Until)
	}
	if len(doc.Fields) != 2 {
		t.Errorf("fields %v, want s0 and exp only", doc.Fields)
	}
}

// testHostileRecord asserts that a document in which somebody wrote nonsense
// neither breaks a hit nor yields a negative count.
func testHostileRecord(t *testing.T, addr string) {
	s := open(t, addr)
	r := row(20605, core.Cell{Slot: 0, Add: 1}, core.Cell{Slot: 1}, core.Cell{Slot: 2})
	client := s.client
	text := &firestorepb.Value{ValueType: &firestorepb.Value_StringValue{StringValue: "many"}}
	_, err := client.Commit(t.Context(), &firestorepb.CommitRequest{Database: s.database, Writes: []*firestorepb.Write{{
		Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{
			Name:   s.prefix + s.cfg.Namer.Name(&r),
			Fields: map[string]*firestorepb.Value{"s0": text, "s1": integer(-5), "s2": {ValueType: &firestorepb.Value_DoubleValue{DoubleValue: 2.5}}},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := must(t, s, row(20605, core.Cell{Slot: 0}, core.Cell{Slot: 1}, core.Cell{Slot: 2})); !slices.Equal(got, []int64{0, 0, 2}) {
		t.Errorf("read %v, want 0, 0, 2", got)
	}
	if got := must(t, s, r); !slices.Equal(got, []int64{1, 0, 2}) {
		t.Errorf("counted %v, want 1, 0, 2", got)
	}
}

// test64Ways asserts that nothing is lost, nothing is counted twice and no two
// hits see the same count, on one document and on many. The emulator holds a lock
// for each write and answers ABORTED when one waits too long, as the service does
// under contention; that this proves the write undone is what makes the sums come
// out, since the test counts such a hit again.
func test64Ways(t *testing.T, addr string) {
	const ways, each = 64, 10
	s := open(t, addr)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen, aborted := map[int64]bool{}, 0
	count := func(r core.Row) int64 {
		for {
			err := apply(t, s, r)
			var e *Error
			switch {
			case err == nil:
				return r.Cells[0].Value
			case !errors.As(err, &e) || !e.Throttled() || !errors.Is(err, core.ErrNotApplied):
				t.Error(err)
				return -1
			}
			mu.Lock()
			aborted++
			mu.Unlock()
		}
	}
	own := func(way int, add int64) core.Row {
		r := row(20605, core.Cell{Slot: 0, Add: add})
		r.Key = core.Key{Kind: rows.User, ID: fmt.Sprint("user ", way)}
		return r
	}
	for way := range ways {
		wg.Go(func() {
			for range each {
				count(own(way, 1))
				n := count(row(20605, core.Cell{Slot: 0, Add: 1}))
				mu.Lock()
				if seen[n] {
					t.Errorf("two hits got the count %d", n)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d hits, %d refused for contention and sent again", 2*ways*each, aborted)
	if got := must(t, s, row(20605, core.Cell{Slot: 0})); got[0] != ways*each {
		t.Errorf("hot record = %d, want %d", got[0], ways*each)
	}
	for way := range ways {
		if got := must(t, s, own(way, 0)); got[0] != each {
			t.Errorf("record of way %d = %d, want %d", way, got[0], each)
		}
	}
}
