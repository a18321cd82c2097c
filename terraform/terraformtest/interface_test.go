package terraformtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	block       = regexp.MustCompile(`(?ms)^(variable|output) "(\w+)" \{\n(.*?)^\}`)
	description = regexp.MustCompile(`(?m)^  description = "(.{10,})"$`)
)

// TestInterfaces holds every module and example to the house rules: each variable
// has a type and a description, a module's also a validation, each output a
// description, and the README lists them all.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"aws", "gcp"} {
		for _, name := range []string{"main.tf", "variables.tf", "outputs.tf", "versions.tf", "README.md"} {
			if _, err := os.Stat(filepath.Join("..", module, name)); err != nil {
				t.Errorf("%s: %v", module, err)
			}
		}
		readme, err := os.ReadFile(filepath.Join("..", module, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join("..", module, "*.tf"))
		examples, _ := filepath.Glob(filepath.Join("..", module, "examples", "*", "*.tf"))
		if len(examples) == 0 {
			t.Errorf("%s has no examples", module)
		}
		seen := 0
		for _, file := range append(files, examples...) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			inModule := !strings.Contains(file, "examples")
			for _, m := range block.FindAllStringSubmatch(string(text), -1) {
				kind, name, body := m[1], m[2], m[3]
				seen++
				if !description.MatchString(body) {
					t.Errorf("%s: %s %s has no description", file, kind, name)
				}
				if kind == "variable" && !strings.Contains(body, "\n  type ") {
					t.Errorf("%s: variable %s has no type", file, name)
				}
				free := name == "tags" || name == "labels" // any text will do
				if kind == "variable" && inModule && !free && !strings.Contains(body, "validation {") {
					t.Errorf("%s: variable %s is not validated", file, name)
				}
				if inModule && !strings.Contains(string(readme), "| `"+name+"` |") {
					t.Errorf("%s/README.md does not list %s %s", module, kind, name)
				}
			}
		}
		if seen < 20 {
			t.Errorf("%s: only %d variables and outputs were seen", module, seen)
		}
	}
}
