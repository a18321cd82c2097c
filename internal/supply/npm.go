package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// locks finds the lock files of the npm packages that tests install, by their
// paths in the tree. Nothing of them is shipped.
func locks(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "dist"):
			return filepath.SkipDir
		case d.Name() == "package-lock.json":
			rel, err := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New("no package-lock.json was found")
	}
	return files, err
}

// npmPlain are the licences of npm packages that need no word: permissive ones,
// for code and, CC-BY-4.0 and CC0-1.0, for data.
var npmPlain = []string{
	"(MIT OR CC0-1.0)", "0BSD", "BSD-0-Clause", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC-BY-4.0", "CC0-1.0", "ISC", "MIT", "Python-2.0",
}

// npmCommon are those of them whose packages are only counted.
var npmCommon = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// npmStated are packages of another licence that are accepted, by the start of
// their name and the licence: image libraries that site generators offer as
// options, and one whose lock entry says nothing and whose own file is the MIT
// licence.
var npmStated = [...]struct{ start, licence string }{
	{"@img/sharp-", "LGPL-3.0-or-later"},
	{"@img/sharp-", "Apache-2.0 AND LGPL-3.0-or-later"},
	{"@img/sharp-", "Apache-2.0 AND LGPL-3.0-or-later AND MIT"},
	{"zod-to-ts", ""},
}

// npm returns the names of a lock file's packages by licence.
func npm(root, file string) (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	return readLock(file, text)
}

func readLock(file string, text []byte) (map[string][]string, error) {
	var lock struct {
		Packages map[string]struct{ License any } `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := map[string][]string{}
	for place, p := range lock.Packages {
		if place == "" {
			continue // the tests themselves
		}
		name := place[strings.LastIndex(place, "node_modules/")+len("node_modules/"):]
		licence, _ := p.License.(string)
		if !acceptable(name, licence) {
			return nil, fmt.Errorf("%s: %s has the licence %q", file, name, licence)
		}
		if !slices.Contains(out[licence], name) {
			out[licence] = append(out[licence], name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no packages", file)
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out, nil
}

func acceptable(name, licence string) bool {
	if slices.Contains(npmPlain, licence) {
		return true
	}
	for _, s := range npmStated {
		if strings.HasPrefix(name, s.start) && licence == s.licence {
			return true
		}
	}
	return false
}
