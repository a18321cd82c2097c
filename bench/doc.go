// Package bench measures what one counter store costs a site: the operations,
// round trips and bytes of a navigation in each state a client can be in, and how
// fast decisions are at 1 and 64 ways, on one hot key and on spread keys.
//
// Operations are exact: they come from the store's own counters and are the same
// in every run. Times are not: they belong to one machine on one day, and a
// Result says which, and whether the server was the real thing. Package costmodel
// multiplies the operations by prices and never ranks stores by times of an
// emulator or of loopback.
package bench
