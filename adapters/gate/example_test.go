package gate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/memory"
)

// Two pages an hour for each address, in front of any site.
func ExampleNew() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a page")
	}))
	defer site.Close()
	limiter, err := core.New(core.Policy{
		Buckets: []core.Bucket{{Name: "hour", Key: rows.Address, Algorithm: core.SlidingWindowCounter, Limit: 2, Window: time.Hour}},
	}, core.Options{Store: memory.New(memory.Config{}), Local: memory.New(memory.Config{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	pages, err := answer.New(answer.Config{Contact: "mailto:ops@example.org"})
	if err != nil {
		fmt.Println(err)
		return
	}
	origin, _ := url.Parse(site.URL)
	h, err := gate.New(gate.Config{Limiter: limiter, Answer: pages, Origin: origin})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/article", nil))
		fmt.Println(rec.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}
