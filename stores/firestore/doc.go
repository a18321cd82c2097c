// Package firestore keeps rows in Google Cloud Firestore (Native mode), one
// document per row, without a transaction and without a read.
//
// A counted navigation is one Commit RPC that holds one Write: field transforms
// for the counters and a masked plain field for the expiry. Firestore answers
// with the transforms' results, so the new counts come back with the write. The
// high-level client drops those results, hence cloud.google.com/go/firestore/apiv1.
// That client retries Commit on its own, which would count twice when a reply is
// lost; its retries are switched off here. The one answer after which a Commit is
// sent again is ABORTED, a few times within the deadline: it was rolled back.
//
// # What an algorithm costs
//
// Billed operations and round trips of one hit (Standard edition; the Enterprise
// edition bills the same write in units of 1 KiB):
//
//	fixed window, sliding window counter    1 write, 1 trip: all buckets of one key together
//	sliding window log (61 cells)           1 write, 1 trip
//	token bucket, GCRA                      1 write, 1 trip: maximum and increment on one field
//	first window of an epoch                + 1 read in the same trip (the previous epoch's document)
//	refund of a denied hit                  1 write, 1 trip
//	a record's life                         1 delete by the TTL policy, some time later
//
// A cell that is only read inside a row that is written costs nothing: it is an
// increment by 0, which also leaves a zero in the document.
//
// # Not below zero
//
// A cell can be lowered by a refund only, and a refund is two transforms on one
// field in the same write: increment by -n, then maximum with 0. The stored value
// is therefore never negative and nothing has to be clamped afterwards. Refunds
// carry the precondition that the document exists: a document that has expired
// meanwhile is not created again, and its cells read as zero.
//
// # Records
//
// A document is named by rows.Namer; slot 12 is the field s12, and the expiry is
// the field exp, the target of the TTL policy that somebody has to switch on
// (Probe says so). Firestore deletes late, typically within a day, and returns
// expired documents until then. That is harmless: the epoch is part of the name,
// so an expired document is never asked for. Every field, exp above all, should be
// exempt from indexing: the indexes cost storage, and a rising indexed timestamp
// limits a collection to 500 writes a second.
//
// # Outcomes
//
// An error wraps core.ErrNotApplied when the request was never handed to a
// connection, or when the server refused it with a code that means that nothing
// was written (contention and exhausted quotas among them). After a deadline, a
// lost connection or an internal error the outcome is unknown. One document takes
// only some writes per second before Firestore answers ABORTED; own rows never get
// there, since their limit bounds their rate, while outer rows must be coalesced.
package firestore
