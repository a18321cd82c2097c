package accesslog_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stilehq/stile/sizing/accesslog"
)

// Two shapes in one file, and a line that is no request.
func ExampleScan() {
	log := `192.0.2.1 - - [05/Mar/2024:10:20:30 +0100] "GET /a?b=c HTTP/1.1" 200 77 "-" "Mozilla/5.0"
{"msec":"1709634030.591","remote_addr":"2001:db8::1","request":"GET /d HTTP/2.0","status":"304"}
192.0.2.2 - - [05/Mar/2024:10:20:31 +0100] "\x16\x03\x01" 400 166 "-" "-"
`
	stats, err := accesslog.Scan(context.Background(), []accesslog.Input{accesslog.Reader("access.log", strings.NewReader(log))},
		accesslog.Options{Workers: 1}, func(worker int) accesslog.Sink {
			return accesslog.SinkFunc(func(r *accesslog.Record) {
				fmt.Println(r.Time.Format(time.RFC3339), r.Client, r.Method, r.Target(), r.Status, r.Format)
			})
		})
	fmt.Println(stats.Records, stats.Skipped[accesslog.NotHTTP], err)
	// Output:
	// 2024-03-05T09:20:30Z 192.0.2.1 GET /a?b=c 200 combined
	// 2024-03-05T10:20:30Z 2001:db8::1 GET /d 304 json
	// 2 1 <nil>
}
