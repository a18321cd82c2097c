package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func hourDayPolicy(hour, day int) string {
	return fmt.Sprintf("version: 1\nsite: test\nbuckets:\n  - {name: hour, key: address, limit: %d, window: 1h}\n"+
		"  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 24h}\n", hour, day)
}

func TestReplayText(t *testing.T) {
	t.Parallel()
	log, _ := siteLog(t)
	good, strict := write(t, "good.yaml", hourDayPolicy(30, 200)), write(t, "strict.yaml", hourDayPolicy(3, 10))
	r := command(t, nil, log, "replay", "--policy", strict, "-")
	if r.code != 1 || r.stderr != "" {
		t.Errorf("a policy that cuts engaged visitors: exit %d, %s", r.code, r.stderr)
	}
	golden(t, "replay.golden", r.stdout)
	r = command(t, nil, log, "replay", "--policy", strict, "--compare", good, "-")
	if r.code != 1 || r.stderr != "" {
		t.Errorf("compare: exit %d, %s", r.code, r.stderr)
	}
	golden(t, "replay-compare.golden", r.stdout)
	// The environment can name the policy; what it says of itself decides.
	if r := command(t, map[string]string{"STILE_POLICY": good}, log, "replay", "-"); r.code != 0 || !strings.Contains(r.stdout, "refused") {
		t.Errorf("STILE_POLICY: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestReplayJSON: one document, with both policies and the verdict in it, and
// pseudonyms in every place.
func TestReplayJSON(t *testing.T) {
	t.Parallel()
	log, truth := siteLog(t)
	good, strict := write(t, "good.yaml", hourDayPolicy(30, 200)), write(t, "strict.yaml", hourDayPolicy(3, 10))
	page := filepath.Join(t.TempDir(), "replay.html")
	r := command(t, nil, log, "replay", "--json", "--pseudonymise", "--html", page, "--policy", good, "--compare", strict, "-")
	var p replayResult
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil {
		t.Fatalf("%v: %s", err, r.stderr)
	}
	if r.code != 0 || p.BadNews || p.Compare == nil || !p.Compare.BadNews || p.Refused == 0 || p.Compare.Refused <= p.Refused || p.Pages != truth.Pages {
		t.Errorf("exit %d, %+v", r.code, p)
	}
	for name, s := range map[string]string{"json": r.stdout, "page": read(t, page)} {
		if strings.Contains(s, truth.Abuser.Address) {
			t.Errorf("%s holds the abuser's address", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "stile-log-*")); len(left) > 0 && os.Getenv("TMPDIR") == t.TempDir() {
		t.Errorf("left behind: %v", left)
	}
}

// TestReplaySaysWhatNoLogTells: a bucket by cookie cannot be replayed, and its
// silence is no finding.
func TestReplaySaysWhatNoLogTells(t *testing.T) {
	t.Parallel()
	path := write(t, "p.yaml", "version: 1\nidentify: {cookie: {secrets: env:S}}\nbuckets:\n  - {name: hour, key: address, limit: 5, window: 1h}\n"+
		"  - {name: visitor, key: cookie, algorithm: fixed-window, limit: 5, window: 24h}\n")
	log, _ := siteLog(t)
	r := command(t, map[string]string{"S": strings.Repeat("0123456789abcdef", 4)}, log, "replay", "--policy", path, "-")
	if r.code > 1 || !strings.Contains(r.stdout, "visitor counts by cookie, which no log tells") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
