package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
)

const (
	// decideTime bounds a decision where STILE_AUTHORIZER_DEADLINE does not. The store's own deadline is far shorter; this
	// one is for what should not happen.
	decideTime = time.Second
	// spareTime is what is left of the invocation for the answer itself.
	spareTime = 200 * time.Millisecond
	// settleTime bounds the store's leftover work, for which the visitor waits.
	settleTime = 500 * time.Millisecond
)

// errUnavailable is how a REST API's authorizer says 503: map the gateway
// response AUTHORIZER_FAILURE to that status.
var errUnavailable = errors.New("stile: the store failed, and the policy fails closed")

// authorize answers an authorizer's event. It asks, settles, logs and answers
// within the invocation's time whatever happens.
func (f *Function) authorize(ctx context.Context, e *event, kind shape) (io.Reader, error) {
	switch kind {
	case tokenAuthorizer:
		f.logger.Error("stile: NOTHING IS LIMITED: the authorizer is of type TOKEN, which says nothing of the request; make it REQUEST")
		return f.verdict(e, kind, true, nil)
	case socketAuthorizer: // a connection is no page
		return f.verdict(e, kind, true, nil)
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-spareTime))
		defer cancel()
	}
	f.site.Remind(f.now())
	wait := f.site.Beside(ctx)
	r := e.request(f.now())
	r.Blind = true // the gateway keeps the answer to itself
	d := f.decide(ctx, r)
	cookie := ""
	if f.site.Cookies != nil {
		cookie = f.site.Cookies.Offer(r, &d)
	}
	f.settle(ctx, &d)

	ref, unavailable := "", d.Outcome == core.Unavailable && !d.Observe
	if unavailable || d.Refused() {
		ref = answer.NewRef()
	}
	f.log(ctx, kind, r, &d, ref)
	wait()
	switch {
	case unavailable && (kind == restAuthorizer):
		return nil, errUnavailable
	case unavailable:
		return f.verdict(e, kind, !f.forbid, map[string]string{"limited": "0", "outcome": answer.OutcomeUnavailable, "ref": ref})
	case d.Refused():
		return f.verdict(e, kind, kind != restAuthorizer && !f.forbid, withCookie(f.refused(&d, r, ref), cookie))
	}
	return f.verdict(e, kind, true, withCookie(f.allowed(&d), cookie))
}

// decide asks the limiter, with a deadline and without letting a panic out.
func (f *Function) decide(ctx context.Context, r *core.Request) core.Decision {
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	out := make(chan core.Decision, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				f.logger.Error("stile: a decision panicked", "panic", p)
				out <- f.failed(errors.New("lambda: the decision panicked"))
			}
		}()
		out <- f.site.Limiter.Decide(ctx, r)
	}()
	select {
	case d := <-out:
		return d
	case <-ctx.Done():
	}
	select {
	case d := <-out: // the limiter minds the deadline too
		return d
	case <-time.After(50 * time.Millisecond):
		f.logger.Error("stile: a decision took too long")
		return f.failed(ctx.Err())
	}
}

// failed is the decision of the policy's store.on_error, where the limiter
// itself could not make it.
func (f *Function) failed(err error) core.Decision {
	p := f.site.Limiter.Policy()
	d := core.Decision{Binding: -1, Observe: p.Observe, Class: core.Counted, Err: err, Reason: core.ReasonStoreOpen}
	if p.OnError == core.FailClosed {
		d.Outcome, d.Reason = core.Unavailable, core.ReasonStoreClosed
	}
	return d
}

func (f *Function) settle(ctx context.Context, d *core.Decision) {
	if d.StoreTime == 0 && len(d.States) == 0 && d.Err == nil {
		return // the store was not asked
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := f.site.Limiter.Settle(ctx); err != nil {
		f.logger.Debug("stile: settle", "error", err)
	}
}

// log writes the hit. What an allowed visitor gets, nobody here learns.
func (f *Function) log(ctx context.Context, kind shape, r *core.Request, d *core.Decision, ref string) {
	if f.site.Log == nil || d.Outcome == core.Pass && d.Err == nil {
		return
	}
	status := 0
	switch {
	case ref == "":
	case kind == restAuthorizer && d.Outcome == core.Unavailable:
		status = http.StatusServiceUnavailable
	case kind == restAuthorizer:
		status = http.StatusTooManyRequests
	case f.forbid:
		status = http.StatusForbidden
	}
	f.site.Log.Write(context.WithoutCancel(ctx), hitlog.Record{Request: r, Decision: d, Status: status, Ref: ref, Trace: trace(r.Header)})
}

type policyAnswer struct {
	PrincipalID    string            `json:"principalId"` // required, and means nothing here
	PolicyDocument policyDocument    `json:"policyDocument"`
	Context        map[string]string `json:"context,omitempty"`
}

type policyDocument struct {
	Version   string
	Statement []statement
}

type statement struct {
	Action   string
	Effect   string
	Resource string
}

type simpleAnswer struct {
	IsAuthorized bool              `json:"isAuthorized"`
	Context      map[string]string `json:"context,omitempty"`
}

// verdict writes the answer in the form that the event's sender reads.
func (f *Function) verdict(e *event, kind shape, allow bool, context map[string]string) (io.Reader, error) {
	var v any
	if kind == httpAuthorizer2 {
		v = simpleAnswer{allow, context}
	} else {
		effect := "Deny"
		if allow {
			effect = "Allow"
		}
		v = policyAnswer{
			PrincipalID:    "stile",
			PolicyDocument: policyDocument{"2012-10-17", []statement{{"execute-api:Invoke", effect, resource(e.arn())}}},
			Context:        context,
		}
	}
	text, err := json.Marshal(v)
	return reply{bytes.NewReader(text)}, err
}

func (e *event) arn() string {
	if e.MethodARN != "" {
		return e.MethodARN
	}
	return e.RouteARN
}

// resource widens arn:aws:execute-api:region:account:api/stage/METHOD/path to
// the stage: the path is the visitor's and may be longer than the 512
// characters that are allowed. With a cache time of 0, which this authorizer
// needs in any case, the answer is used for the one request only.
func resource(arn string) string {
	api, rest, ok := strings.Cut(arn, "/")
	stage, _, _ := strings.Cut(rest, "/")
	if out := api + "/" + stage + "/*"; ok && stage != "" && len(out) <= 256 && strings.HasPrefix(arn, "arn:") {
		return out
	}
	return "*"
}
