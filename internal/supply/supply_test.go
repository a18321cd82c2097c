package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func newOwn(t *testing.T) *judge {
	t.Helper()
	j, err := ownJudge(root)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestPage: the committed page says what the linked modules' licence files say,
// all of which are known and permissive.
func TestPage(t *testing.T) {
	t.Parallel()
	want, err := page(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "licences.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/licences.md is not of these dependencies: run scripts/licences.sh --write")
	}
}

const mitText = `The MIT License (MIT)

Copyright (c) 2020 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software
without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// TestJudge: a licence is known by its every word, and what is added to one or
// left out of it is found.
func TestJudge(t *testing.T) {
	t.Parallel()
	j := newOwn(t)
	apache, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text, want string // "" = refused
	}{
		"MIT":                      {mitText, "MIT"},
		"Apache":                   {string(apache), "Apache-2.0"},
		"both":                     {mitText + string(apache), "Apache-2.0 MIT"},
		"MIT without attribution":  {strings.Replace(strings.Replace(mitText, ", subject to the following conditions:", ".", 1), "The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.", "", 1), "MIT-0"},
		"a changed condition":      {strings.Replace(mitText, "without restriction", "without military use", 1), ""},
		"a condition left out":     {strings.Replace(mitText, "merge, publish,", "merge,", 1), ""},
		"a clause of its own":      {mitText + strings.Repeat("Nobody may sell a service made of the Software. ", 25), ""},
		"Commons Clause":           {"“Commons Clause” License Condition v1.0\n" + mitText, ""},
		"Mozilla":                  {"Mozilla Public License Version 2.0\n1. Definitions", ""},
		"the GPL":                  {"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", ""},
		"the GPL beside the other": {mitText + "\nOr, at your option, the GNU General Public License.", ""},
		"none":                     {"All rights reserved.", ""},
		"empty":                    {"", ""},
	} {
		ids, err := j.of(c.text)
		if got := strings.Join(ids, " "); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestModuleWithoutLicence and with one below its root.
func TestModuleLicenceFiles(t *testing.T) {
	t.Parallel()
	j := newOwn(t)
	dir := t.TempDir()
	sub := filepath.Join(dir, "third", "party")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &module{Path: "example.org/m", Dir: dir, packages: map[string]bool{sub: true}}
	if _, err := m.licences(j); err == nil || !strings.Contains(err.Error(), "no licence file") {
		t.Errorf("a module without a licence: %v", err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("LICENSE.md", mitText)
	if ids, err := m.licences(j); err != nil || !slices.Equal(ids, []string{"MIT"}) {
		t.Errorf("%v %v", ids, err)
	}
	write("third/COPYING", "GNU LESSER GENERAL PUBLIC LICENSE Version 2.1")
	if _, err := m.licences(j); err == nil || !strings.Contains(err.Error(), "LGPL") {
		t.Errorf("copyleft above a linked package: %v", err)
	}
}

func TestLockFiles(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		`{"packages":{"":{"license":"GPL-3.0"},"node_modules/a":{"license":"MIT"}}}`:         true,
		`{"packages":{"node_modules/a/node_modules/@b/c":{"license":"GPL-3.0"}}}`:            false,
		`{"packages":{"node_modules/a":{}}}`:                                                 false,
		`{"packages":{"node_modules/a":{"license":{"type":"MIT"}}}}`:                         false,
		`{"packages":{"node_modules/a":{"license":"LGPL-3.0-or-later"}}}`:                    false,
		`{"packages":{"node_modules/@img/sharp-libvips-x":{"license":"LGPL-3.0-or-later"}}}`: true,
		`{}`: false,
		`{`:  false,
	} {
		if _, err := readLock("lock", []byte(text)); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestBill builds this command and holds its bill of materials against the
// demands of CycloneDX 1.6 on the parts that are used.
func TestBill(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "bootstrap")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "./adapters/lambda/cmd")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := bill(root, binary)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := bill(root, binary); err != nil || again != text {
		t.Errorf("the same file made another bill (%v)", err)
	}
	var b billOf
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Spec != "1.6" || b.Version != 1 || !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.Serial) {
		t.Errorf("%s %s %d %s", b.Format, b.Spec, b.Version, b.Serial)
	}
	all := append([]component{b.Metadata.Component}, b.Components...)
	refs := map[string]bool{}
	form := regexp.MustCompile(`^pkg:golang/[a-zA-Z0-9./_~-]+(@[a-zA-Z0-9.+%_-]+)?(#[a-z/]+)?$`)
	for i, c := range all {
		if refs[c.Ref] || c.Ref == "" {
			t.Errorf("the reference %q is there twice", c.Ref)
		}
		refs[c.Ref] = true
		if c.Name == "" || !form.MatchString(c.PURL) || len(c.Licences) != 1 || i > 0 && (c.Type != "library" || c.Version == "") {
			t.Errorf("%+v", c)
		}
		for _, l := range c.Licences {
			if (l.Licence != nil) == (l.Expression != "") {
				t.Errorf("%s: a licence is an id or an expression: %+v", c.Name, l)
			}
		}
	}
	if own := all[0]; own.Type != "application" || len(own.Hashes) != 1 || len(own.Hashes[0].Content) != 64 {
		t.Errorf("%+v", own)
	}
	if len(b.Dependencies) != len(all) {
		t.Errorf("%d dependencies of %d components", len(b.Dependencies), len(all))
	}
	for _, d := range b.Dependencies {
		for _, ref := range append([]string{d.Ref}, d.On...) {
			if !refs[ref] {
				t.Errorf("a dependency on %q, which is no component", ref)
			}
		}
	}
	for _, name := range []string{"std", "github.com/aws/aws-lambda-go", "golang.org/x/sys"} {
		if !slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == name }) {
			t.Errorf("%s is linked and not in the bill", name)
		}
	}
	if slices.ContainsFunc(b.Components, func(c component) bool { return c.Name == "cloud.google.com/go/firestore" }) {
		t.Error("Firestore's client is not linked and in the bill")
	}
	if _, err := bill(root, filepath.Join(root, "LICENSE")); err == nil {
		t.Error("a text file has a bill of materials")
	}
}
