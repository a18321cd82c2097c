package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/stilehq/stile/core/rows"
)

// The words of the store contract live in package rows, which is pure; they are
// named here so that a store needs to know core only.
type (
	// Key names what is counted.
	Key = rows.Key
	// Kind says what a Key counts.
	Kind = rows.Kind
	// Cell is one integer of a row.
	Cell = rows.Cell
	// Row is one stored record and one billed operation.
	Row = rows.Row
	// Batch is what one trip carries.
	Batch = rows.Batch
)

// ErrNotApplied marks an error that proves a row unchanged: a breaker was open,
// a dial was refused, the request was never written. After any other error the
// outcome is unknown, and nobody may send the row again.
var ErrNotApplied = errors.New("not applied")

// ErrUnsupported marks a row that a store cannot hold, for example a clock cell
// in a store of plain counters. It is an ErrNotApplied: the row is unchanged.
// `policy check` reports such policies before they run.
var ErrUnsupported = fmt.Errorf("not supported by this store: %w", ErrNotApplied)

// ErrSpent marks rows that were not sent because the store's spending limit is
// reached. It is used together with ErrNotApplied. Whatever the failure policy,
// counting is local meanwhile: a spray of new addresses must not become a bill.
var ErrSpent = errors.New("the store's spending limit is reached")

// A Store holds rows that instances share. It knows no limit, no window and no
// algorithm.
type Store interface {
	// Apply performs the rows of b in one round trip and sets every Cell.Value
	// and Row.Err. Each row is atomic, and independent of the others. A row that
	// does not write (see Row.Writes) is read and not created; a row that does
	// not create (refunds) never creates a record. At most once: a row is never
	// resent, by an SDK or by hand. Apply is safe for concurrent use with
	// different batches and returns the first row's Err.
	Apply(ctx context.Context, b *Batch) error
	// Close ends background work and connections. Apply after Close returns an
	// error that wraps ErrNotApplied.
	Close() error
}

// A Settler is a Store with work left over after Apply, such as the expiry of a
// record that Apply found to be new, or a due flush of coalesced hits. Settle
// does it in at most one round trip and returns when it is done. It is called
// beside the origin request and awaited before the handler returns, since on a
// serverless platform nothing runs afterwards. With nothing to do it returns
// nil at once and costs no operation. Safe for concurrent use.
type Settler interface {
	Settle(ctx context.Context) error
}

// Features is what a store can do beyond window counters, declared so that a
// policy can be refused before it runs.
type Features struct {
	Name        string // "memory", "redis", ...: as in the log field "store"
	Shared      bool   // instances see one another's counts
	Clocks      bool   // cells with a Floor: token bucket and GCRA
	MaxCells    int    // the most cells in one row; 0 = no bound below rows.MaxSlots
	RetainsRows bool   // rows survive a restart of this process
}

// A Featurer declares its features. A Store that does not implement it is taken
// for one that can do everything and shares nothing. Wrappers pass the inner
// store's features on.
type Featurer interface {
	Features() Features
}
