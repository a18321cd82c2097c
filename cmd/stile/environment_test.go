package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestMisspeltVariables: a variable that nothing reads is told with the name that
// it resembles; those of flags, of the policy file, of secrets that a policy may
// name, of the functions and of the repository's tests are not.
func TestMisspeltVariables(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"STILE_MOED=observe":          "nothing reads the variable STILE_MOED; did you mean STILE_MODE?",
		"STILE_TRUSTED_HOP=1":         "nothing reads the variable STILE_TRUSTED_HOP",
		"STILE_CLIENT_TRUSTED_HOP=1":  "did you mean STILE_CLIENT_TRUSTED_HOPS?",
		"STILE_ZZZZZZZZZZ=1":          "nothing reads the variable STILE_ZZZZZZZZZZ\n",
		"STILE_A\x1b[31m=1":           `\u001b`,
		"STILE_MODE=observe":          "",
		"STILE_CLIENT_FROM=xff":       "",
		"STILE_POLICY=x.yaml":         "",
		"STILE_ORIGIN_HOST=origin":    "",
		"STILE_OUR_OWN_SECRETS=a":     "",
		"STILE_STORE_PASSWORD=a":      "",
		"STILE_INGRESS=internal":      "",
		"STILE_REQUIRE=redis":         "",
		"STILE_TEST_MAIN=1":           "",
		"STILE_TF_MIRROR=/tmp/mirror": "",
		"MOED=observe":                "",
	} {
		var out, errs bytes.Buffer
		term := &terminal{
			lookup: func(string) (string, bool) { return "", false }, environ: func() []string { return []string{"HOME=/", entry} },
			stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
		}
		if code := term.exec(context.Background(), []string{"policy", "show"}); code != 0 {
			t.Fatalf("%s: exit %d: %s", entry, code, errs.String())
		}
		if got := errs.String(); want == "" && got != "" || !strings.Contains(got, want) || strings.ContainsRune(got, 0x1b) || strings.Count(got, "nothing reads") > 1 {
			t.Errorf("%s: want %q, got %q", entry, want, got)
		}
	}
}
