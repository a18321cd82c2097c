package policy_test

import (
	"fmt"

	"github.com/stilehq/stile/policy"
)

func ExampleParse() {
	_, _, err := policy.Parse("stile.yaml", []byte(`
version: 1
contact: mailto:ops@example.org
client: {from: xff}
buckets:
  - {name: hour, limit: 60, window: 1h}
  - {name: day, limit: 0, windw: 24h}
`), nil)
	fmt.Println(err)
	// Output:
	// client.from (line 4): xff needs to know which entry of X-Forwarded-For is the client; write trusted_hops: 1 (one proxy in front), or list trusted_proxies
	// buckets[1].windw (line 7): unknown key; did you mean window?
	// buckets[1].limit (line 7): 0 admits nobody; write 1 or more, or use mode: observe
}
