package firestore

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/firestore/firestoretest"
)

// rpcs counts what leaves the client, by method: the emulator has no counters,
// and below the interceptor nothing is resent (retries are off, see sent.go).
type rpcs struct {
	mu     sync.Mutex
	byName map[string]int
}

func (c *rpcs) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil {
		c.byName = map[string]int{}
	}
	c.byName[method]++
}

// take returns the number of commits and reads since the last call.
func (c *rpcs) take() (commits, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commits = c.byName["/google.firestore.v1.Firestore/Commit"]
	reads = c.byName["/google.firestore.v1.Firestore/BatchGetDocuments"]
	c.byName = nil
	return commits, reads
}

func (c *rpcs) options() []option.ClientOption {
	return []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
			cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			c.add(method)
			return invoke(ctx, method, req, reply, cc, opts...)
		})),
		option.WithGRPCDialOption(grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
			method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			c.add(method)
			return stream(ctx, desc, cc, method, opts...)
		})),
	}
}

// open returns a store at addr whose records nobody else sees.
func open(tb testing.TB, addr string, options ...option.ClientOption) *Store {
	tb.Helper()
	return openSite(tb, addr, tb.Name(), options...)
}

// openSite returns a store at addr with the records of a site.
func openSite(tb testing.TB, addr, site string, options ...option.ClientOption) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), Config{
		Project: "stile-test", Emulator: addr, Namer: rows.Namer{Site: site}, Options: options,
		ConnectTimeout: 20 * time.Second, // an emulator on a busy machine
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func addressKey(n byte) core.Key {
	return core.Key{Kind: rows.Address, Net: netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, n}), 32)}
}

const day = 86400

// row returns a row of the day epoch with the given cells.
func row(epoch int64, cells ...core.Cell) core.Row {
	return core.Row{Key: addressKey(9), Plan: 0x9f3a01c2, Epoch: epoch, Start: epoch * day, Until: (epoch + 2) * day, Cells: cells}
}

func apply(tb testing.TB, s core.Store, list ...core.Row) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	return s.Apply(ctx, &core.Batch{Now: time.Now(), Rows: list})
}

// must applies one row and returns its values.
func must(tb testing.TB, s core.Store, r core.Row) []int64 {
	tb.Helper()
	if err := apply(tb, s, r); err != nil {
		tb.Fatal(err)
	}
	return values(r)
}

func values(r core.Row) (list []int64) {
	for _, c := range r.Cells {
		list = append(list, c.Value)
	}
	return list
}

func TestEmulator(t *testing.T) {
	t.Parallel()
	addr := firestoretest.Start(t).Addr
	for _, test := range []struct {
		name string
		run  func(*testing.T, string)
	}{
		{"operations", testOperations},
		{"expiry", testExpiry},
		{"hostile record", testHostileRecord},
		{"64 ways", test64Ways},
		{"probe", testProbeEmulator},
		{"conformance", testConformance},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); test.run(t, addr) })
	}
}

func TestCloseProvesNothingApplied(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Project: "stile-test", Emulator: "127.0.0.1:1", ConnectTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := apply(t, s, row(1, core.Cell{Add: 1})); !errors.Is(err, core.ErrNotApplied) {
		t.Fatalf("after Close: %v, want ErrNotApplied", err)
	}
}
