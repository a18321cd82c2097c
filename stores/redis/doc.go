// Package redis keeps rows in a Redis or Valkey server (Memorystore, ElastiCache,
// self-hosted), single or cluster, with one BITFIELD command per row and no script
// (package bitfield has the layout).
//
// # What it costs
//
//	fixed window, sliding window counter (all buckets of one key)   1 command, 1 trip
//	sliding window log (as 60 sub-windows: 61 cells)                1 command, 1 trip, about 750 bytes
//	token bucket, GCRA (their own row)                              1 command, same trip
//	first hit of a record                                           +1 EXPIREAT, by Settle or in the next trip of any key
//	first window of an epoch (sliding)                              +1 BITFIELD_RO, same trip
//	refund of a denied hit                                          +1 command, +1 trip
//	repeat of a denied key (core's deny memory)                     0
//
// # Connections and concurrency
//
// At most Config.Pool pipelines per node are in flight. While all are, further
// calls wait in a queue, and what has gathered goes out as one pipeline: 64
// concurrent hits cost a few writes and reads. There is no timer, no delay and no
// standing goroutine; nothing runs when nobody waits, except that the client library
// looks once a second for a server whose dials have failed.
//
// # At most once
//
// Nothing is resent after its first byte may have left: the client's retries are
// off, and its cluster client is not used (see nodes). An error wraps
// core.ErrNotApplied when the request was not begun to be written (dial refused,
// handshake failed, wrong password, deadline in the queue) or when the server
// refused the command (OOM, READONLY, NOAUTH, LOADING, MOVED …). After any other
// error the outcome is unknown.
//
// # Rights
//
// An ACL user needs: +bitfield +bitfield_ro +expireat +ping, in a cluster
// +cluster|slots, and for a complete Probe +info +time; keys ~SITE:*.
package redis
