package policy

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stilehq/stile/core"
)

var docRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+(?:\\\\\\|[^|]+)*) \\| ([^|]+) \\| .+ \\|$")

// TestDocs holds docs/policy.md against the structs: every key has one row with
// its true default, and no row is about anything else.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range docRow.FindAllStringSubmatch(string(text), -1) {
		if _, dup := documented[m[1]]; dup {
			t.Errorf("%s has two rows", m[1])
		}
		documented[m[1]] = m[3]
	}
	actual := map[string]string{}
	documentedKeys(reflect.ValueOf(defaults()).Elem(), "", actual)
	for _, path := range requiredKeys {
		if _, ok := actual[path]; !ok {
			t.Errorf("%s is required, but there is no such key", path)
		}
		actual[path] = "required"
	}
	for path, want := range actual {
		if got, ok := documented[path]; !ok {
			t.Errorf("%s has no row in docs/policy.md", path)
		} else if got != want {
			t.Errorf("%s: docs/policy.md says default %s, it is %s", path, got, want)
		}
		delete(documented, path)
	}
	for path := range documented {
		t.Errorf("docs/policy.md documents %s, which does not exist", path)
	}
	for _, p := range core.DefaultExcludeList {
		if !strings.Contains(string(text), "`"+p+"`") {
			t.Errorf("docs/policy.md does not list the default exclusion %s", p)
		}
	}
	for _, m := range regexp.MustCompile(`STILE_[A-Z0-9_]+[A-Z0-9]`).FindAllString(string(text), -1) {
		known := m == "STILE_STORE"
		for path := range actual {
			known = known || EnvName(path) == m
		}
		if !known {
			t.Errorf("docs/policy.md names %s, which overrides nothing", m)
		}
	}
}

// requiredKeys have no default; testdata/policies/bad/missing.yaml proves each.
var requiredKeys = []string{
	"version", "buckets[].name", "buckets[].limit", "buckets[].window",
	"identify.cookie.secrets", "identify.jwt.issuer", "identify.jwt.audience",
	"identify.api_keys.keys[].hash", "identify.api_keys.keys[].name",
	"exempt.networks[].cidr", "exempt.networks[].reason",
}

func TestRequired(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/policies/bad/missing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = parse("", data, testEnv, testNow)
	var missing []string
	for _, e := range all(err) {
		missing = append(missing, regexp.MustCompile(`\[\d+\]`).ReplaceAllString(e.Path, "[]"))
	}
	for _, path := range requiredKeys {
		if !slices.Contains(missing, path) {
			t.Errorf("%s may be left out", path)
		}
	}
}

// documentedKeys collects path and default of every key below v.
func documentedKeys(v reflect.Value, path string, out map[string]string) {
	switch m := v.Interface().(type) {
	case Secrets:
		out[path] = "none"
		return
	case map[string]Treatment:
		for class, t := range m {
			out[path+"."+class] = "`ordinary`"
			if t.Exempt {
				out[path+"."+class] = "`exempt`"
			} else if t.Multiply > 0 {
				out[path+"."+class] = fmt.Sprintf("`{multiply: %d}`", t.Multiply)
			}
		}
		return
	}
	switch {
	case path == "count.exclude":
		out[path] = "the list below"
	case isScalar(v.Type()):
		out[path] = "`" + scalarNode(v).Value + "`"
		if out[path] == "``" {
			out[path] = "none"
		}
	case v.Kind() == reflect.Slice && isScalar(v.Type().Elem()):
		var items []string
		for i := range v.Len() {
			items = append(items, scalarNode(v.Index(i)).Value)
		}
		out[path] = "`[" + strings.Join(items, ", ") + "]`"
	case v.Kind() == reflect.Slice:
		p := reflect.New(v.Type().Elem())
		setDefaults(p)
		documentedKeys(p.Elem(), path+"[]", out)
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		setDefaults(p)
		documentedKeys(p.Elem(), path, out)
	default:
		for i := range v.NumField() {
			if key := v.Type().Field(i).Tag.Get("yaml"); key != "" {
				documentedKeys(v.Field(i), join(path, key), out)
			}
		}
	}
}
