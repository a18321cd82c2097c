package sizing_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/sizing"
	"github.com/stilehq/stile/sizing/accesslog"
	"github.com/stilehq/stile/sizing/loggen"
	"github.com/stilehq/stile/stores/memory"
)

// A log with a planted abuser of 500 pages a day is measured, and the limits
// that come out are played over it.
func Example() {
	var log bytes.Buffer
	_, err := loggen.Generate(&log, loggen.Config{Seed: 1, Days: 2, Humans: 1500, SessionsPerDay: 900, Assets: 2, Abuser: &loggen.Abuser{PagesPerDay: 500, Browser: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	input := func() []accesslog.Input {
		return []accesslog.Input{accesslog.Reader("access.log", bytes.NewReader(log.Bytes()))}
	}
	r, err := sizing.Measure(context.Background(), input(), sizing.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Proposal.Finding, "abuser", r.Abusers[0].PeakDay, "a day")

	replay, err := sizing.Replay(context.Background(), input(), sizing.ReplayOptions{
		NewStore: func() core.Store { return memory.New(memory.Config{}) },
		Policy: core.Policy{Site: "example", Buckets: []core.Bucket{
			{Name: "day", Key: rows.Address, Algorithm: core.FixedWindow, Limit: int64(r.Proposal.Day), Window: 24 * time.Hour},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(replay.Limited[0].Address == r.Abusers[0].Address, replay.Limited[0].Refused == r.Abusers[0].Pages-2*int64(r.Proposal.Day))
	// Output:
	// limits abuser 500 a day
	// true true
}
