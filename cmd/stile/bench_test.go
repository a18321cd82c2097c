package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stilehq/stile/bench"
)

func TestBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := command(t, nil, "", "bench", "--store", "memory:", "--duration", "5ms", "--out", dir, "--json")
	if out.code != exitFine {
		t.Fatalf("status %d: %s", out.code, out.stderr)
	}
	var list []bench.Result
	if err := json.Unmarshal([]byte(out.stdout), &list); err != nil || len(list) != 1 || list[0].Store.Name != "memory" || len(list[0].Loads) != 4 {
		t.Fatalf("%v: %s", err, out.stdout)
	}
	if files, err := bench.ReadFS(os.DirFS(dir)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	out = command(t, nil, "", "bench", "--duration", "5ms")
	for _, want := range []string{"memory (this process, in process)", "denied-repeat", "operations", "spread ("} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("no %q in:\n%s", want, out.stdout)
		}
	}
}

func TestBenchWrongly(t *testing.T) {
	t.Parallel()
	for want, args := range map[int][]string{
		exitMisuse: {"bench", "--store", "frob://:hunter2@x"},
		exitFailed: {"bench", "--store", "redis://:hunter2@127.0.0.1:1"},
	} {
		out := command(t, nil, "", args...)
		if out.code != want || strings.Contains(out.stderr, "hunter2") {
			t.Errorf("%v: status %d, want %d: %s", args, out.code, want, out.stderr)
		}
	}
	if out := command(t, nil, "", "bench", "--duration", "0s"); out.code != exitMisuse {
		t.Errorf("status %d: %s", out.code, out.stderr)
	}
}
