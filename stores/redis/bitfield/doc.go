// Package bitfield writes a row as one Redis BITFIELD command and reads its
// reply. It is pure and knows no client library: the redis and the upstash
// store share it.
//
// # Layout
//
// A record is one string of unsigned 63-bit integers. Place 0 is private and
// holds the expiry that was last asked for (Unix seconds, 0 = none yet); the
// cell of slot s is place s+1. A record is 8 bytes per place up to the highest
// one touched: about 220 bytes for an hour and a day counter over 24 hours.
//
// # One command per row
//
//	counts   BITFIELD name OVERFLOW SAT SET u63 #0 E INCRBY u63 #1 1 INCRBY u63 #9 1 GET u63 #8
//	clock    … INCRBY u63 #1 -F INCRBY u63 #1 F+A        = max(cell, F) + A
//	refund   BITFIELD name OVERFLOW SAT GET u63 #0 INCRBY u63 #1 -1
//	read     BITFIELD_RO name GET u63 #1
//
// The saturating subtraction is what makes the floor possible without a script:
// taking F away stops at zero, so adding it again yields max(cell, F). For the
// same reason a refund never goes below zero.
//
// # Expiry
//
// BITFIELD cannot set an expiry, so a new record needs one EXPIREAT. Whether it
// is due is learnt from the same command at no further cost: SET answers the
// previous value of place 0. It was 0: the record is new. It was another value:
// the expiry moved. This was chosen over "some count is 1", which would send one
// EXPIREAT per slot of a row (24 a day for a row of hours) and knows nothing of
// clocks; it costs about 25 bytes of the request and 8 of the record.
//
// A row of clocks has an Until that moves. The planner moves it in long steps, so
// EXPIREAT is due about once a step and not once a hit; when the clocks of two
// instances disagree about the step, the later expiry stays.
//
// A process may die between the two commands. Then place 0 says that an expiry
// was asked for and none is set. [Due] therefore asks again while no count of
// the row exceeds a small number, for a caller that has not itself seen the
// expiry confirmed. A clock repairs itself with its next step.
//
// # What creates a record
//
// A read uses BITFIELD_RO, which cannot create one. A refund is a plain
// BITFIELD, because no Redis command adds to an existing record only; it would
// create a record of zeros if the record had vanished since the charge, which
// core prevents (no refund within 60 s of Until), so that it can happen only after
// an eviction, a flush or a failover that lost data. Place 0, read by the same
// command, then says 0: EXPIREAT is due, the record leaves with its epoch, and
// all its cells are 0 as if it were absent. It is not deleted instead, for
// another instance may have begun to count in it.
package bitfield
