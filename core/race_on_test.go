//go:build race

package core

// RaceDetector says that the tests run under it: ten times slower, and with a
// sync.Pool that forgets on purpose.
const RaceDetector = true
