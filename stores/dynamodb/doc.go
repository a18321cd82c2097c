// Package dynamodb keeps rows in an Amazon DynamoDB table, one item per row,
// without a transaction and, for window counters, without a read.
//
// A counted navigation is one UpdateItem: ADD for the counters, SET for the
// expiry, and the new values in the answer. The SDK's retries are switched off,
// since a retry after a lost reply counts twice; nothing is ever sent again whose
// outcome is unknown.
//
// # What an algorithm costs
//
// Billed units and round trips of one hit, for items up to 1 KB (larger items are
// billed by the KB; a day of hourly windows for one address is about 0.3 KB):
//
//	fixed window, sliding window counter    1 WRU, 1 trip: all buckets of one key together
//	sliding window log (61 cells)           1 WRU, 1 trip
//	token bucket, GCRA                      1 WRU, 1 trip while the key is busy;
//	                                        2 WRU, 2 trips when it is new or was idle
//	first window of an epoch                + 1 RRU in the same trip (the previous epoch's item)
//	refund of a denied hit                  1 WRU, 1 trip
//	a record's life                         0: expiry by TTL is free
//
// A cell that is only read inside a row that is written costs nothing: the answer
// holds the whole item (ALL_NEW), whose values are strongly consistent and free.
// Where every cell of the row is changed, only those come back (UPDATED_NEW).
//
// # Clocks
//
// DynamoDB has no maximum, so max(cell, Floor) + Add is a conditional write: with
// the condition cell >= Floor it adds, else it sets Floor + Add on the condition
// that the cell is absent or smaller. A failed condition proves that nothing was
// written, so trying the other branch is no resending; a race between instances
// may take a third trip, and after five the row fails as throttled. A failed
// condition is billed like a write. The same scheme keeps cells from going below
// zero: a refund has the conditions that the item exists and that each cell holds
// what is taken from it.
//
// # Reads
//
// A row that is only read is a GetItem with ConsistentRead, 1 RRU instead of 0.5:
// it happens once per key and epoch and algorithm, and the last hits of the
// previous window would otherwise be missing for a moment.
//
// # Records
//
// The table has a partition key named pk of type string, no sort key, and TTL on
// the attribute ttl, which somebody has to switch on (Probe says so). The key is
// made by rows.Namer; slot 12 is the attribute s12. DynamoDB deletes expired items
// within a few days and returns them until then. That is harmless: the epoch is
// part of the name, so an expired item is never asked for.
//
// # Outcomes
//
// An error wraps core.ErrNotApplied when the request never got a connection, or
// when DynamoDB refused it with a client error (throttling among them: a request
// that is denied for its rate was not performed). After a deadline, a broken
// connection or a server error the outcome is unknown. One item takes 1,000 write
// units per second; own rows never get there, since their limit bounds their rate,
// while outer rows must be coalesced.
package dynamodb
