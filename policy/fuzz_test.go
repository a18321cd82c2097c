package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzParse: parsing never panics, an accepted policy compiles and survives
// Show, and every message is one printable line.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/policies/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(Example())
	f.Fuzz(func(t *testing.T, data []byte) {
		file, warnings, err := parse("p.yaml", data, testEnv, testNow)
		for _, line := range messages(warnings, err) {
			if bytes.ContainsAny([]byte(line), "\r\n\x00\x1b") {
				t.Fatalf("a message of several lines: %q", line)
			}
		}
		if (file == nil) != (err != nil) {
			t.Fatal(file, err)
		}
		if file == nil {
			return
		}
		roundTrip(t, file)
		if _, err := file.Core(testNow); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzOverride puts any text into each variable that overrides a key, which
// reaches the parsers of values without YAML in between.
func FuzzOverride(f *testing.F) {
	for _, text := range []string{"observe", "1", "0.5", "-1", "7d", "1h30m", "10.0.0.0/8,192.0.2.1", "::/0", "header:X-A", "header:", "file:a.mmdb",
		"/**", "*.css,/x/*", "mailto:a@b", "https://a.example/", "2027-01-01", "off", "null", "a: b", "#", "'", "\"", "\x00", "\u2028", "GET,POST", "1e3", "0x10", " 1", "-", "~", "|", "&a", "*a", "!!str", "%20", "{}"} {
		for i := range 8 {
			f.Add(uint8(i*5), text)
		}
	}
	keys := overridable(reflect.TypeFor[File](), "")
	base, err := os.ReadFile("testdata/policies/good/everything.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key uint8, text string) {
		path := keys[int(key)%len(keys)]
		file, warnings, err := parse("p.yaml", base, environment(EnvName(path)+"="+text), testNow)
		for _, line := range messages(warnings, err) {
			if bytes.ContainsAny([]byte(line), "\r\n\x00\x1b") {
				t.Fatalf("a message of several lines: %q", line)
			}
		}
		for _, e := range all(err) {
			if e.Line == 0 && e.Env == "" {
				t.Fatalf("an error without a place: %v", e)
			}
		}
		if file != nil {
			roundTrip(t, file)
			if _, err := file.Core(testNow); err != nil {
				t.Fatal(err)
			}
		}
	})
}
