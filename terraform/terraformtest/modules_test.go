package terraformtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stilehq/stile/internal/require"
	"github.com/stilehq/stile/policy"
)

func TestAWSModule(t *testing.T) {
	t.Parallel()
	mirror := needAWS(t)
	heavy.Lock()
	defer heavy.Unlock()
	checkModule(t, "aws", "STILE_TF_MIRROR="+mirror)
}

// TestGCPModule needs the schemas of the Google provider, from a stand-in here.
func TestGCPModule(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("terraform")
	dir := os.Getenv("STILE_TF_STANDIN")
	_, missing := os.Stat(filepath.Join(dir, "terraform-provider-google"))
	require.Server(t, "terraform-google", err == nil && dir != "" && missing == nil,
		"install terraform, and set STILE_TF_STANDIN to a folder with a program that serves the Google provider's schemas")
	heavy.Lock()
	defer heavy.Unlock()
	checkModule(t, "gcp", "STILE_TF_STANDIN="+dir)
}

func checkModule(t *testing.T, module, env string) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join(root, "scripts", "terraform-test.sh"))
	if err != nil {
		t.Fatal(err)
	}
	out, code := run(t, root, []string{env}, "bash", script, module)
	t.Logf("%s", out)
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	if !strings.Contains(out, "ok   test "+module+": Success!") || strings.Contains(out, " 0 passed") {
		t.Error("the module's tests did not run")
	}
}

// TestExamplePoliciesAreValid holds the examples' policies against the program.
func TestExamplePoliciesAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*/examples/*/stile.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example policies: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := policy.Parse(file, data, func(string) string { return "" }); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		// As the modules hand them on: without comment lines, under their own word on
		// the client, in every mode.
		kept := regexp.MustCompile(`(?m)^\s*(#.*)?\n`).ReplaceAllString(string(data), "")
		for _, client := range []map[string]string{
			{"STILE_CLIENT_FROM": "platform"},
			{"STILE_CLIENT_FROM": "header:X-Stile-Client"},
			{"STILE_CLIENT_FROM": "xff", "STILE_CLIENT_TRUSTED_HOPS": "2"},
		} {
			for _, mode := range []policy.Mode{policy.ModeObserve, policy.ModeEnforce, policy.ModeOff} {
				f, _, err := policy.Parse("STILE_POLICY", []byte(kept), func(k string) string {
					switch k {
					case "STILE_MODE":
						return string(mode)
					case "STILE_SCALE":
						return "10"
					}
					return client[k]
				})
				if err != nil || f.Mode != mode || f.Scale != 10 || string(f.Client.From) != client["STILE_CLIENT_FROM"] {
					t.Errorf("%s with the module's environment %v, mode %s: %v", file, client, mode, err)
				}
			}
		}
	}
}

// TestFiltersMatchTheProgram ties what the alarms look for to what the program
// writes: a reworded line would silence an alarm for ever.
func TestFiltersMatchTheProgram(t *testing.T) {
	t.Parallel()
	for text, file := range map[string]string{
		"the store's spending limit is reached": "wire/store.go",
		"crawler ranges are old":                "crawlers/fetchlist.go",
		"stile: NOTHING IS LIMITED":             "adapters/serverless/open.go",
		"stile: started":                        "adapters/serverless/open.go",
		`"store-error"`:                         "hitlog/entry.go",
		`"would-limit"`:                         "hitlog/entry.go",
		`"store-error-open"`:                    "core/decision.go",
	} {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), text) {
			t.Errorf("%s no longer writes %s", file, text)
		}
		for _, cloud := range []string{"aws", "gcp"} {
			watch, err := os.ReadFile(filepath.Join("..", cloud, "monitoring.tf"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(watch), strings.Trim(text, `"`)) {
				t.Errorf("terraform/%s watches for no %s", cloud, text)
			}
		}
	}
}

// TestTheContainersLineIsKnown: its log is text, and the mode is looked for in the
// line of its start.
func TestTheContainersLineIsKnown(t *testing.T) {
	t.Parallel()
	serve, err := os.ReadFile(filepath.Join(root, "cmd/stile/serve.go"))
	if err != nil {
		t.Fatal(err)
	}
	watch, err := os.ReadFile("../gcp/monitoring.tf")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`logger\.Info\("serving".*"mode", f\.Mode`).Match(serve) || !strings.Contains(string(serve), "slog.NewTextHandler(t.stderr") {
		t.Error("stile serve no longer says its mode in a line of text, msg=serving … mode=…")
	}
	if !strings.Contains(string(watch), "msg=serving") || !strings.Contains(string(watch), "mode=${var.mode}") {
		t.Error("terraform/gcp does not look for that line")
	}
}

// TestMappingsMatchTheAuthorizer ties the API's mappings to the keys of the
// authorizer's context.
func TestMappingsMatchTheAuthorizer(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join(root, "adapters/lambda/texts.go"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, pattern := range []string{"../aws/*.tf", "../aws/files/*"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`context\.authorizer\.([A-Za-z]+)([^\w<"\s,;)])?`).FindAllStringSubmatch(string(data), -1) {
				seen++
				if !strings.Contains(string(source), `"`+m[1]+`"`) {
					t.Errorf("%s uses context.authorizer.%s, which the authorizer does not set", file, m[1])
				}
				if m[2] != "" {
					t.Errorf("%s: %q stands right behind context.authorizer.%s and could be read as a part of its name", file, m[2], m[1])
				}
			}
		}
	}
	if seen < 10 {
		t.Fatalf("only %d mappings were seen", seen)
	}
}
