package firestore

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stilehq/stile/core"
)

// An Error is why a row failed. It wraps core.ErrNotApplied when the record is
// proven unchanged, and context.DeadlineExceeded or context.Canceled when that
// was the reason.
type Error struct {
	// Code is the gRPC code of the answer, or of what stood in its way.
	Code codes.Code

	message    string
	cause      error
	notApplied bool
}

// Error names the code and the server's message.
func (e *Error) Error() string { return "firestore: " + e.Code.String() + ": " + e.message }

// Unwrap returns what the error is, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	list := []error{e.cause}
	switch e.Code {
	case codes.DeadlineExceeded:
		list = append(list, context.DeadlineExceeded)
	case codes.Canceled:
		list = append(list, context.Canceled)
	}
	if e.notApplied {
		list = append(list, core.ErrNotApplied)
	}
	return list
}

// Throttled reports that the record or the database is written faster than
// Firestore allows (contention, or a quota). The answer to it is to write less
// often, by coalescing; it says nothing about the store's health, so a breaker
// should not open for it.
func (e *Error) Throttled() bool {
	return e.Code == codes.Aborted || e.Code == codes.ResourceExhausted
}

// classify turns the error of an RPC into an *Error. sent says whether the
// request may have reached a server.
func classify(err error, sent bool) *Error {
	st := status.Convert(err)
	code := st.Code()
	switch {
	case code != codes.Unknown:
	case strings.Contains(err.Error(), context.DeadlineExceeded.Error()):
		code = codes.DeadlineExceeded // the client gave up by itself, outside gRPC
	case strings.Contains(err.Error(), context.Canceled.Error()):
		code = codes.Canceled
	}
	return &Error{Code: code, message: st.Message(), cause: err, notApplied: !sent || refused(code)}
}

// refused reports whether a code, coming from a server, means that the write was
// not applied. One Write is atomic, so it is all or nothing: these codes say that
// the request was rejected, or its transaction aborted. UNAVAILABLE,
// DEADLINE_EXCEEDED, CANCELLED, INTERNAL and UNKNOWN can follow a write that was
// applied, and are not here.
func refused(code codes.Code) bool {
	switch code {
	case codes.Aborted, codes.ResourceExhausted, codes.InvalidArgument, codes.NotFound,
		codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	}
	return false
}

// missingDocument tells NOT_FOUND for a document apart from NOT_FOUND for the
// database or project, which the service words as one that "does not exist" or
// "does not contain" what was asked for.
func missingDocument(err error) bool {
	st := status.Convert(err)
	return st.Code() == codes.NotFound &&
		!strings.Contains(st.Message(), "does not exist") &&
		!strings.Contains(st.Message(), "does not contain")
}
