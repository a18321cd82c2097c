package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// These are the parts of CycloneDX 1.6 that are used, in the names of its JSON.
type (
	billOf struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licences   []licence  `json:"licenses"`
		PURL       string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	// A licence is one SPDX id, or an expression of several.
	licence struct {
		Licence    *licenceID `json:"license,omitempty"`
		Expression string     `json:"expression,omitempty"`
	}
	licenceID struct {
		ID string `json:"id"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
)

// bill reads what is linked into a Go binary from the binary itself and returns
// its bill of materials. The same file makes the same text: no clock, no random
// serial number.
func bill(root, file string) (string, error) {
	binary, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	j, err := ownJudge(root)
	if err != nil {
		return "", err
	}
	modules, err := linked(root)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(binary)
	own := component{
		Type: "application", Name: path.Base(info.Path), Licences: stated([]string{"Apache-2.0"}),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	if info.Main.Version != "(devel)" {
		own.Version = info.Main.Version
	}
	own.PURL = purl(info.Main.Path, own.Version)
	if sub, ok := strings.CutPrefix(info.Path, info.Main.Path+"/"); ok {
		own.PURL += "#" + sub
	}
	own.Ref = own.PURL
	for _, s := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "CGO_ENABLED", "-tags", "-trimpath", "vcs.revision"}, s.Key) {
			own.Properties = append(own.Properties, property{"stile:build:" + s.Key, s.Value})
		}
	}
	// RFC 9562 version 8: the content names it.
	id := slices.Clone(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	out := billOf{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Metadata: metadata{own},
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	out.Components = append(out.Components, component{
		Ref: purl("std", goVersion), Type: "library", Name: "std", Version: goVersion, Licences: stated([]string{"BSD-3-Clause"}), PURL: purl("std", goVersion),
	})
	for _, d := range info.Deps {
		at := slices.IndexFunc(modules, func(m *module) bool { return m.Path == d.Path })
		if at < 0 || modules[at].Version != d.Version || d.Replace != nil {
			return "", fmt.Errorf("%s: %s %s is not what this checkout links: build it here", file, d.Path, d.Version)
		}
		ids, err := modules[at].licences(j)
		if err != nil {
			return "", err
		}
		c := component{Ref: purl(d.Path, d.Version), Type: "library", Name: d.Path, Version: d.Version, Licences: stated(ids), PURL: purl(d.Path, d.Version)}
		if d.Sum != "" {
			c.Properties = []property{{"stile:go.sum", d.Sum}}
		}
		out.Components = append(out.Components, c)
	}
	all := dependency{Ref: own.Ref}
	for _, c := range out.Components {
		all.On = append(all.On, c.Ref)
		out.Dependencies = append(out.Dependencies, dependency{Ref: c.Ref})
	}
	out.Dependencies = append(out.Dependencies, all)
	text, err := json.MarshalIndent(out, "", "  ")
	return string(text) + "\n", err
}

// purl names a Go module as package-url's golang type does.
func purl(path, version string) string {
	if version != "" {
		version = "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return "pkg:golang/" + path + version
}

func stated(ids []string) []licence {
	if len(ids) == 1 {
		return []licence{{Licence: &licenceID{ids[0]}}}
	}
	return []licence{{Expression: strings.Join(ids, " AND ")}}
}
