// Package policy reads the policy file: strict YAML in, [core.Policy] out.
//
// Nothing in a policy file is guessed. An unknown key, a value of another type,
// a limit that admits nobody or a header that anyone can write is an error with
// its line, its key path and its remedy, and all errors are reported at once.
// What is legal but probably not meant is a [Warning]. Defaults live in one
// place and are merged before the values are checked, so [File.Show] prints
// exactly what holds.
//
// docs/policy.md describes every key; a test keeps it true.
package policy
