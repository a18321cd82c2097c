// Package sizing measures real visitors and abusers in a site's own access logs,
// proposes limits between the two or says plainly that none exists, and replays
// a policy over the same logs. [Hits] reports on Stile's own hit log: who is
// limited now, and what they did about it.
//
// One pass over the logs is enough for [Measure]: workers aggregate by address
// and hour without locks and are merged at the end. Memory grows with distinct
// address-hours, not with lines: about 250 bytes for an address, 64 for each hour
// in which it was seen, and 16 for each page up to 256 in an hour, which is what
// spacing and peaks are computed from. Beside it each worker remembers at most
// 100,000 User-Agents of 512 bytes and 65,536 paths. Beyond Options.MaxClients addresses, new
// ones are only counted together, and the report says so.
package sizing
