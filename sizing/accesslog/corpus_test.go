package accesslog

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/require"
)

// corpus returns the folder of real logs, which are not part of the project.
func corpus(tb testing.TB) string {
	dir := os.Getenv("STILE_CORPUS")
	require.Server(tb, "corpus", dir != "", "set STILE_CORPUS to a folder of access logs in folders by format")
	return dir
}

// TestCorpus reads every real sample and demands that most lines of each file
// are requests,; no line is lost between the counts.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		in, err := Files(nil, path)
		if err != nil {
			return err
		}
		var got atomic.Int64
		s, err := Scan(context.Background(), in, Options{Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, func(int) Sink {
			return SinkFunc(func(r *Record) {
				got.Add(1)
				if r.Method == "" || r.Time.IsZero() {
					t.Errorf("%s: record without method or time: %+v", path, *r)
				}
			})
		})
		if err != nil || len(s.Errors) > 0 {
			t.Errorf("%s: %v %v", path, err, s.Errors)
		}
		sum := s.Records
		out := fmt.Sprintf("%s: lines=%d records=%d", path[len(dir):], s.Lines, s.Records)
		for f, n := range s.Formats {
			if n > 0 {
				out += fmt.Sprintf(" %s=%d", Format(f), n)
			}
		}
		for k, n := range s.Skipped {
			sum += n
			if n > 0 {
				out += fmt.Sprintf("\n\t%s=%d %.120q", Kind(k), n, s.Examples[k])
			}
		}
		t.Log(out, " noaddr", s.NoAddress)
		if sum != s.Lines || got.Load() != s.Records {
			t.Errorf("%s: %d lines, but %d accounted for; %d records, %d delivered", path, s.Lines, sum, s.Records, got.Load())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
