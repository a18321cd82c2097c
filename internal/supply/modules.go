package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A target is something that is built and shipped.
type target struct {
	name string
	pkg  string
	tags string
	test bool // what only tests link
}

// targets are the three builds, as scripts/build-lambda.sh, the Containerfile
// and Google's buildpack make them, and the tests.
var targets = [...]target{
	{name: "stile", pkg: "./cmd/stile"},
	{name: "Lambda", pkg: "./adapters/lambda/cmd", tags: "lambda.norpc,grpcnotrace"},
	{name: "Cloud Run", pkg: "."},
	{name: "tests", pkg: "./...", test: true},
}

// A module is another's, with the directories of its packages that are linked.
type module struct {
	Path, Version, Dir string
	packages           map[string]bool
	in                 map[string]bool // targets' names
}

// linked lists the modules whose packages the targets link, for Linux.
func linked(root string) ([]*module, error) {
	found := map[string]*module{}
	for _, t := range targets {
		args := []string{"list", "-deps", "-json=Dir,Module,Standard", "-tags", t.tags}
		if t.test {
			args = append(args, "-test")
		}
		cmd := exec.Command("go", append(args, t.pkg)...)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", t.pkg, err)
		}
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Dir      string
				Standard bool
				Module   *struct {
					Path, Version, Dir string
					Main               bool
					Replace            *struct{ Path string }
				}
			}
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			if p.Module.Replace != nil {
				return nil, fmt.Errorf("%s is replaced: its licence is not the one of its name", p.Module.Path)
			}
			m := found[p.Module.Path]
			if m == nil {
				m = &module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir, packages: map[string]bool{}, in: map[string]bool{}}
				found[p.Module.Path] = m
			}
			m.packages[p.Dir] = true
			m.in[t.name] = true
		}
	}
	list := make([]*module, 0, len(found))
	for _, m := range found {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// shipped reports whether a build links the module, not tests alone.
func (m *module) shipped() bool { return len(m.in) > 1 || !m.in["tests"] }

// licences reads the licence files of a module: at its root, and beside or above
// each package that is linked.
func (m *module) licences(j *judge) ([]string, error) {
	dirs := map[string]bool{m.Dir: true}
	for dir := range m.packages {
		for dir != m.Dir && strings.HasPrefix(dir, m.Dir) {
			dirs[dir] = true
			dir = filepath.Dir(dir)
		}
	}
	var ids []string
	for dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			got, err := j.of(string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %s %w", m.Path, e.Name(), err)
			}
			ids = append(ids, got...)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s: no licence file", m.Path)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// summaries are files that only name the licences whose texts lie beside them.
var summaries = map[string]bool{"LICENSE-SUMMARY": true}

func licenceFile(name string) bool {
	upper := strings.ToUpper(name)
	if summaries[upper] || strings.HasSuffix(upper, ".GO") {
		return false
	}
	for _, start := range [...]string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"} {
		if strings.HasPrefix(upper, start) {
			return true
		}
	}
	return false
}
