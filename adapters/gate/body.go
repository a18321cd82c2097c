package gate

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// errSlowBody marks a client that stopped sending within its body.
var errSlowBody = errors.New("gate: the request body stopped arriving")

// patientBody ends a read of a request's body that makes no progress. Deadlines
// of the whole request would end uploads that are alive.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
	stuck   atomic.Bool // a deadline was missed; the transport may report something else
}

// Read lifts its deadline again: the server also waits on this connection for
// the client to leave, and that wait has no end. A deadline that was missed
// stays, so that nobody waits for the rest of this body once more.
func (b *patientBody) Read(p []byte) (int, error) {
	if !b.limit() {
		return b.ReadCloser.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.stuck.Store(true)
		return n, errSlowBody
	}
	_ = b.control.SetReadDeadline(time.Time{})
	return n, err
}

// Close reads what is left of a short body, which may not come either.
func (b *patientBody) Close() error {
	limited := b.limit()
	err := b.ReadCloser.Close()
	if limited && !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return err
}

// leave is for the end of the handler: the server sends the answer and then
// reads what nobody has read. Its next wait sets a deadline of its own.
func (b *patientBody) leave() { b.limit() }

// limit sets the deadline; false when the server's writer is wrapped in one that
// cannot.
func (b *patientBody) limit() bool {
	return b.control.SetReadDeadline(time.Now().Add(b.idle)) == nil
}
