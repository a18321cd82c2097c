package firestore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"cloud.google.com/go/firestore/apiv1/admin/adminpb"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stilehq/stile/core"
)

// A canned server speaks the real protocol and says what no emulator can be
// brought to say.
type canned struct {
	firestorepb.UnimplementedFirestoreServer
	adminpb.UnimplementedFirestoreAdminServer
	err   error
	field *adminpb.Field
}

func (c *canned) Commit(context.Context, *firestorepb.CommitRequest) (*firestorepb.CommitResponse, error) {
	return &firestorepb.CommitResponse{}, c.err
}

func (c *canned) GetField(context.Context, *adminpb.GetFieldRequest) (*adminpb.Field, error) {
	return c.field, c.err
}

func openCanned(t *testing.T, c *canned) *Store {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	firestorepb.RegisterFirestoreServer(server, c)
	adminpb.RegisterFirestoreAdminServer(server, c)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return open(t, l.Addr().String())
}

// refusal is a status with the reason that Google's front adds.
func refusal(code codes.Code, message, reason string) error {
	st := status.New(code, message)
	if reason != "" {
		st, _ = st.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "googleapis.com"})
	}
	return st.Err()
}

func TestProbeAdvice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want string // "" means that Probe succeeds
	}{
		{"all is well", refusal(codes.NotFound, "No document to update: projects/p/databases/(default)/documents/stile/~probe", ""), ""},
		{"no database", refusal(codes.NotFound, "The database (default) does not exist for project p", ""), "no such database"},
		{"no database, old words", refusal(codes.NotFound, "The project p does not exist or it does not contain an active database.", ""), "no such database"},
		{"datastore mode", refusal(codes.FailedPrecondition, "The Cloud Firestore API is not available for Firestore in Datastore Mode database projects/p/databases/(default).", ""), "Datastore mode"},
		{"no permission", refusal(codes.PermissionDenied, "Missing or insufficient permissions.", "IAM_PERMISSION_DENIED"), "roles/datastore.user"},
		{"api off", refusal(codes.PermissionDenied, "Cloud Firestore API has not been used", "SERVICE_DISABLED"), "switched off"},
		{"wrong project", refusal(codes.PermissionDenied, "Permission denied on resource project q.", "CONSUMER_INVALID"), "no such project"},
		{"credentials", refusal(codes.Unauthenticated, "Request had invalid authentication credentials.", ""), "credentials were refused"},
		{"quota", refusal(codes.ResourceExhausted, "Quota exceeded.", ""), "quota is used up"},
		{"down", refusal(codes.Unavailable, "try later", ""), "cannot be reached"},
		{"broken", refusal(codes.Internal, "oops", ""), "refused a write"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := openCanned(t, &canned{err: test.err}).Probe(t.Context())
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestOutcomes asserts which answers prove the row unchanged, and that only a
// write that was rolled back is sent again.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	unknown := map[codes.Code]bool{codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Canceled: true,
		codes.Unknown: true, codes.Internal: true, codes.DataLoss: true, codes.OK: true}
	throttled := map[codes.Code]bool{codes.Aborted: true, codes.ResourceExhausted: true}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			// OK comes without values: applied, but to what end is unknown.
			s := openCanned(t, &canned{err: status.Error(code, "canned")})
			err := apply(t, s, row(1, core.Cell{Add: 1}))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if got := errors.Is(err, core.ErrNotApplied); got == unknown[code] {
				t.Errorf("%v: not applied %v", err, got)
			}
			if e.Throttled() != throttled[code] {
				t.Errorf("%v: throttled %v", err, e.Throttled())
			}
			if got := errors.Is(err, context.DeadlineExceeded); got != (code == codes.DeadlineExceeded) {
				t.Errorf("%v: is context.DeadlineExceeded: %v", err, got)
			}
			want := int64(1)
			if code == codes.Aborted {
				want = contendedTries // rolled back each time: the one code that is tried again
			}
			if writes, _, _ := s.Operations(); writes != want {
				t.Errorf("%d writes, want %d", writes, want)
			}
		})
	}
}

func TestCheckTTL(t *testing.T) {
	t.Parallel()
	field := func(state adminpb.Field_TtlConfig_State) *adminpb.Field {
		return &adminpb.Field{TtlConfig: &adminpb.Field_TtlConfig{State: state}}
	}
	for _, test := range []struct {
		name   string
		server *canned
		want   error
	}{
		{"active", &canned{field: field(adminpb.Field_TtlConfig_ACTIVE)}, nil},
		{"creating", &canned{field: field(adminpb.Field_TtlConfig_CREATING)}, nil},
		{"broken", &canned{field: field(adminpb.Field_TtlConfig_NEEDS_REPAIR)}, ErrNoTTL},
		{"field without policy", &canned{field: &adminpb.Field{}}, ErrNoTTL},
		{"no field", &canned{err: status.Error(codes.NotFound, "no")}, ErrNoTTL},
		{"no permission", &canned{err: status.Error(codes.PermissionDenied, "no")}, ErrUnchecked},
		{"unknown question", &canned{err: status.Error(codes.Unimplemented, "no")}, ErrUnchecked},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := openCanned(t, test.server).CheckTTL(t.Context())
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
