// Package answer writes what a visitor gets: the 429 of a limit, the 503 of a
// policy that fails closed, the 502 of an origin that is down, and the RateLimit
// fields of counted responses. An [Answer] is a plain value, so that a Lambda
// or a forward-auth endpoint hands out the same bytes as the reverse proxy.
//
// Nothing that a client sent is ever part of an answer: the pages hold numbers,
// the reference id and the operator's own words only.
package answer
