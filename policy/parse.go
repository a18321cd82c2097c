package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// MaxSize bounds a policy file, in bytes. The largest sensible ones, with
// thousands of networks, stay far below it.
const MaxSize = 1 << 20

// maxErrors bounds how many errors are kept of a file that is something else
// altogether.
const maxErrors = 100

// Load reads and parses the policy file at path with the process's environment.
func Load(path string) (*File, []Warning, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, MaxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	return Parse(path, data, os.Getenv)
}

// Parse reads a policy file: YAML of the strict kind described in
// docs/policy.md. Name is the file's path; it is used to resolve the paths in
// the file. Env looks environment variables up, for secrets and overrides; nil
// is an empty environment.
//
// The error joins every [*Error] found, in the order of the file; the File is
// nil then. Warnings are returned in either case. Networks whose date has passed
// are judged by the system's clock.
func Parse(name string, data []byte, env func(string) string) (*File, []Warning, error) {
	return parse(name, data, env, time.Now())
}

func parse(name string, data []byte, env func(string) string, now time.Time) (*File, []Warning, error) {
	if env == nil {
		env = func(string) string { return "" }
	}
	f := defaults()
	f.name = name
	f.origin = map[string]place{}
	r := newReader(env, f.origin)
	if root := r.document(data); root != nil {
		r.file(root, f)
		r.overrides(f)
		v := &validator{reader: r, f: f, now: now}
		v.all()
	}
	slices.SortStableFunc(r.errs, func(a, b *Error) int { return a.Line - b.Line })
	slices.SortStableFunc(r.warnings, func(a, b Warning) int { return a.Line - b.Line })
	if len(r.errs) == 0 {
		return f, r.warnings, nil
	}
	var errs []error
	for i, e := range r.errs {
		if i == maxErrors {
			errs = append(errs, &Error{Problem: fmt.Sprintf("%d more errors", len(r.errs)-i)})
			break
		}
		errs = append(errs, e)
	}
	return nil, r.warnings, errors.Join(errs...)
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line ([0-9]+): )?`)

// document returns the root of the one document in data, or nil.
func (r *reader) document(data []byte) *yaml.Node {
	if len(data) > MaxSize {
		r.report(&Error{Problem: fmt.Sprintf("the file is larger than %d bytes", MaxSize), Remedy: "this is hardly a policy file"})
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			r.report(&Error{Line: more.Line, Problem: "a second document begins here", Remedy: "a policy file holds one"})
			return nil
		}
	} else if err == io.EOF {
		r.report(&Error{Problem: "the file is empty", Remedy: "begin with the example: stile policy show"})
		return nil
	}
	if err != io.EOF {
		text := err.Error()
		m := yamlLine.FindStringSubmatch(text)
		line, _ := strconv.Atoi(m[1])
		r.report(&Error{Line: line, Problem: "not YAML: " + text[len(m[0]):]})
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.report(&Error{Problem: "the file is empty", Remedy: "begin with the example: stile policy show"})
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		r.report(&Error{Line: root.Line, Problem: "a policy file is a mapping of keys, this is " + kindOf(root), Remedy: "begin with version: 1"})
		return nil
	}
	return root
}
