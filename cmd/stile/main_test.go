package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain lets the test binary be the program itself, so that signals, exit
// statuses and pipes are tested on a real process without building one.
func TestMain(m *testing.M) {
	if os.Getenv("STILE_TEST_MAIN") == "1" {
		main()
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

// A run is what one command line did.
type run struct {
	code           int
	stdout, stderr string
}

// command runs a command line in this process, at a fixed time, with nothing but
// env in the environment.
func command(t *testing.T, env map[string]string, stdin string, args ...string) run {
	t.Helper()
	var out, errs bytes.Buffer
	term := &terminal{
		lookup: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
		stdin:  strings.NewReader(stdin), stdout: &out, stderr: &errs,
		now: func() time.Time { return time.Date(2026, 10, 5, 12, 20, 0, 0, time.UTC) },
	}
	code := term.exec(context.Background(), args)
	return run{code, out.String(), errs.String()}
}

// golden holds text against testdata/NAME, or writes it there with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with -update and look at it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", name, got, want)
	}
}

// write makes a file in a folder of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
