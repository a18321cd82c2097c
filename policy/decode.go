package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxItems bounds every list of a policy file.
const maxItems = 10_000

// A reader fills a File from a tree of YAML nodes and keeps everything that is
// wrong with it.
type reader struct {
	env      func(string) string
	errs     []*Error
	warnings []Warning
	origin   map[string]place // of every value that was read
	bad      map[string]bool  // paths that have an error already: one mistake, one message
	broken   map[string]bool  // paths whose values could not be read, with all inside of them
}

func newReader(env func(string) string, origin map[string]place) *reader {
	return &reader{env: env, origin: origin, bad: map[string]bool{}, broken: map[string]bool{}}
}

func (r *reader) report(e *Error) {
	r.errs = append(r.errs, e)
	r.bad[e.Path] = true
}

// fail reports that the value at path could not be read.
func (r *reader) fail(path, problem, remedy string) {
	r.broken[path] = true
	r.reportAt(path, problem, remedy)
}

func (r *reader) reportAt(path, problem, remedy string) {
	p := r.place(path)
	r.report(&Error{Line: p.line, Env: p.env, Path: path, Problem: problem, Remedy: remedy})
}

// place finds where the value at path came from: itself, or the nearest part
// around it that is in the file.
func (r *reader) place(path string) place {
	for path != "" {
		if p, ok := r.origin[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{}
}

// file decodes the root mapping.
func (r *reader) file(root *yaml.Node, f *File) {
	r.mapping(root, "", reflect.ValueOf(f).Elem())
}

// plain refuses what makes YAML say something else than it shows.
func (r *reader) plain(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.fail(path, "is an alias", "write the value out")
	case n.Anchor != "":
		r.fail(path, "has an anchor", "remove &"+n.Anchor+" and write values out where they are needed")
	case n.Style&yaml.TaggedStyle != 0:
		r.fail(path, "has a YAML tag", "remove "+n.Tag)
	default:
		return true
	}
	return false
}

// value decodes one node into v.
func (r *reader) value(n *yaml.Node, path string, v reflect.Value) {
	if !r.plain(n, path) {
		return
	}
	switch t := v.Addr().Interface().(type) {
	case *Secrets:
		r.secrets(n, path, t)
		return
	case *map[string]Treatment:
		r.treatments(n, path, *t)
		return
	}
	switch {
	case isScalar(v.Type()):
		if n.Kind != yaml.ScalarNode {
			r.fail(path, "is "+kindOf(n)+", not "+wanted(v.Type()), "")
			return
		}
		if problem, remedy := setScalar(v, n.Value, n.ShortTag()); problem != "" {
			r.fail(path, problem, remedy)
		}
	case v.Kind() == reflect.Struct:
		r.mapping(n, path, v)
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		setDefaults(p)
		r.mapping(n, path, p.Elem())
		v.Set(p)
	case v.Kind() == reflect.Slice:
		r.sequence(n, path, v)
	}
}

func setDefaults(p reflect.Value) {
	if d, ok := p.Interface().(defaulter); ok {
		d.setDefaults()
	}
}

// mapping decodes the keys of a mapping into the fields of a struct.
func (r *reader) mapping(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		r.fail(path, "is "+kindOf(n)+", not a mapping of keys", "write keys: "+strings.Join(keys(v.Type()), ", "))
		return
	}
	fields := map[string]int{}
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "" {
			fields[key] = i
		}
	}
	r.pairs(n, path, keys(v.Type()), func(key, sub string, value *yaml.Node) {
		r.value(value, sub, v.Field(fields[key]))
	})
}

// pairs visits the known keys of a mapping, each once, and reports the others.
func (r *reader) pairs(n *yaml.Node, path string, known []string, visit func(key, sub string, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || key.Style&yaml.TaggedStyle != 0 || key.Anchor != "" || printable(key.Value) != "" {
			r.report(&Error{Line: key.Line, Path: path, Problem: "has a key that is no plain word", Remedy: "known keys: " + strings.Join(known, ", ")})
			continue
		}
		sub := join(path, key.Value)
		if line, dup := seen[key.Value]; dup {
			r.report(&Error{Line: key.Line, Path: sub, Problem: fmt.Sprintf("is given twice, first on line %d", line), Remedy: "keep one"})
			continue
		}
		seen[key.Value] = key.Line
		if !slices.Contains(known, key.Value) {
			remedy := "known keys: " + strings.Join(known, ", ")
			if near := r.suggest(key.Value, known); near != "" {
				remedy = "did you mean " + near + "?"
				r.bad[join(path, near)] = true // do not call it missing as well
			}
			r.report(&Error{Line: key.Line, Path: sub, Problem: "unknown key", Remedy: remedy})
			continue
		}
		r.origin[sub] = place{line: key.Line}
		visit(key.Value, sub, value)
	}
}

// suggest is nearest, until nobody will read it any more.
func (r *reader) suggest(s string, words []string) string {
	if len(r.errs) >= maxErrors {
		return ""
	}
	return nearest(s, words)
}

// sequence decodes a list.
func (r *reader) sequence(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		r.fail(path, "is "+kindOf(n)+", not a list", "write it in [brackets] or behind dashes")
		return
	}
	if len(n.Content) > maxItems {
		r.fail(path, fmt.Sprintf("has %d entries", len(n.Content)), fmt.Sprintf("%d is the most", maxItems))
		return
	}
	// An empty list is nil, so that equal policies are equal values.
	list := reflect.Zero(v.Type())
	for i, item := range n.Content {
		sub := path + "[" + strconv.Itoa(i) + "]"
		r.origin[sub] = place{line: item.Line}
		p := reflect.New(v.Type().Elem())
		setDefaults(p)
		r.value(item, sub, p.Elem())
		list = reflect.Append(list, p.Elem())
	}
	v.Set(list)
}

// treatments decodes exempt.crawlers over the defaults.
func (r *reader) treatments(n *yaml.Node, path string, m map[string]Treatment) {
	if n.Kind != yaml.MappingNode {
		r.fail(path, "is "+kindOf(n)+", not a mapping of keys", "write keys: "+strings.Join(CrawlerClasses(), ", "))
		return
	}
	const remedy = "write exempt, ordinary or {multiply: 10}"
	r.pairs(n, path, CrawlerClasses(), func(class, sub string, value *yaml.Node) {
		if !r.plain(value, sub) {
			return
		}
		switch {
		case value.Kind == yaml.ScalarNode && value.Value == "exempt":
			m[class] = Treatment{Exempt: true}
		case value.Kind == yaml.ScalarNode && value.Value == "ordinary":
			m[class] = Treatment{}
		case value.Kind == yaml.MappingNode:
			var t struct {
				Multiply int64 `yaml:"multiply"`
			}
			r.mapping(value, sub, reflect.ValueOf(&t).Elem())
			if _, ok := r.origin[sub+".multiply"]; !ok && !r.bad[sub] {
				r.fail(sub, "says nothing", remedy)
			}
			m[class] = Treatment{Multiply: t.Multiply}
		default:
			r.fail(sub, "is no treatment", remedy)
		}
	})
}

// keys lists the keys of a struct in the order of its fields.
func keys(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" {
			list = append(list, key)
		}
	}
	return list
}

// kindOf names a node's form for messages, never its value.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return tagName(n.ShortTag())
}

func tagName(tag string) string {
	switch tag {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	}
	return "text"
}
