// Package memory is core.Store in the memory of one process: a sharded table,
// bounded, exact under concurrency, without any goroutine.
//
// It counts for this process only. With N instances the effective limit is up
// to N times the policy's, and what it knows is lost with the process; use it
// in front of one site, in tests and replays, and as the local half of
// wrappers. Every call's time is Batch.Now; the store reads no clock.
//
// # Cost
//
// A hit of one row costs one hash, one short lock and about two cache misses,
// and no allocation when the row exists. A record takes 48 bytes and its index
// entry 5 to 11: below 64 bytes for a key with up to four live cells (hour and
// day: today, this hour, the previous one, and one more in its grace time), or
// with one clock cell. A row with more cells takes 16 bytes per cell more, in
// lists that double: a 61-cell sliding log about 1.1 KB. [New] allocates a few
// kilobytes; memory grows with the keys and shrinks when a crowd has gone.
//
// # Exactness
//
// Rows are identified by a 128-bit SipHash-2-4 under a random secret of the
// store, not by their key, so an 8 KB id costs no more than an address. Two of
// n rows meet with a probability of about n²/2¹²⁹, for a million live rows
// 2⁻⁸⁹, and nobody can search for such a pair without the secret. Nothing else
// is approximate: no hit is ever dropped, merged or sampled.
//
// # Time
//
// A cell or record is forgotten 15 minutes after its Until (cells up to 64
// seconds later still), by the earlier of the last two batches' times. A clock
// that goes back by up to 15 minutes therefore finds every live count, and one
// stray batch dated in the future forgets nothing. Forgotten records are swept
// by the arrival of new ones, four looked at for each.
//
// # Pressure
//
// Config.MaxKeys bounds the records. In a full table each new row still gets a
// record and is counted: it takes the place of a record that is over, else of a
// live one, chosen by how often records were hit in their life, in classes of
// 1, 2–3, 4–7, … 64–127, 128 and more hits. Victims are the lowest classes
// that together make up at least an eighth of the (hash-picked) shard, the
// oldest first. From this follows, for each shard:
//
//   - A live record of h hits is displaced only while more than seven eighths of
//     the records have as many hits, by class, or more. A spray of any number of
//     addresses with m hits each displaces no record of a higher class than m's
//     until the higher classes themselves fill seven eighths.
//   - So whoever wants a record of h hits forgotten needs about 7/8·MaxKeys other
//     keys of at least half as many hits each, within the record's life.
//   - A newcomer is not displaced before about MaxKeys/8 newer ones have come (in
//     its shard, in proportion): a client that returns sooner rises a class.
//
// Displaced live records are counted in [Stats].
package memory
