package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/stilehq/stile/policy"
)

// repeated returns the name of a flag that takes one value and was given more
// than one, of which all but the last would be ignored; "" if there is none.
func repeated(k *kong.Context) string {
	seen := map[*kong.Flag]bool{}
	for _, p := range k.Path {
		f := p.Flag
		if f == nil || p.Resolved || f.IsBool() || f.IsCumulative() {
			continue
		}
		if seen[f] {
			return f.Name
		}
		seen[f] = true
	}
	return ""
}

// otherVariables are read by no flag and no key of the policy file: what a store
// URL leaves out, what the functions of Cloud Run and Lambda read, and what the
// tests and scripts of the repository do.
var otherVariables = []string{
	"STILE_STORE_PASSWORD", "STILE_STORE_TOKEN", "STILE_STORE_USERNAME",
	"STILE_INGRESS", "STILE_HTTP_API_DENY", "STILE_RESPONSES", "STILE_DOCTOR_SECRET", "STILE_URL", "STILE_VERSION",
	"STILE_COOKIE_SECRETS", "STILE_EDGE_SECRETS", "STILE_KEY_SECRETS", "STILE_PEER_SECRET", "STILE_PSEUDONYM_KEY",
	"STILE_REQUIRE", "STILE_CORPUS", "STILE_RANGES", "STILE_BENCH_LOG", "STILE_DYNALITE", "STILE_E2E", "STILE_E2E_SHOTS", "STILE_FIRESTORE_EMULATOR_JAR",
}

// foreign are parts of names that are left alone: a policy may name any variable
// for its secrets, and the repository's tests have theirs.
var foreign = []string{"SECRET", "KEY", "TOKEN", "PASSWORD", "STILE_TEST_", "STILE_TF_"}

// warnMisspelt says once which STILE_ variables nothing reads, as a setting that
// does not hold is found late.
func (t *terminal) warnMisspelt(model *kong.Application) {
	if t.environ == nil {
		return
	}
	known := slices.Concat(otherVariables, policy.EnvNames(), flagVariables(model.Node))
	for _, entry := range t.environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "STILE_") || slices.Contains(known, name) || slices.ContainsFunc(foreign, func(part string) bool { return strings.Contains(name, part) }) {
			continue
		}
		hint := ""
		if near := nearVariable(name, known); near != "" {
			hint = "; did you mean " + near + "?"
		}
		fmt.Fprintf(t.stderr, "stile: nothing reads the variable %s%s\n", plain(name), hint)
	}
}

// nearVariable compares what comes after the prefix that all of them have.
func nearVariable(name string, known []string) string {
	var words []string
	for _, k := range known {
		words = append(words, strings.ToLower(strings.TrimPrefix(k, "STILE_")))
	}
	if near := policy.Nearest(strings.TrimPrefix(name, "STILE_"), words); near != "" {
		return "STILE_" + strings.ToUpper(near)
	}
	return ""
}

// flagVariables are the environment forms of all flags of a command line.
func flagVariables(n *kong.Node) (names []string) {
	for _, f := range n.Flags {
		if name := envName(f.Name); name != "" {
			names = append(names, name)
		}
	}
	for _, child := range n.Children {
		names = append(names, flagVariables(child)...)
	}
	return names
}
