package sizing

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stilehq/stile/sizing/accesslog"
	"github.com/stilehq/stile/sizing/loggen"
)

// BenchmarkMeasure is the whole measurement. STILE_BENCH_LOG names a log of your
// own, to compare with another tool on the same file.
func BenchmarkMeasure(b *testing.B) {
	var in func() []accesslog.Input
	if name := os.Getenv("STILE_BENCH_LOG"); name != "" {
		in = func() []accesslog.Input {
			files, err := accesslog.Files(nil, name)
			if err != nil {
				b.Fatal(err)
			}
			return files
		}
	} else {
		var log bytes.Buffer
		if _, err := loggen.Generate(&log, loggen.Config{Seed: 1, Humans: 5000, SessionsPerDay: 5000, Days: 2}); err != nil {
			b.Fatal(err)
		}
		in = func() []accesslog.Input {
			return []accesslog.Input{accesslog.Reader("bench", bytes.NewReader(log.Bytes()))}
		}
	}
	var lines int64
	for b.Loop() {
		r, err := Measure(context.Background(), in(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		lines = r.Log.Lines
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
