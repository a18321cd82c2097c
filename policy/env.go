package policy

import (
	"reflect"
	"strconv"
	"strings"
)

// The rule of overrides: a key outside of lists, with the dots of its path as
// underscores and in capitals, behind STILE_. A list of plain values is
// separated by commas. The file must be valid without its overrides as far as
// each value goes. Secrets (references to the environment already), version
// and measured (facts about the file), and exempt.crawlers have none; an
// override never adds a part (identify.cookie, jwt, api_keys) that the file does
// not have.

// EnvName returns the environment variable that overrides the key at path, such
// as "client.from", or "" when none does.
func EnvName(path string) string {
	for _, k := range overridable(reflect.TypeFor[File](), "") {
		if k == path {
			return envNameOf(path)
		}
	}
	return ""
}

// EnvNames returns the environment variables that override a key.
func EnvNames() (names []string) {
	for _, k := range overridable(reflect.TypeFor[File](), "") {
		names = append(names, envNameOf(k))
	}
	return names
}

func envNameOf(path string) string {
	return "STILE_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// hasOverride reports whether values of t at path follow the rule.
func hasOverride(t reflect.Type, path string) bool {
	if path == "version" || strings.HasPrefix(path, "measured") {
		return false
	}
	return isScalar(t) || t.Kind() == reflect.Slice && isScalar(t.Elem())
}

func overridable(t reflect.Type, path string) (list []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case hasOverride(t, path):
		return []string{path}
	case t.Kind() != reflect.Struct:
		return nil
	}
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" {
			list = append(list, overridable(t.Field(i).Type, join(path, key))...)
		}
	}
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// overrides sets what the environment has something to say about.
func (r *reader) overrides(f *File) { r.override(reflect.ValueOf(f).Elem(), "") }

func (r *reader) override(v reflect.Value, path string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	t := v.Type()
	if !hasOverride(t, path) {
		if t.Kind() == reflect.Struct {
			for i := range t.NumField() {
				if key := t.Field(i).Tag.Get("yaml"); key != "" {
					r.override(v.Field(i), join(path, key))
				}
			}
		}
		return
	}
	name := envNameOf(path)
	text := r.env(name)
	if text == "" {
		return
	}
	for p := range r.origin { // the file's own entries are gone
		if strings.HasPrefix(p, path+"[") {
			delete(r.origin, p)
		}
	}
	r.origin[path] = place{env: name}
	if isScalar(t) {
		if problem, remedy := setScalar(v, text, ""); problem != "" {
			r.fail(path, problem, remedy)
		}
		return
	}
	list := reflect.Zero(t)
	for i, item := range strings.Split(text, ",") {
		p := reflect.New(t.Elem()).Elem()
		if problem, remedy := setScalar(p, strings.TrimSpace(item), ""); problem != "" {
			sub := path + "[" + strconv.Itoa(i) + "]"
			r.origin[sub] = place{env: name}
			r.fail(sub, problem, remedy)
			continue
		}
		list = reflect.Append(list, p)
	}
	v.Set(list)
}
