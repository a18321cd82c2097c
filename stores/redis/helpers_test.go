package redis_test

import (
	"context"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis"
)

// began is the time of every row: a row that lived a second longer than it was
// told before would rightly have its expiry set again.
var began = time.Now().Unix()

// row is a row of today's epoch: slots 0 to 23 the hours, 24 the day.
func row(id string, cells ...core.Cell) core.Row {
	return core.Row{Key: core.Key{Kind: rows.User, ID: id}, Plan: 7, Epoch: began / 86400, Start: began / 86400 * 86400,
		Until: began + 7200, Cells: cells}
}

// yesterday is the row of the epoch before, read in the first hour of a day.
func yesterday(id string, cells ...core.Cell) core.Row {
	r := row(id, cells...)
	r.Epoch--
	r.Start -= 86400
	return r
}

func clockRow(id string, until int64, cells ...core.Cell) core.Row {
	r := row(id, cells...)
	r.Epoch, r.Start, r.Until = 0, 0, until
	return r
}

func count(slot uint16) core.Cell  { return core.Cell{Slot: slot, Add: 1} }
func read(slot uint16) core.Cell   { return core.Cell{Slot: slot} }
func refund(slot uint16) core.Cell { return core.Cell{Slot: slot, Add: -1} }

// hit is a counted navigation: hour, previous hour, day.
func hit(id string) core.Row { return row(id, count(10), read(9), count(24)) }

func apply(ctx context.Context, s *redis.Store, list ...core.Row) (*core.Batch, error) {
	b := &core.Batch{Now: time.Now(), Rows: list}
	return b, s.Apply(ctx, b)
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
