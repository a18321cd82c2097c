package main

import (
	"encoding/json"
	"testing"

	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
	"github.com/stilehq/stile/stores/firestore/firestoretest"
)

// TestKeyOnEveryStore: the marks of a suspension, taking them back and the kill
// switch are within what each store can hold.
func TestKeyOnEveryStore(t *testing.T) {
	t.Run("dynamodb", func(t *testing.T) {
		// The SDK reads the process's environment, not the command's.
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
		s := dynamodbtest.Start(t)
		s.CreateTable(t, "stile")
		keyRound(t, "dynamodb://stile?region=local&endpoint="+s.Endpoint(), nil)
	})
	t.Run("firestore", func(t *testing.T) {
		s := firestoretest.Start(t)
		keyRound(t, "firestore://stile", map[string]string{"FIRESTORE_EMULATOR_HOST": s.Addr})
	})
}

func keyRound(t *testing.T, store string, env map[string]string) {
	t.Helper()
	policy := write(t, "stile.yaml", "version: 1\nsite: test\ncontact: mailto:a@example.org\nstore: {timeout: 20s}\nbuckets:\n"+
		"  - {name: hour, key: address, limit: 60, window: 1h}\n  - {name: day, key: address, algorithm: fixed-window, limit: 200, window: 24h}\n"+
		"  - {name: burst, key: address, algorithm: gcra, limit: 30, window: 1h, burst: 5}\n")
	do := func(verb string, args ...string) (r keyResult) {
		t.Helper()
		got := command(t, env, "", append([]string{"key", verb, "--json", "--policy", policy, "--store", store}, args...)...)
		if err := json.Unmarshal([]byte(got.stdout), &r); got.code != 0 || err != nil {
			t.Fatalf("key %s %v: exit %d, %v\n%s", verb, args, got.code, err, got.stderr)
		}
		return r
	}
	if r := do("show", "203.0.113.9"); r.Refused || r.Suspended != "" {
		t.Errorf("new: %+v", r)
	}
	for _, length := range []string{"100h", "30h"} {
		if r := do("suspend", "--for", length, "203.0.113.9"); !r.Refused || r.Suspended == "" {
			t.Errorf("suspended for %s: %+v", length, r)
		}
	}
	if r := do("show", "203.0.113.9"); r.Suspended != "2026-10-06T18:20:00Z" {
		t.Errorf("until %q, want the second suspension's end", r.Suspended)
	}
	if r := do("lift", "203.0.113.9"); r.Refused || r.Suspended != "" {
		t.Errorf("lifted: %+v", r)
	}
	for _, step := range []struct{ length, want string }{{"2h", "2026-10-05T14:20:00Z"}, {"1h", "2026-10-05T13:20:00Z"}, {"3h", "2026-10-05T15:20:00Z"}, {"0s", ""}} {
		if r := do("lift", "--all", "--for", step.length); r.OpenUntil != step.want {
			t.Errorf("lift --all --for %s: %q, want %q", step.length, r.OpenUntil, step.want)
		}
	}
}
