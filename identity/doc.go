// Package identity says who a request is from when that can be proven: by a
// visitor cookie that Stile signed, by a token of a sign-in service, by an API
// key, or by what the platform itself verified. Package
// [github.com/stilehq/stile/identity/asn] tells the autonomous system of a
// client.
//
// Everything here answers from memory. What is absent, forged, expired, doubled
// or too long is nobody: the limiter then counts by address, and no error
// reaches the visitor. Put the identifiers into core.Options in the order of
// what they prove: user, API key, cookie.
//
// The cookie is the one identity that anybody can have for the asking. What it
// is worth is therefore bounded twice: by what a cookie costs to get (one
// counted hit of the address) and by the network bucket over all of its
// holders. docs/identities.md has the rule and the numbers.
package identity
