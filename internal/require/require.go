// Package require is the one rule by which tests treat a real server that may
// be absent: skipped with its name on a newcomer's machine, a failure where the
// environment variable STILE_REQUIRE lists it (comma separated), as CI does.
package require

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Server goes on when found is true. Otherwise it skips the test, naming the
// server and how to get it, or fails when STILE_REQUIRE lists name.
func Server(tb testing.TB, name string, found bool, hint string) {
	tb.Helper()
	if found {
		return
	}
	if Required(name) {
		tb.Fatalf("%s is required by STILE_REQUIRE and was not found: %s", name, hint)
	}
	tb.Skipf("needs %s: %s", name, hint)
}

// Required reports whether STILE_REQUIRE lists name.
func Required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("STILE_REQUIRE"), ","), name)
}
