package bench_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehq/stile/bench"
)

const small = `{"schema":1,"store":{"name":"redis"},"states":[{"state":"steady","navigations":2,"writes":2}]}`

func TestParse(t *testing.T) {
	t.Parallel()
	r, err := bench.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := r.State("steady"); !ok || s.Operations() != 2 || s.BytesOut != nil {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := r.State("none"); ok {
		t.Error("a state that is not there was found")
	}
	for name, text := range map[string]string{
		"empty":          ``,
		"no store":       `{"schema":1,"states":[{"state":"steady","navigations":2}]}`,
		"no states":      `{"schema":1,"store":{"name":"redis"}}`,
		"no navigations": strings.Replace(small, `"navigations":2`, `"navigations":0`, 1),
		"negative":       strings.Replace(small, `"writes":2`, `"writes":-2`, 1),
	} {
		if r, err := bench.Parse([]byte(text)); err == nil || errors.Is(err, bench.ErrSchema) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for _, version := range []string{`"schema":2`, `"schema":0`, `"x":1`} {
		if _, err := bench.Parse([]byte(strings.Replace(small, `"schema":1`, version, 1))); !errors.Is(err, bench.ErrSchema) {
			t.Errorf("%s: %v, want ErrSchema", version, err)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	r, err := bench.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := r.Write(dir + "/new"); err != nil {
		t.Fatal(err)
	}
	list, err := bench.ReadFS(os.DirFS(dir + "/new"))
	if err != nil || len(list) != 1 || list[0].File != "redis.json" || list[0].States[0].Writes != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	// One bad file does not hide the good ones.
	list, err = bench.ReadFS(fstest.MapFS{
		"a.json": {Data: []byte(small)}, "b.json": {Data: []byte(`{"schema":9}`)}, "c.txt": {Data: []byte("x")},
	})
	if !errors.Is(err, bench.ErrSchema) || !strings.Contains(err.Error(), "b.json") || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestCommitted: the results in the repository are of this version, name nobody's
// machine and cover every store.
func TestCommitted(t *testing.T) {
	t.Parallel()
	list, err := bench.ReadFS(os.DirFS("results"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range list {
		names = append(names, r.Store.Name)
		for _, n := range r.Notes {
			if strings.Contains(n, "127.0.0.1") || strings.Contains(n, "/") {
				t.Errorf("%s: note %q names a place", r.File, n)
			}
		}
		if len(r.States) != 9 || len(r.Loads) != 4 || r.Date.IsZero() {
			t.Errorf("%s: %d states, %d loads, date %v", r.File, len(r.States), len(r.Loads), r.Date)
		}
	}
	if got := strings.Join(names, " "); got != "dynamodb firestore memory redis upstash" {
		t.Errorf("results of %q", got)
	}
}
