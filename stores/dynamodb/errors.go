package dynamodb

import (
	"errors"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/stilehq/stile/core"
)

// An Error is why a row failed. It wraps core.ErrNotApplied when the record is
// proven unchanged, and the SDK's error.
type Error struct {
	// Code is DynamoDB's name of the error, such as
	// ProvisionedThroughputExceededException; "" when there was no answer.
	Code string

	cause      error
	notApplied bool
}

// Error names the code and the reason.
func (e *Error) Error() string { return "dynamodb: " + e.cause.Error() }

// Unwrap returns what the error is, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.notApplied {
		return []error{e.cause, core.ErrNotApplied}
	}
	return []error{e.cause}
}

// Throttled reports that the item or the table is written faster than DynamoDB
// allows. The answer to it is to write less often, by coalescing; it says nothing
// about the store's health, so a breaker should not open for it.
func (e *Error) Throttled() bool {
	switch e.Code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded",
		"LimitExceededException", "TransactionConflictException", "ReplicatedWriteConflictException", codeContended:
		return true
	}
	return false
}

// codeContended is our own: conditional writes lost every race.
const codeContended = "Contended"

// classify turns the error of a request into an *Error. sent says whether the
// request may have reached a server.
func classify(err error, sent bool) *Error {
	e := &Error{cause: err, notApplied: !sent}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return e
	}
	e.Code = api.ErrorCode()
	var resp *awshttp.ResponseError
	if errors.As(err, &resp) {
		// DynamoDB refuses with 400 before it performs anything: malformed, not
		// permitted, throttled, condition failed. A 5xx may follow a write that
		// was applied; other codes come from something in between.
		switch resp.HTTPStatusCode() {
		case 400, 401, 403, 413:
			e.notApplied = true
		}
	}
	return e
}
