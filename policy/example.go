package policy

import (
	_ "embed"
	"slices"
)

//go:embed example.yaml
var example []byte

// Example returns the example policy as it is written, with its comments: what
// a new site starts from.
func Example() []byte { return slices.Clone(example) }

// Default parses the example policy: what holds when no policy file is named.
// Its limits are seeds, not advice. Overrides of env apply, so it fails like
// [Parse] where one of them is wrong.
func Default(env func(string) string) (*File, []Warning, error) {
	return Parse("example.yaml", example, env)
}
