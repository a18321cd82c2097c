package firestore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/googleapis/gax-go/v2"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// probeID names a document that never exists. No row's name starts so.
const probeID = "~probe"

// Probe asks the database whether it can hold rows, and says in plain words what
// to change if not: credentials, project, permission, database, its mode. It
// sends one Commit that the database must refuse, since it changes a document
// that does not exist only if it exists: nothing is written and nothing billed.
// Whether the TTL policy is on cannot be asked with the permissions that a
// function needs for counting; CheckTTL asks it with those of an operator.
func (s *Store) Probe(ctx context.Context) error {
	if s.closed.Load() {
		return errClosed
	}
	_, err := s.commit(ctx, []*firestorepb.Write{{
		Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{
			Name:   s.prefix + probeID,
			Fields: map[string]*firestorepb.Value{"s0": zero},
		}},
		UpdateMask:      &firestorepb.DocumentMask{FieldPaths: []string{"s0"}},
		CurrentDocument: exists,
	}}, gax.WithGRPCOptions(grpc.WaitForReady(true)))
	if err == nil || missingDocument(err) {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("%s: %w", s.advice(e), err)
}

// advice says what an operator should do about a failed probe.
func (s *Store) advice(e *Error) string {
	where := "project " + s.cfg.Project + ", database " + s.cfg.Database
	var api *apierror.APIError
	reason := ""
	if errors.As(e, &api) {
		reason = api.Reason()
	}
	switch {
	case e.Code == codes.Unauthenticated:
		return "the credentials were refused (" + where + ")"
	case reason == "SERVICE_DISABLED":
		return "the Firestore API is switched off in project " + s.cfg.Project + "; enable firestore.googleapis.com"
	case reason == "CONSUMER_INVALID":
		return "there is no such project, or the credentials may not use it: " + s.cfg.Project
	case e.Code == codes.PermissionDenied:
		return "no permission to write (" + where + "); the service account needs roles/datastore.user, and the project id must be right"
	case e.Code == codes.NotFound:
		return "there is no such database (" + where + "); create it in Native mode or correct the store URL"
	case e.Code == codes.FailedPrecondition && strings.Contains(strings.ToLower(e.message), "datastore"):
		return "the database is in Datastore mode and cannot be used (" + where + "); create a second database in Native mode and name it in the store URL"
	case e.Throttled():
		return "the database refuses writes for their number (" + where + "): a quota is used up"
	case e.Code == codes.Unavailable || e.Code == codes.DeadlineExceeded || e.Code == codes.Canceled:
		return "Firestore cannot be reached (" + where + ")"
	}
	return "Firestore refused a write (" + where + ")"
}
