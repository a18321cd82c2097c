package dynamodb

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
)

// testProbe asks a real server about tables that are right (but for TTL, which
// dynalite reports as off), absent and of another shape.
func testProbe(t *testing.T, server *dynamodbtest.Server) {
	if err := open(t, server.Endpoint()).Probe(t.Context()); !errors.Is(err, ErrNoTTL) {
		t.Errorf("a good table without TTL: %v, want ErrNoTTL", err)
	}
	server.CreateTableWithKey(t, "other-key", "id", types.ScalarAttributeTypeS)
	server.CreateTableWithKey(t, "other-type", "pk", types.ScalarAttributeTypeN)
	for _, test := range []struct{ table, want string }{
		{"absent", "no such table"},
		{"other-key", "another key"},
		{"other-type", "another key"},
	} {
		s, err := Open(t.Context(), Config{Table: test.table, Endpoint: server.Endpoint()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrNoTTL) {
			t.Errorf("table %s: %v, want %q", test.table, err, test.want)
		}
	}
}

// An answer is what a canned server says to one operation.
type answer struct {
	status int
	body   string
}

func exception(status int, name string) answer {
	return answer{status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"canned"}`, name)}
}

// canned serves fixed answers by operation, for what no local server can be
// brought to say. Its form is DynamoDB's JSON protocol.
func canned(t *testing.T, answers map[string]answer) *Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		a, ok := answers[operation]
		if !ok {
			a = answer{200, "{}"}
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(a.body))), 10))
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(server.Close)
	s, err := Open(t.Context(), Config{Table: table, Endpoint: server.URL, ConnectTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProbeAdvice(t *testing.T) {
	t.Parallel()
	refused := exception(400, "ConditionalCheckFailedException")
	ttl := func(text string) answer { return answer{200, `{"TimeToLiveDescription":` + text + `}`} }
	for _, test := range []struct {
		name        string
		update, ttl answer
		is          error
		want        string // "" means that Probe succeeds
	}{
		{"all is well", refused, ttl(`{"TimeToLiveStatus":"ENABLED","AttributeName":"ttl"}`), nil, ""},
		{"being enabled", refused, ttl(`{"TimeToLiveStatus":"ENABLING","AttributeName":"ttl"}`), nil, ""},
		{"off", refused, ttl(`{"TimeToLiveStatus":"DISABLED"}`), ErrNoTTL, "switch it on"},
		{"other attribute", refused, ttl(`{"TimeToLiveStatus":"ENABLED","AttributeName":"expires"}`), ErrNoTTL, `"expires"`},
		{"unknown question", refused, exception(400, "UnknownOperationException"), ErrUnchecked, "could not be checked"},
		{"may not ask", refused, exception(400, "AccessDeniedException"), ErrUnchecked, "could not be checked"},
		{"may not write", exception(400, "AccessDeniedException"), answer{}, core.ErrNotApplied, "no permission for dynamodb:UpdateItem"},
		{"wrong keys", exception(400, "UnrecognizedClientException"), answer{}, core.ErrNotApplied, "credentials were refused"},
		{"expired token", exception(400, "ExpiredTokenException"), answer{}, core.ErrNotApplied, "credentials were refused"},
		{"throttled", exception(400, "ProvisionedThroughputExceededException"), answer{}, core.ErrNotApplied, "for their number"},
		{"server error", exception(500, "InternalServerError"), answer{}, nil, "refused a write"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := canned(t, map[string]answer{"UpdateItem": test.update, "DescribeTimeToLive": test.ttl}).Probe(t.Context())
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v is not %v", err, test.is)
			}
		})
	}
}

// TestOutcomes asserts which answers prove the row unchanged.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer                answer
		notApplied, throttled bool
	}{
		{exception(400, "ProvisionedThroughputExceededException"), true, true},
		{exception(400, "ThrottlingException"), true, true},
		{exception(400, "RequestLimitExceeded"), true, true},
		{exception(400, "TransactionConflictException"), true, true},
		{exception(400, "ValidationException"), true, false},
		{exception(400, "ResourceNotFoundException"), true, false},
		{exception(400, "AccessDeniedException"), true, false},
		{exception(500, "InternalServerError"), false, false},
		{exception(503, "ServiceUnavailable"), false, false},
		{answer{502, "<html>bad gateway</html>"}, false, false},
		{answer{200, "not json"}, false, false},
		{answer{200, "{}"}, false, false}, // applied, but without values
	} {
		t.Run(fmt.Sprint(test.answer), func(t *testing.T) {
			t.Parallel()
			s := canned(t, map[string]answer{"UpdateItem": test.answer})
			err := apply(t, s, row(1, core.Cell{Add: 1}))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if got := errors.Is(err, core.ErrNotApplied); got != test.notApplied {
				t.Errorf("%v: not applied %v, want %v", err, got, test.notApplied)
			}
			if e.Throttled() != test.throttled {
				t.Errorf("%v: throttled %v, want %v", err, e.Throttled(), test.throttled)
			}
			if writes, _, _ := s.Operations(); writes != 1 {
				t.Errorf("%d requests, want 1: nothing is sent again", writes)
			}
		})
	}
}
