package serverless

import (
	"context"
	"io"
	"net/http"
	"time"
)

// answerMargin is what is left of a request's time for answering in place of an
// origin that used up the rest.
const answerMargin = 500 * time.Millisecond

// timely is a transport that gives up on the origin a moment before the request
// has to be answered: a platform that ends the function at its own deadline
// would answer with an error page of its own, or with half a body as if it were
// the whole. Requests without a deadline are left alone.
type timely struct{ base http.RoundTripper }

// NewTimelyTransport wraps base. The error of a request that ran out of time is
// a timeout, as net.Error has it.
func NewTimelyTransport(base http.RoundTripper) http.RoundTripper { return timely{base} }

// RoundTrip implements http.RoundTripper.
func (t timely) RoundTrip(r *http.Request) (*http.Response, error) {
	end, ok := r.Context().Deadline()
	if !ok {
		return t.base.RoundTrip(r)
	}
	ctx, cancel := context.WithDeadlineCause(r.Context(), end.Add(-answerMargin), errLate)
	res, err := t.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		late := context.Cause(ctx) == errLate
		cancel()
		if late {
			return nil, errLate
		}
		return nil, err
	}
	if rw, ok := res.Body.(io.ReadWriteCloser); ok {
		res.Body = &timelyConn{rw, cancel} // a connection that was upgraded
	} else {
		res.Body = &timelyBody{res.Body, cancel}
	}
	return res, nil
}

// timelyBody releases the timer when the body is done with.
type timelyBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *timelyBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

type timelyConn struct {
	io.ReadWriteCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *timelyConn) Close() error {
	defer c.cancel()
	return c.ReadWriteCloser.Close()
}

type lateError struct{}

var errLate error = lateError{}

func (lateError) Error() string {
	return "serverless: the origin did not answer within the request's time"
}
func (lateError) Timeout() bool   { return true }
func (lateError) Temporary() bool { return true }
