package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const pageHead = `# Licences of what Stile is made of

Written by ` + "`scripts/licences.sh`" + `, which reads the licence files of every linked module word for word and fails on an unknown text and on
a copyleft one; a test holds this page against it. Stile itself is Apache-2.0. Versions are in ` + "`go.mod`" + ` and in the bill of materials
(` + "`scripts/sbom.sh`" + `).

## Go modules

`

// page writes docs/licences.md.
func page(root string) (string, error) {
	j, err := ownJudge(root)
	if err != nil {
		return "", err
	}
	modules, err := linked(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(pageHead)
	var problems []error
	rows, sum := strings.Builder{}, map[string]int{}
	for _, m := range modules {
		ids, err := m.licences(j)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		var in []string
		for _, t := range targets {
			if m.in[t.name] && (!t.test || !m.shipped()) {
				in = append(in, t.name)
			}
		}
		expression := strings.Join(ids, " AND ")
		if m.shipped() {
			sum[expression]++
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", m.Path, expression, strings.Join(in, ", "))
	}
	if len(problems) > 0 {
		return "", errors.Join(problems...)
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(sum)) {
		parts = append(parts, fmt.Sprintf("%s %d", id, sum[id]))
	}
	fmt.Fprintf(&b, "Shipped modules by licence: %s. Under the MPL-2.0: none; copyleft: none (either is refused).\n\n| module | licence | linked into |\n|---|---|---|\n%s", strings.Join(parts, ", "), rows.String())
	b.WriteString("\n## npm packages of the tests\n\nNone is shipped. The licences are those that the lock files state. LGPL-3.0 packages are prebuilt image libraries that\nsite generators offer as options; they are accepted by name only.\n")
	files, err := locks(root)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		by, err := npm(root, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n`%s`:\n\n| licence | packages |\n|---|---|\n", file)
		for _, id := range slices.Sorted(maps.Keys(by)) {
			names := strings.Join(by[id], ", ")
			if slices.Contains(npmCommon, id) {
				names = fmt.Sprint(len(by[id]))
			}
			fmt.Fprintf(&b, "| %s | %s |\n", cmp.Or(id, "none in the lock file; MIT by its own file"), names)
		}
	}
	return b.String(), nil
}

func ownJudge(root string) (*judge, error) {
	text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return newJudge(string(text))
}
