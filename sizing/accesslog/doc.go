// Package accesslog reads the access logs that web servers, proxies, balancers
// and platforms write, and hands every request on as one [Record]. It parses and
// counts nothing else: what a page is, and who is a crawler, is decided by the
// caller.
//
// The shape of a line is found line by line, so one file may mix shapes, carry
// syslog or container prefixes, or begin another format after a deployment. A
// line that is no request is counted by its [Kind]; none of them ends a scan.
//
// [Scan] reads many inputs in parallel: one goroutine cuts blocks at line ends,
// workers parse them, and each worker feeds a sink of its own, so that a caller
// aggregates without locks and merges at the end.
package accesslog
