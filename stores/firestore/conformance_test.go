package firestore

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/firestore/firestoretest"
	"github.com/stilehq/stile/stores/storetest"
)

// harness runs the conformance suite on an emulator. Contention, because the
// emulator locks a document for each write and answers ABORTED when a lock is
// waited for too long, as the service does in its own way.
func harness(addr string) storetest.Harness {
	return storetest.Harness{
		Open:       func(tb testing.TB) core.Store { return openSite(tb, addr, "conformance") },
		Backend:    addr,
		Through:    func(tb testing.TB, proxy string) core.Store { return openSite(tb, proxy, "conformance") },
		Contention: true,
		Slow:       true,
		BenchKeys:  1 << 12,
		Exists: func(st core.Store, row *core.Row) (bool, error) {
			_, err := lookUp(st.(*Store), row)
			if status.Code(err) == codes.NotFound {
				return false, nil
			}
			return err == nil, err
		},
		Expiry: func(st core.Store, row *core.Row) (time.Time, bool) {
			doc, err := lookUp(st.(*Store), row)
			exp := doc.GetFields()["exp"].GetTimestampValue()
			return exp.AsTime(), err == nil && exp != nil
		},
	}
}

func testConformance(t *testing.T, addr string) { storetest.Run(t, harness(addr)) }

func BenchmarkEmulator(b *testing.B) { storetest.Bench(b, harness(firestoretest.Start(b).Addr)) }

// lookUp fetches a record as another program would.
func lookUp(s *Store, r *core.Row) (*firestorepb.Document, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.client.GetDocument(ctx, &firestorepb.GetDocumentRequest{Name: s.prefix + s.cfg.Namer.Name(r)})
}
