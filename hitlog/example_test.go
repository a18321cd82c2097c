package hitlog_test

import (
	"errors"
	"fmt"

	"github.com/stilehq/stile/hitlog"
)

// A mixed log is read line by line; what is not ours is passed over.
func ExampleParse() {
	for _, line := range []string{
		`{"time":"2026-11-30T12:00:00Z","severity":"WARNING","event":"limited","ip":"203.0.113.9","path":"/a","status":429,"left_out":99}`,
		`listening on 127.0.0.1:8080`,
	} {
		e, err := hitlog.Parse([]byte(line))
		if errors.Is(err, hitlog.ErrForeign) {
			continue
		}
		fmt.Println(e.Event, e.IP, e.Path, "stands for", 1+e.LeftOut, "refusals")
	}
	// Output: limited 203.0.113.9 /a stands for 100 refusals
}
