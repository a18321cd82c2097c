// Package stand is the test stand of the end-to-end tests: Stile itself as an
// operator runs it, origins that record what reached them, and real servers as
// child processes that are gone when the test is.
//
// Only tests import it.
package stand
