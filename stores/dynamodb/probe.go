package dynamodb

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// probeID is the key of a record that never exists. No row's name starts so.
const probeID = "~probe"

var (
	// ErrNoTTL marks a table whose records would never be deleted. It counts
	// correctly; it grows for ever.
	ErrNoTTL = errors.New("dynamodb: expiry is off")

	// ErrUnchecked marks what could not be checked, for want of a permission or
	// because the server does not know the question. What else Probe checks was
	// fine.
	ErrUnchecked = errors.New("dynamodb: could not be checked")
)

// Probe asks the table whether it can hold rows, and says in plain words what to
// change if not. It sends one write on the condition that a record exists which
// never does, billed like a write (1 WRU), and one DescribeTimeToLive.
func (s *Store) Probe(ctx context.Context) error {
	if s.closed.Load() {
		return errClosed
	}
	_, err := s.client.UpdateItem(ctx, &ddb.UpdateItemInput{
		TableName:                 &s.cfg.Table,
		Key:                       record(probeID),
		UpdateExpression:          aws.String("ADD s0 :n"),
		ConditionExpression:       aws.String("attribute_exists(" + keyAttribute + ")"),
		ExpressionAttributeValues: item{":n": &types.AttributeValueMemberN{Value: "0"}},
	})
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) {
		e := classify(err, true)
		return fmt.Errorf("%s: %w", s.advice(e), e)
	}
	return s.probeTTL(ctx)
}

func (s *Store) probeTTL(ctx context.Context) error {
	out, err := s.client.DescribeTimeToLive(ctx, &ddb.DescribeTimeToLiveInput{TableName: &s.cfg.Table})
	if err != nil {
		e := classify(err, true)
		if e.Code == "" { // no answer
			return fmt.Errorf("%s: %w", s.advice(e), e)
		}
		return fmt.Errorf("%w: expiry of table %s: %w", ErrUnchecked, s.cfg.Table, err)
	}
	d := out.TimeToLiveDescription
	if d == nil {
		return fmt.Errorf("%w: expiry of table %s: an empty answer", ErrUnchecked, s.cfg.Table)
	}
	switch d.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
		if got := aws.ToString(d.AttributeName); got != ttlAttribute {
			return fmt.Errorf("%w: TTL of table %s is on the attribute %q; it must be on %q", ErrNoTTL, s.cfg.Table, got, ttlAttribute)
		}
		return nil
	}
	return fmt.Errorf("%w: TTL of table %s is %s; switch it on for the attribute %q", ErrNoTTL, s.cfg.Table, d.TimeToLiveStatus, ttlAttribute)
}

// advice says what an operator should do about a failed probe.
func (s *Store) advice(e *Error) string {
	where := "table " + s.cfg.Table + ", region " + s.client.Options().Region
	switch e.Code {
	case "":
		return "dynamodb cannot be reached (" + where + ")"
	case "ResourceNotFoundException":
		return "there is no such table (" + where + "), or it is still being created; the region must be right"
	case "ValidationException":
		return "the table has another key (" + where + "); it needs a partition key " + keyAttribute + " of type string and no sort key"
	case "AccessDeniedException":
		return "no permission for dynamodb:UpdateItem (" + where + ")"
	case "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException",
		"MissingAuthenticationTokenException", "ExpiredTokenException":
		return "the credentials were refused (" + where + ")"
	}
	if e.Throttled() {
		return "the table refuses writes for their number (" + where + ")"
	}
	return "dynamodb refused a write (" + where + ")"
}
