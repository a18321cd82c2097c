package dynamodb

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
)

const table = "stile"

// open returns a store at endpoint whose records nobody else sees.
func open(tb testing.TB, endpoint string) *Store {
	tb.Helper()
	return openSite(tb, endpoint, tb.Name())
}

// openSite returns a store at endpoint with the records of a site.
func openSite(tb testing.TB, endpoint, site string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), Config{Table: table, Endpoint: endpoint, Namer: rows.Namer{Site: site}})
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

func TestDynalite(t *testing.T) {
	t.Parallel()
	server := dynamodbtest.Start(t)
	server.CreateTable(t, table)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *dynamodbtest.Server)
	}{
		{"operations", testOperations},
		{"expiry", testExpiry},
		{"hostile record", testHostileRecord},
		{"64 ways", test64Ways},
		{"probe", testProbe},
		{"conformance", testConformance},
	} {
		t.Run(test.name, func(t *testing.T) { t.Parallel(); test.run(t, server) })
	}
}
