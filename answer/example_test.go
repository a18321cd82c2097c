package answer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
)

// A refusal is a value first, and a response when somebody writes it.
func ExampleWriter_Limited() {
	w, err := answer.New(answer.Config{Contact: "mailto:ops@example.org"})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := core.Decision{Outcome: core.Refuse, RetryAfter: 89 * time.Second, Binding: 0, States: []core.State{
		{Bucket: "hour", Limit: 60, Window: time.Hour, Reset: 89 * time.Second, RetryAfter: 89 * time.Second},
	}}
	a := w.Limited(&d, answer.Request{Accept: []string{"application/json"}, Ref: "ABCDEFGH2345", Now: time.Now()})
	rec := httptest.NewRecorder()
	a.Write(rec, http.MethodGet)
	fmt.Println(rec.Code, rec.Header().Get("Retry-After"), rec.Header().Get("RateLimit"), rec.Header().Get("RateLimit-Policy"))
	// Output: 429 89 "hour";r=0;t=89 "hour";q=60;w=3600
}

// A page that a shared cache may keep carries nobody's numbers.
func ExampleWriter_Annotate() {
	w, _ := answer.New(answer.Config{})
	d := core.Decision{Outcome: core.Admit, Binding: 0, States: []core.State{{Bucket: "hour", Limit: 60, Remaining: 59, Window: time.Hour}}}
	for _, control := range []string{"private", "public, max-age=60"} {
		h := http.Header{"Cache-Control": {control}}
		w.Annotate(http.StatusOK, h, &d)
		fmt.Printf("%s: %q\n", control, h.Get("X-RateLimit-Remaining"))
	}
	// Output:
	// private: "59"
	// public, max-age=60: ""
}
