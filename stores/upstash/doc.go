// Package upstash keeps rows in an Upstash Redis database over its REST API, with
// a thin client of its own: the vendor names no Go client that the module proxy
// has. The commands are those of package bitfield, shared with stores/redis.
//
// # What it costs
//
// Upstash bills each command, also those inside scripts and pipelines. Hence no
// script, and one BITFIELD per row:
//
//	fixed window, sliding window counter (all buckets of one key)   1 command
//	sliding window log (as 60 sub-windows)                          1 command
//	token bucket, GCRA (their own row)                              1 command
//	first hit of a record                                           +1 EXPIREAT
//	first window of an epoch (sliding)                              +1 BITFIELD_RO, same request
//	refund of a denied hit                                          +1 command
//	repeat of a denied key (core's deny memory)                     0
//
// A global database bills each write once more per read region. All rows of a
// batch and the expiries that wait go out in one request: POST / for a single
// command, POST /pipeline for more.
//
// # At most once
//
// No request is sent again by this package, and net/http does so only when not a
// byte was written. An error proves that the row is unchanged (core.ErrNotApplied)
// when no connection was got, or when the service refused: HTTP 3xx, 401, 403,
// 404, 405, 413, 429, or an error text that Redis gives before it runs a command.
// Everything else, HTTP 5xx and an unknown text among it, leaves the outcome
// unknown.
//
// A database above its commands per second makes commands wait and reports
// nothing, so every call has a deadline of its own (Config.Timeout).
//
// The service replicates asynchronously: after the loss of a leader some last
// increments may be missing. Counting through the leader returns exact values.
package upstash
