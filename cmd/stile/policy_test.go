package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

const badPolicy = `version: 1
site: shop
limits: 3
buckets:
  - {name: hour, key: address, limit: 0, window: 1h}
  - {name: hour, key: addres, limit: 5, window: 1h}
client: {from: xff}
`

func TestPolicyCheckTellsAllAtOnce(t *testing.T) {
	t.Parallel()
	r := command(t, nil, badPolicy, "policy", "check", "-")
	if r.code != 1 || r.stderr != "" {
		t.Errorf("exit %d, stderr %q; want 1 and the findings on stdout", r.code, r.stderr)
	}
	for _, want := range []string{"limits", "buckets[0].limit", "buckets[1].key", "client", "line 3", "cannot be used"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no word of %s:\n%s", want, r.stdout)
		}
	}
}

func TestPolicyCheckJSON(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{badPolicy: false, "version: 1\nbuckets: [{name: h, key: address, limit: 9, window: 1h}]\n": true} {
		r := command(t, nil, text, "policy", "check", "--json", "-")
		var got checkResult
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatalf("%v\n%s", err, r.stdout)
		}
		if got.Valid != valid || valid == (len(got.Errors) > 0) || valid != (r.code == 0) {
			t.Errorf("exit %d, valid %v with %d errors; want valid %v", r.code, got.Valid, len(got.Errors), valid)
		}
		for _, e := range got.Errors {
			if e.Problem == "" || e.Path == "" || e.Line == 0 {
				t.Errorf("a finding without place or problem: %+v", e)
			}
		}
	}
}

// TestPolicyShowIsAPolicy checks what show wrote, in YAML and in JSON.
func TestPolicyShowIsAPolicy(t *testing.T) {
	t.Parallel()
	shown := command(t, nil, "", "policy", "show")
	if shown.code != 0 {
		t.Fatalf("exit %d: %s", shown.code, shown.stderr)
	}
	path := write(t, "shown.yaml", shown.stdout)
	if r := command(t, nil, "", "policy", "check", path); r.code != 0 {
		t.Errorf("the shown policy does not pass its check:\n%s", r.stdout)
	}
	if again := command(t, nil, "", "policy", "show", "--json", path); again.code != 0 {
		t.Errorf("show --json: exit %d, %s", again.code, again.stderr)
	} else {
		var v struct {
			Version int
			Buckets []struct {
				Name   string
				Limit  int
				Window string
			}
			Exempt struct{ Networks []any }
		}
		if err := json.Unmarshal([]byte(again.stdout), &v); err != nil {
			t.Fatal(err)
		}
		if v.Version != 1 || len(v.Buckets) != 2 || v.Buckets[0].Limit != 60 || v.Buckets[0].Window != "1h" || v.Exempt.Networks == nil {
			t.Errorf("show --json lost something: %+v", v)
		}
	}
}

func TestPolicyShowKeepsDatesAndHidesSecrets(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("hunter2", 6)
	text := "version: 1\nbuckets: [{name: h, key: address, limit: 9, window: 1h}]\nlog: {ip: hmac, secret: env:LOG_KEY}\n" +
		"exempt: {networks: [{cidr: 192.0.2.0/24, reason: office, until: 2099-01-01}]}\n"
	for _, args := range [][]string{{"policy", "show", "-"}, {"policy", "show", "--json", "-"}, {"policy", "check", "-"}} {
		r := command(t, map[string]string{"LOG_KEY": secret}, text, args...)
		if r.code != 0 || strings.Contains(r.stdout+r.stderr, "hunter2") {
			t.Errorf("%v: exit %d, or the secret was shown:\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		if args[1] == "show" && (!strings.Contains(r.stdout, "env:LOG_KEY") || !strings.Contains(r.stdout, "2099-01-01") || strings.Contains(r.stdout, "T00:00")) {
			t.Errorf("%v: reference or date was changed:\n%s", args, r.stdout)
		}
	}
}

// TestPolicyFixtures holds the command against the policy package's own files.
func TestPolicyFixtures(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{}
	for _, name := range []string{"COOKIE_SECRETS", "EDGE_SECRET", "HMAC_SECRET", "DATED_SECRETS"} {
		secrets[name] = strings.Repeat("0123456789abcdef", 4)
	}
	for _, c := range []struct {
		folder string
		env    map[string]string
		code   int
	}{{"good", secrets, 0}, {"bad", nil, 1}} {
		files, err := filepath.Glob("../../policy/testdata/policies/" + c.folder + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", c.folder, err)
		}
		for _, f := range files {
			if r := command(t, c.env, "", "policy", "check", f); r.code != c.code {
				t.Errorf("%s: exit %d, want %d\n%s%s", f, r.code, c.code, r.stdout, r.stderr)
			}
		}
	}
}
