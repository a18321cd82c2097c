// Package rows is the pure part of the store contract: the records that
// instances share, how calendar time maps to places in them, and how they are
// named. It does no I/O, reads no clock and imports only the standard library.
//
// A [Row] is one stored record: the counters of one [Key] in one calendar
// epoch. A row never needs a reset: the next epoch has another name, and the
// record expires by itself.
package rows

import (
	"net/netip"
	"time"
)

// Kind says what a [Key] counts. The zero Kind is invalid.
type Kind uint8

// The kinds of key, in the order in which the charge loop visits them: the
// first four are "own" keys (a request has exactly one), the others "outer".
const (
	Address Kind = 1 + iota // one client address (IPv6: its prefix)
	Cookie                  // one signed visitor cookie
	User                    // one signed-in user
	APIKey                  // one API key
	Network                 // the IPv4 /24 or IPv6 /48 around the client
	ASN                     // one autonomous system
	Header                  // a proven edge's fingerprint header
	Global                  // the whole site
)

// Own reports whether k identifies the one party that a request is charged to.
func (k Kind) Own() bool { return k >= Address && k <= APIKey }

// String returns the word that policy files, record names and logs use.
func (k Kind) String() string {
	switch k {
	case Address:
		return "address"
	case Cookie:
		return "cookie"
	case User:
		return "user"
	case APIKey:
		return "api-key"
	case Network:
		return "network"
	case ASN:
		return "asn"
	case Header:
		return "header"
	case Global:
		return "global"
	}
	return "invalid"
}

// A Key names what is counted. Keys are comparable; an address or network key
// costs no allocation.
type Key struct {
	Kind Kind
	Net  netip.Prefix // Address and Network only: masked, unmapped, without zone
	ID   string       // every other kind; may hold any bytes
}

// A Cell is one integer of a row. A store does, for each cell in order,
//
//	cell = max(cell, Floor) + Add, not below 0;  Value = cell
//
// where an absent cell is 0. A count is {Add: 1}, a read is {}, a refund is
// {Add: -1}; a clock (GCRA, token bucket) is {Floor: now, Add: interval} in
// microseconds. Values stay within 0 .. 1<<62.
type Cell struct {
	Slot  uint16 // place in the row, below [MaxSlots]; only the planner knows which window it is
	Until int64  // Unix seconds after which nobody asks for the cell; memory may recycle it
	Floor int64  // raise the cell to at least this before adding; 0 = no floor
	Add   int64  // added after the floor; negative for refunds
	Value int64  // set by Apply: the cell right after this very step

	// Ceiling is advice for a coalescing wrapper: the value at which the bucket
	// is full. 0 means that the cell must not be coalesced. Drivers ignore it.
	Ceiling int64
}

// MaxSlots bounds Cell.Slot: one row has at most this many places.
const MaxSlots = 256

// A Row is one stored record and one billed operation.
type Row struct {
	Key   Key
	Plan  uint32 // fingerprint of what the slots mean: another layout, another record
	Epoch int64  // calendar epoch; 0 for rows of clocks
	Start int64  // Unix seconds at which the epoch began; 0 for rows of clocks
	Until int64  // Unix seconds of the record's expiry; the same for every hit of an epoch, moving only in rows of clocks
	Cells []Cell
	Err   error // set by Apply

	// MaxAge is advice for a coalescing wrapper: how long hits of this row may
	// stay unreported. 0 means that they must be sent at once. Drivers ignore it.
	MaxAge time.Duration
}

// Writes reports whether applying r can change the record: some cell has an
// Add or a Floor. A row that does not write is a read and must not create one.
func (r *Row) Writes() bool {
	for i := range r.Cells {
		if r.Cells[i].Add != 0 || r.Cells[i].Floor != 0 {
			return true
		}
	}
	return false
}

// Creates reports whether applying r may create the record. Reads and pure
// refunds never do.
func (r *Row) Creates() bool {
	for i := range r.Cells {
		if r.Cells[i].Add > 0 || r.Cells[i].Floor != 0 {
			return true
		}
	}
	return false
}

// A Batch is what one trip carries. Batches are pooled: a store keeps nothing
// of one after Apply has returned.
type Batch struct {
	Now  time.Time // the caller's clock (in replay: the log's); a store has none of its own
	Rows []Row
}
