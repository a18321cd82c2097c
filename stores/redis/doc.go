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
//	a new connection                                                HELLO, with a password AUTH, with a database SELECT
//
// # Connections and concurrency
//
// All hits share one connection per node (Config.Pool), and their replies come back
// in order. A hit that is alone writes and reads in its caller's goroutine; from the
// first two at once on, one goroutine writes what has gathered and one reads.
// Both sleep while nobody asks. No timer runs between hits, nothing is sent that no
// hit asked for, and no hit waits for others on purpose.
//
// A process that is paused and goes on (a serverless platform between two requests)
// finds its connection as it was. If the server has closed it meanwhile, the next
// hit sees that before it is sent, and goes out on a new connection. If it was dropped
// without a word (NAT), the hits on their way meet their own deadline and their
// outcome is unknown; a connection that was silent for so long is replaced, and at
// most one that is replaced lives on beside the new one, for those still waiting.
//
// # At most once
//
// Nothing is sent twice: the client library's retries are off, each of its clients
// is one connection that it may not dial again, and its cluster client is not used
// (see nodes). An error wraps core.ErrNotApplied when the request was never handed to
// a connection (dial refused, handshake failed, wrong password, deadline before
// there was a connection or a place on it) or when the server refused the command
// (OOM, READONLY, NOAUTH, LOADING, MOVED …). After any other error the outcome is
// unknown.
//
// # Rights
//
// An ACL user needs: +bitfield +bitfield_ro +expireat, in a cluster
// +cluster|slots and +asking, and for a complete Probe +info +time; keys ~SITE:*.
package redis
