package sizing

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/internal/require"
	"github.com/stilehq/stile/sizing/accesslog"
	"github.com/stilehq/stile/stores/memory"
)

// TestCorpus measures and replays every real log that STILE_CORPUS holds.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("STILE_CORPUS")
	require.Server(t, "corpus", dir != "", "set STILE_CORPUS to a folder of access logs in folders by format")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".md") {
			return err
		}
		in, err := accesslog.Files(nil, path)
		if err != nil {
			return err
		}
		o := Options{Log: accesslog.Options{Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}
		m, err := Measure(context.Background(), in, o)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		r, err := Replay(context.Background(), in, ReplayOptions{Options: o, Policy: hourDay(60, 200), NewStore: func() core.Store { return memory.New(memory.Config{}) }})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		again, err := Measure(context.Background(), in, o)
		if err != nil || again.Humans.PerHour.String() != m.Humans.PerHour.String() || again.Everyone.PerDay.String() != m.Everyone.PerDay.String() {
			t.Errorf("%s: two measurements differ", path)
		}
		if r.Pages < m.Traffic.Pages-m.Traffic.NoAddress {
			t.Errorf("%s: %d pages replayed, %d measured", path, r.Pages, m.Traffic.Pages)
		}
		var why string
		for _, a := range append(m.Abusers, m.Shared...) {
			why += "\n\t" + a.Address + " " + a.Verdict
		}
		t.Logf("| %s | %d | %d | %d | %s | %s | %d refused | %s%s", path[len(dir)+1:], m.Log.Lines, m.Log.Records, m.Traffic.Pages, m.Humans.PerHour, m.Everyone.PerHour, r.Refused, m.Proposal.Finding, why)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
