package bench_test

import (
	"context"
	"encoding/json"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/bench"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
	"github.com/stilehq/stile/stores/firestore/firestoretest"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/upstash/upstashtest"
)

// With -record DIR the tests measure at length and write their results there:
//
//	go test ./bench -run TestMeasure -record results -parallel 1
//
// The folder is relative to this one.
var record = flag.String("record", "", "measure at length and write the results into this folder")

// an operation count by state: writes, reads, expiries, round trips.
type bill [4]int64

const navigations = 8

// measure runs a measurement and checks it against bills per navigation.
func measure(t *testing.T, url, server string, env map[string]string, want map[string]bill) *bench.Result {
	t.Helper()
	registry, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	c := bench.Config{
		URL: url, Registry: registry, Getenv: func(n string) string { return env[n] }, Server: server,
		Navigations: navigations, Duration: 50 * time.Millisecond, Keys: 64,
	}
	if *record != "" {
		c.Navigations, c.Duration, c.Keys = 256, 3*time.Second, 4096
	}
	r, err := bench.Measure(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for name, per := range want {
		s, ok := r.State(name)
		if !ok {
			t.Errorf("no state %s", name)
			continue
		}
		got := bill{s.Writes, s.Reads, s.Expiries, s.Trips}
		for i := range per {
			per[i] *= s.Navigations
		}
		if got != per {
			t.Errorf("%s: %v writes, reads, expiries, trips of %d navigations, want %v", name, got, s.Navigations, per)
		}
	}
	for _, name := range []string{bench.StateOuter2, bench.StateOuter20, bench.StateOuter80} {
		s, _ := r.State(name)
		if per := float64(s.Operations()) / float64(s.Navigations); r.Store.Name != "memory" && (per < 1 || per > 1.5) {
			t.Errorf("%s: %.2f operations a navigation, want 1 to 1.5", name, per)
		}
	}
	for _, l := range r.Loads {
		if l.Errors > 0 || l.Decisions == 0 || l.P50 <= 0 || l.P50 > l.P99 {
			t.Errorf("load: %+v", l)
		}
	}
	if len(r.Loads) != 4 {
		t.Errorf("%d loads, want 4", len(r.Loads))
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"test-token", "127.0.0.1"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the result shows %s", secret)
		}
	}
	if *record != "" {
		name, err := r.Write(*record)
		if err != nil {
			t.Fatal(err)
		}
		t.Log("wrote", name)
	}
	return r
}

// bytesSeen asserts that each state but the refused one's repeat moved bytes.
func bytesSeen(t *testing.T, r *bench.Result) {
	t.Helper()
	for _, s := range r.States {
		quiet := s.Name == bench.StateRepeat
		if s.BytesOut == nil || s.BytesIn == nil || (*s.BytesOut == 0) != quiet || (*s.BytesIn == 0) != quiet {
			t.Errorf("%s: bytes %v out, %v in", s.Name, s.BytesOut, s.BytesIn)
		}
	}
}

// Stores whose records expire by an operation of their own pay for it once, and
// a round trip beside the origin's answer.
var commandBills = map[string]bill{
	bench.StateFirst:  {1, 0, 1, 2},
	bench.StateSteady: {1, 0, 0, 1},
	bench.StateEdge:   {1, 1, 0, 1},
	bench.StateDenied: {2, 0, 0, 2},
	bench.StateRepeat: {0, 0, 0, 0},
}

// Stores that write the expiry with the counters.
var recordBills = map[string]bill{
	bench.StateFirst:  {1, 0, 0, 1},
	bench.StateSteady: {1, 0, 0, 1},
	bench.StateEdge:   {1, 1, 0, 1},
	bench.StateDenied: {2, 0, 0, 2},
	bench.StateRepeat: {0, 0, 0, 0},
}

func TestMeasureMemory(t *testing.T) {
	none := map[string]bill{}
	for name := range recordBills {
		none[name] = bill{}
	}
	r := measure(t, "memory:", "", nil, none)
	if r.Floor != nil || r.Store.Kind != bench.KindInProcess || r.States[0].BytesOut != nil {
		t.Errorf("memory: %+v", r)
	}
}

func TestMeasureRedis(t *testing.T) {
	server := redistest.Start(t)
	r := measure(t, "redis://"+server.Addr, "", nil, commandBills)
	bytesSeen(t, r)
	if r.Store.Kind != bench.KindReal || !r.Store.Loopback || r.Floor == nil || r.Floor.P50 <= 0 || r.Store.Server == "unknown" {
		t.Errorf("redis: %+v, floor %+v", r.Store, r.Floor)
	}
	// What the client says was sent is what the server has executed, since no one
	// else is there: BITFIELD, BITFIELD_RO and EXPIREAT, and no script.
	for name, n := range server.Calls() {
		if strings.HasPrefix(name, "eval") || strings.HasPrefix(name, "multi") {
			t.Errorf("%d calls of %s", n, name)
		}
	}
}

func TestMeasureUpstash(t *testing.T) {
	server := redistest.Start(t)
	front := upstashtest.Start(t, server.Client())
	r := measure(t, "upstash://", "own REST front over Redis", map[string]string{
		"UPSTASH_REDIS_REST_URL": front.URL, "UPSTASH_REDIS_REST_TOKEN": front.Token,
	}, commandBills)
	bytesSeen(t, r)
	if r.Store.Kind != bench.KindFront || r.Floor == nil {
		t.Errorf("upstash: %+v, floor %+v", r.Store, r.Floor)
	}
}

func TestMeasureFirestore(t *testing.T) {
	server := firestoretest.Start(t)
	r := measure(t, "firestore://demo-bench", "Firestore emulator", map[string]string{"FIRESTORE_EMULATOR_HOST": server.Addr}, recordBills)
	bytesSeen(t, r)
	if r.Store.Kind != bench.KindEmulator || r.Floor == nil {
		t.Errorf("firestore: %+v, floor %+v", r.Store, r.Floor)
	}
}

func TestMeasureDynamoDB(t *testing.T) {
	server := dynamodbtest.Start(t)
	server.CreateTable(t, "bench")
	r := measure(t, "dynamodb://bench?region=us-east-1&endpoint="+server.Endpoint(), "dynalite", nil, recordBills)
	bytesSeen(t, r)
	if r.Store.Kind != bench.KindEmulator || r.Floor == nil {
		t.Errorf("dynamodb: %+v, floor %+v", r.Store, r.Floor)
	}
}

// TestMeasureWrongly: what cannot be measured is an error, not a result.
func TestMeasureWrongly(t *testing.T) {
	t.Parallel()
	registry, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]bench.Config{
		"no such store": {URL: "frob://x", Registry: registry},
		"nobody there":  {URL: "redis://127.0.0.1:1", Registry: registry},
		"odd keys":      {URL: "memory:", Registry: registry, Keys: 1000},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if r, err := bench.Measure(ctx, c); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
		cancel()
	}
}
