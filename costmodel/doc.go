// Package costmodel says what counting in each store costs a site, and which
// store it should take. It multiplies operations that package bench has measured
// by prices that are dated and sourced, in decimal arithmetic, and it never guesses:
// what is not known is "unknown" and makes every sum that holds it unknown.
//
// Prices live in prices/*.yaml and may be overridden by a file. Quantities come
// from a [Measurement] per store and from a [Traffic].
package costmodel
