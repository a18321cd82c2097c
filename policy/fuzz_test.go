package policy

import (
	"bytes"
	"os"
	"path/filepath"
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
