// Package loggen writes access logs whose truth is known: people with sessions,
// assets and referrers, a university behind one address, crawlers real and
// pretended, monitors, feed readers, and an abuser of known volume. The same
// configuration always gives the same bytes, so a measurement can be held
// against what was planted.
package loggen
