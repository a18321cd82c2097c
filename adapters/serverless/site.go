package serverless

import (
	"context"
	"net/http"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/answer"
)

// refreshBudget is how long an answer may be held up, once a minute at most,
// by the refresh of crawler tables and signing keys. A list or a name is had in less.
const refreshBudget = 800 * time.Millisecond

// Handler returns the gate over the site, with whatever of g the adapter knows:
// Platform, Trace, Transport. It answers 503 with its own page where the origin
// that was named is none.
func (s *Site) Handler(g gate.Config) http.Handler {
	g.Limiter, g.Answer, g.Log, g.Cookies, g.Logger, g.Origin = s.Limiter, s.Answer, s.Log, s.Cookies, s.Logger, s.Origin
	source := s.Limiter.Policy().Client
	g.OwnHost = s.OwnHost
	g.Transport = NewTimelyTransport(gate.NewTransport())
	g.Peers, g.PeerSecretHeader, g.PeerSecrets = source.Peers, source.PeerSecretHeader, source.PeerSecrets
	if s.Problem != nil {
		g.Peers = everyone
	}
	h, err := gate.New(g)
	if err != nil && s.OriginProblem == nil {
		s.OriginProblem = err
		s.Logger.Error("stile: every page is answered with 503", "error", err)
	}
	if s.OriginProblem != nil {
		h = http.HandlerFunc(s.unavailable)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Remind(time.Now())
		defer s.Beside(r.Context())()
		h.ServeHTTP(w, r)
	})
}

func (s *Site) unavailable(w http.ResponseWriter, r *http.Request) {
	s.Answer.Unavailable(answer.Request{Accept: r.Header["Accept"], Ref: answer.NewRef(), Now: time.Now()}).Write(w, r.Method)
}

// youth is how long an instance does no such work after its start. Much of what
// it holds is due then, and the visitor that it was started for waits already.
const youth = 10 * time.Second

func nothing() {}

// Beside starts the work that is due besides the request of ctx, the refresh of
// crawler tables and signing keys, and returns a function that waits for its end: call it before
// the request's handler returns, since nothing runs afterwards. Mostly nothing
// is due, and then it costs a few atomic reads. A client that leaves does not
// end the work.
func (s *Site) Beside(ctx context.Context) (wait func()) {
	if s.ready == nil || !s.ready.Due() || time.Since(s.started) < youth {
		return nothing
	}
	budget := refreshBudget
	if end, ok := ctx.Deadline(); ok {
		if budget = min(budget, time.Until(end)-answerMargin); budget <= 0 {
			return nothing // another request has more time
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.ready.Refresh(context.WithoutCancel(ctx), budget) // it logs; the held tables serve on
	}()
	return func() { <-done }
}

// Close writes what the log holds back, flushes coalesced hits and closes the
// store. Call it when the instance is told to end, and nothing afterwards.
func (s *Site) Close(ctx context.Context) error {
	if s.ready == nil {
		return nil
	}
	return s.ready.Close(ctx)
}
