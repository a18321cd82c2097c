package architecture

import (
	"maps"
	"slices"
	"testing"
)

// TestFunctionsLinkTheirStoresOnly: a store that a platform cannot use would be
// paid for with every cold start.
func TestFunctionsLinkTheirStoresOnly(t *testing.T) {
	t.Parallel()
	stores := []string{"memory", "redis", "upstash", "firestore", "dynamodb"}
	for program, want := range map[string][]string{
		".":                     {"firestore", "memory", "redis", "upstash"},
		"./adapters/lambda/cmd": {"dynamodb", "memory", "redis", "upstash"},
	} {
		linked := links(t, program)
		maps.DeleteFunc(linked, func(name string, _ bool) bool { return !slices.Contains(stores, name) })
		if got := slices.Sorted(maps.Keys(linked)); !slices.Equal(got, want) {
			t.Errorf("%s links %v, want %v", program, got, want)
		}
	}
}

// TestFunctionsLinkNoCommand: nothing of the command line, of sizing or of the
// cost model is in a function.
func TestFunctionsLinkNoCommand(t *testing.T) {
	t.Parallel()
	for _, program := range []string{".", "./adapters/lambda/cmd"} {
		for _, p := range list(t, program) {
			r, ok := room(p.ImportPath)
			for _, not := range []string{"cmd", "sizing", "costmodel", "bench", "stores/all", "stores/storetest", "internal"} {
				if ok && under(r, not) {
					t.Errorf("%s links %s", program, r)
				}
			}
		}
	}
}
