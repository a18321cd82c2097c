package firestore

import (
	"context"
	"errors"
	"fmt"

	admin "cloud.google.com/go/firestore/apiv1/admin"
	"cloud.google.com/go/firestore/apiv1/admin/adminpb"
	"google.golang.org/grpc/codes"
)

var (
	// ErrNoTTL marks a collection whose records would never be deleted. It counts
	// correctly; it grows for ever.
	ErrNoTTL = errors.New("firestore: expiry is off")

	// ErrUnchecked marks what could not be checked, for want of a permission or
	// because the server does not know the question (the emulator).
	ErrUnchecked = errors.New("firestore: could not be checked")
)

// CheckTTL asks whether the collection's TTL policy is on. It is apart from Probe
// because it opens a second connection and needs datastore.indexes.get, which a
// function that only counts need not have: it is for an operator's command. It
// returns nil, or an error that wraps ErrNoTTL or ErrUnchecked.
func (s *Store) CheckTTL(ctx context.Context) error {
	if s.closed.Load() {
		return errClosed
	}
	what := fmt.Sprintf("expiry of collection %s in %s", s.cfg.Collection, s.database)
	client, err := admin.NewFirestoreAdminClient(ctx, clientOptions(&s.cfg)...)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnchecked, what, err)
	}
	defer client.Close()
	client.CallOptions = &admin.FirestoreAdminCallOptions{}
	field, err := client.GetField(ctx, &adminpb.GetFieldRequest{
		Name: s.database + "/collectionGroups/" + s.cfg.Collection + "/fields/" + expiryField,
	})
	if err != nil {
		e := classify(err, true)
		if e.Code == codes.NotFound {
			return fmt.Errorf("%w: %s: no policy on the field %q", ErrNoTTL, what, expiryField)
		}
		return fmt.Errorf("%w: %s: %w", ErrUnchecked, what, e)
	}
	switch state := field.GetTtlConfig().GetState(); state {
	case adminpb.Field_TtlConfig_ACTIVE, adminpb.Field_TtlConfig_CREATING:
		return nil
	case adminpb.Field_TtlConfig_NEEDS_REPAIR:
		return fmt.Errorf("%w: %s: the policy needs repair; switch it off and on again", ErrNoTTL, what)
	}
	return fmt.Errorf("%w: %s: no policy on the field %q; gcloud firestore fields ttls update %s --collection-group=%s --enable-ttl",
		ErrNoTTL, what, expiryField, expiryField, s.cfg.Collection)
}
