package dynamodb

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
)

// A counter stands before the server and counts the requests that reach it, by
// operation, with the bytes of bodies both ways.
type counter struct {
	*httptest.Server
	mu      sync.Mutex
	byName  map[string]int
	in, out int64
}

func newCounter(t *testing.T, server *dynamodbtest.Server) *counter {
	t.Helper()
	target, err := url.Parse(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	c := &counter{byName: map[string]int{}}
	proxy.ModifyResponse = func(resp *http.Response) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.out += resp.ContentLength
		return nil
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.byName[r.Header.Get("X-Amz-Target")]++
		c.in += r.ContentLength
		c.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// take returns the number of writes and reads, and their bytes, since the last
// call.
func (c *counter) take() (writes, reads int, in, out int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes, reads, in, out = c.byName["DynamoDB_20120810.UpdateItem"], c.byName["DynamoDB_20120810.GetItem"], c.in, c.out
	c.byName, c.in, c.out = map[string]int{}, 0, 0
	return writes, reads, in, out
}

// testOperations asserts what each state of a decision costs, as exact counts of
// requests at the server, together with the values that come back.
func testOperations(t *testing.T, server *dynamodbtest.Server) {
	front := newCounter(t, server)
	s := open(t, front.URL)
	if writes, reads, _, _ := front.take(); writes != 0 || reads != 1 {
		t.Errorf("Open sent %d writes and %d reads, want 0 and 1", writes, reads)
	}
	hit := func(hour uint16) core.Row {
		return row(20605, core.Cell{Slot: 1 + hour, Add: 1}, core.Cell{Slot: hour}, core.Cell{Slot: 0, Add: 1})
	}
	clock := func(now int64) core.Row {
		return core.Row{Key: addressKey(9), Plan: 7, Until: 1800000100, Cells: []core.Cell{{Floor: now, Add: 120}}}
	}
	clocks := func(a, b int64) core.Row {
		return core.Row{Key: addressKey(9), Plan: 8, Until: 1800000100, Cells: []core.Cell{{Floor: a, Add: 120}, {Slot: 1, Floor: b, Add: 7}}}
	}
	refund := func(epoch int64) core.Row {
		return row(epoch, core.Cell{Slot: 2, Add: -1}, core.Cell{Slot: 0, Add: -1})
	}
	for _, step := range []struct {
		state                string
		rows                 []core.Row
		want                 [][]int64
		writes, reads, trips int
	}{
		{"first hit", []core.Row{hit(1)}, [][]int64{{1, 0, 1}}, 1, 0, 1},
		{"steady", []core.Row{hit(1)}, [][]int64{{2, 0, 2}}, 1, 0, 1},
		{"next hour", []core.Row{hit(2)}, [][]int64{{1, 2, 3}}, 1, 0, 1},
		{"epoch's first hour", []core.Row{
			row(20606, core.Cell{Slot: 1, Add: 1}, core.Cell{Slot: 0, Add: 1}),
			row(20605, core.Cell{Slot: 3}, core.Cell{Slot: 24}),
		}, [][]int64{{1, 1}, {1, 0}}, 1, 1, 1},
		{"read of nothing", []core.Row{row(20600, core.Cell{Slot: 3})}, [][]int64{{0}}, 0, 1, 1},
		{"refund", []core.Row{refund(20605)}, [][]int64{{1, 2}}, 1, 0, 1},
		{"refund to zero", []core.Row{refund(20605)}, [][]int64{{0, 1}}, 1, 0, 1},
		// dynalite does not send the record with a failed condition, hence a read;
		// DynamoDB does, so there the read falls away.
		{"refund below zero", []core.Row{refund(20605)}, [][]int64{{0, 0}}, 2, 1, 3},
		{"count after it", []core.Row{hit(1)}, [][]int64{{1, 0, 1}}, 1, 0, 1},
		{"refund of nothing", []core.Row{refund(20599)}, [][]int64{{0, 0}}, 1, 1, 2},
		{"which made nothing", []core.Row{row(20599, core.Cell{Slot: 2})}, [][]int64{{0}}, 0, 1, 1},
		{"new clock", []core.Row{clock(1000)}, [][]int64{{1120}}, 2, 0, 2},
		{"busy clock", []core.Row{clock(1001)}, [][]int64{{1240}}, 1, 0, 1},
		{"idle clock", []core.Row{clock(5000)}, [][]int64{{5120}}, 2, 0, 2},
		{"two new clocks", []core.Row{clocks(1000, 2000)}, [][]int64{{1120, 2007}}, 2, 0, 2},
		{"two busy clocks", []core.Row{clocks(1000, 2000)}, [][]int64{{1240, 2014}}, 1, 0, 1},
		{"empty row", []core.Row{row(20605)}, [][]int64{nil}, 0, 0, 0},
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
		writes, reads, in, out := front.take()
		t.Logf("%-20s %d writes, %d reads, bodies: %d bytes up, %d down", step.state, writes, reads, in, out)
		if writes != step.writes || reads != step.reads {
			t.Errorf("%s: %d writes and %d reads reached the server, want %d and %d", step.state, writes, reads, step.writes, step.reads)
		}
		w1, r1, t1 := s.Operations()
		if w1-w0 != int64(step.writes) || r1-r0 != int64(step.reads) || t1-t0 != int64(step.trips) {
			t.Errorf("%s: Operations rose by %d, %d, %d; want %d, %d, %d", step.state, w1-w0, r1-r0, t1-t0, step.writes, step.reads, step.trips)
		}
	}
}

// stored reads a record as another program would see it.
func stored(t *testing.T, server *dynamodbtest.Server, s *Store, r core.Row) item {
	t.Helper()
	found, err := lookUp(server.Client(), s, &r)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// testExpiry asserts that the item expires with its row, from the first hit on,
// that a refund does not lose the expiry, and that reads leave nothing behind.
func testExpiry(t *testing.T, server *dynamodbtest.Server) {
	s := open(t, server.Endpoint())
	r := row(20605, core.Cell{Slot: 0, Add: 1}, core.Cell{Slot: 1})
	for range 2 {
		must(t, s, r)
		if got := number(stored(t, server, s, r)["ttl"]); got != r.Until {
			t.Errorf("ttl = %d, want %d", got, r.Until)
		}
	}
	must(t, s, row(20605, core.Cell{Slot: 0, Add: -1}))
	found := stored(t, server, s, r)
	if got := number(found["ttl"]); got != r.Until {
		t.Errorf("after a refund ttl = %d, want %d", got, r.Until)
	}
	if len(found) != 3 {
		t.Errorf("attributes %v, want pk, ttl and s0 only", found)
	}
}

// testHostileRecord asserts that an item in which somebody wrote nonsense yields
// no negative count, and an error that proves the record unchanged where DynamoDB
// cannot count.
func testHostileRecord(t *testing.T, server *dynamodbtest.Server) {
	s := open(t, server.Endpoint())
	r := row(20605, core.Cell{Slot: 0, Add: 1})
	bad := record(s.cfg.Namer.Name(&r))
	bad["s0"] = &types.AttributeValueMemberS{Value: "many"}
	bad["s1"] = &types.AttributeValueMemberN{Value: "-5"}
	bad["s2"] = &types.AttributeValueMemberN{Value: "2.5"}
	bad["s3"] = &types.AttributeValueMemberN{Value: "1e30"}
	if _, err := server.Client().PutItem(t.Context(), &ddb.PutItemInput{TableName: aws.String(table), Item: bad}); err != nil {
		t.Fatal(err)
	}
	got := must(t, s, row(20605, core.Cell{Slot: 0}, core.Cell{Slot: 1}, core.Cell{Slot: 2}, core.Cell{Slot: 3}))
	if want := []int64{0, 0, 2, 1<<63 - 1}; !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	if err := apply(t, s, r); !errors.Is(err, core.ErrNotApplied) {
		t.Errorf("counting on text: %v, want ErrNotApplied", err)
	}
}

// test64Ways asserts that nothing is lost, nothing is counted twice and no two
// hits see the same count: on one record, on many, and on a clock, whose
// conditional writes race.
func test64Ways(t *testing.T, server *dynamodbtest.Server) {
	const ways, each = 64, 10
	s := open(t, server.Endpoint())
	own := func(way int, add int64) core.Row {
		r := row(20605, core.Cell{Slot: 0, Add: add})
		r.Key = core.Key{Kind: rows.User, ID: fmt.Sprint("user ", way)}
		return r
	}
	const start, interval = 1_700_000_000_000_000, 1_000_000_000
	clock := func(now int64) core.Row {
		return core.Row{Key: addressKey(9), Plan: 7, Until: 1800000100, Cells: []core.Cell{{Floor: now, Add: interval}}}
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = map[string]bool{}
	)
	for way := range ways {
		wg.Go(func() {
			for i := range each {
				hot, tick := row(20605, core.Cell{Slot: 0, Add: 1}), clock(start)
				if err := apply(t, s, hot, own(way, 1), tick); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, key := range []string{"hot " + strconv.FormatInt(hot.Cells[0].Value, 10), "clock " + strconv.FormatInt(tick.Cells[0].Value, 10)} {
					if seen[key] {
						t.Errorf("hit %d of way %d got %s, as another did", i, way, key)
					}
					seen[key] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got := must(t, s, row(20605, core.Cell{Slot: 0})); got[0] != ways*each {
		t.Errorf("hot record = %d, want %d", got[0], ways*each)
	}
	r := clock(0)
	r.Cells[0].Add = 0
	if got := must(t, s, r); got[0] != start+ways*each*interval {
		t.Errorf("clock = start + %d intervals, want %d", (got[0]-start)/interval, ways*each)
	}
	for way := range ways {
		if got := must(t, s, own(way, 0)); got[0] != each {
			t.Errorf("record of way %d = %d, want %d", way, got[0], each)
		}
	}
}
