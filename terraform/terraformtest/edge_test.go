package terraformtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestEdgeRulesAreValid has the AWS provider read what stile edge aws-waf writes,
// for a small policy and for one with everything in it. The golden files of
// package edge are what it writes.
func TestEdgeRulesAreValid(t *testing.T) {
	t.Parallel()
	mirror := needAWS(t)
	heavy.Lock()
	defer heavy.Unlock()
	rc := filepath.Join(t.TempDir(), "cli.tfrc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"TF_CLI_CONFIG_FILE=" + rc, "TF_IN_AUTOMATION=1", "TF_INPUT=0"}
	// Both in one directory: the resources have the same name, so one is a module.
	dir := t.TempDir()
	for from, to := range map[string]string{"aws-waf.tf": "small/main.tf", "aws-waf-rich.tf": "rich/main.tf"} {
		data, err := os.ReadFile(filepath.Join(root, "edge", "testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const calls = "module \"small\" {\n  source = \"./small\"\n  scope  = \"REGIONAL\"\n}\n\nmodule \"rich\" {\n  source = \"./rich\"\n  scope  = \"CLOUDFRONT\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(calls), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"validate"}, {"fmt", "-check", "-recursive"}} {
		if out, code := run(t, dir, env, "terraform", append(args, "-no-color")...); code != 0 {
			t.Fatalf("terraform %v: exit %d\n%s", args, code, out)
		}
	}
}
