package firestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	apiv1 "cloud.google.com/go/firestore/apiv1"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/stilehq/stile/core"
)

// A Store is core.Store over one Firestore collection. It holds one connection,
// on which all calls are multiplexed, and no state besides. Safe for concurrent
// use.
type Store struct {
	cfg      Config
	client   *apiv1.Client
	database string // projects/P/databases/D
	prefix   string // .../documents/COLLECTION/
	closed   atomic.Bool

	writes, reads, trips atomic.Int64
}

var (
	_ core.Store    = (*Store)(nil)
	_ core.Featurer = (*Store)(nil)
)

// Open returns a store for cfg and spends up to cfg.ConnectTimeout on opening its
// connection, so that the first hit need not: an instance that a slow crawler
// always meets cold must still count. An unreachable service is no error, the
// connection goes on being tried; errors are a wrong configuration and absent
// credentials. Whether the database can be used is Probe's to say.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Database = cmp.Or(cfg.Database, defaultDatabase)
	cfg.Collection = cmp.Or(cfg.Collection, defaultCollection)
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, defaultConnect)
	// The client keeps this context for fetching tokens, so it must outlive Open.
	client, err := apiv1.NewClient(context.WithoutCancel(ctx), clientOptions(&cfg)...)
	if err != nil {
		return nil, fmt.Errorf("firestore: no client for project %s (are there credentials?): %w", cfg.Project, err)
	}
	// All of them: Commit's retries would count twice, and those of a read would
	// outlive the caller's patience.
	client.CallOptions = &apiv1.CallOptions{}
	s := &Store{cfg: cfg, client: client, database: "projects/" + cfg.Project + "/databases/" + cfg.Database}
	s.prefix = s.database + "/documents/" + cfg.Collection + "/"
	if cfg.ConnectTimeout > 0 {
		ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
		defer cancel()
		// A commit of nothing is billed nothing and takes the very way of a hit:
		// name, dial, TLS, token, project. Its outcome is Probe's business.
		_, _ = s.commitOnce(ctx, nil, gax.WithGRPCOptions(grpc.WaitForReady(true)))
	}
	return s, nil
}

// clientOptions are the connection's terms. An instance that was frozen between
// requests wakes up with dead connections and passed deadlines, so a dead one is
// found within two seconds of use, and the pause between attempts stays short.
func clientOptions(cfg *Config) []option.ClientOption {
	dialTimeout := cfg.ConnectTimeout
	if dialTimeout <= 0 {
		dialTimeout = defaultConnect
	}
	dial := []grpc.DialOption{
		grpc.WithStatsHandler(sentHandler{}),
		grpc.WithDisableRetry(), // what a service config might ask for
		grpc.WithDisableServiceConfig(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 2 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: dialTimeout,
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
		}),
	}
	opts := []option.ClientOption{option.WithTelemetryDisabled(), option.WithGRPCConnectionPool(1)}
	if cfg.Emulator != "" {
		opts = append(opts, option.WithEndpoint(cfg.Emulator), option.WithoutAuthentication())
		dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	for _, d := range dial {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	return append(opts, cfg.Options...)
}

// Features declares window counters and clocks. A row may have 250 cells: a
// refund of every cell must fit into the 500 transforms of one write.
func (s *Store) Features() core.Features {
	return core.Features{Name: "firestore", Shared: true, Clocks: true, MaxCells: maxCells, RetainsRows: true}
}

// Operations returns what was sent so far: documents written or tried (a refused
// write counts, although Firestore does not bill it), documents read, and round
// trips that Apply waited for (the rows of a batch go in parallel and share one).
func (s *Store) Operations() (writes, reads, trips int64) {
	return s.writes.Load(), s.reads.Load(), s.trips.Load()
}

// Close closes the connection. Calls under way end with an unknown outcome.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.client.Close()
}

var errClosed = fmt.Errorf("firestore: the store is closed: %w", core.ErrNotApplied)

// Apply sends every row at once, each in an RPC of its own: were they one commit,
// contention on the document of a whole network would also refuse the visitor's
// own count. The context's deadline bounds the wait; give it one, since a server
// that neither answers nor hangs up is otherwise waited for. See core.Store and
// Error for what an error means.
func (s *Store) Apply(ctx context.Context, b *core.Batch) error {
	if s.closed.Load() {
		return failAll(b, errClosed)
	}
	sent := 0
	for i := range b.Rows {
		b.Rows[i].Err = nil
		if len(b.Rows[i].Cells) > 0 {
			sent++
		}
	}
	if sent > 0 {
		s.trips.Add(1)
	}
	var wg sync.WaitGroup
	for i := range b.Rows {
		r := &b.Rows[i]
		switch {
		case len(r.Cells) == 0:
		case sent == 1:
			r.Err = s.applyRow(ctx, r) // the normal case, without a goroutine
		default:
			wg.Go(func() { r.Err = s.applyRow(ctx, r) })
		}
	}
	wg.Wait()
	for i := range b.Rows {
		if err := b.Rows[i].Err; err != nil {
			return err
		}
	}
	return nil
}

func failAll(b *core.Batch, err error) error {
	for i := range b.Rows {
		b.Rows[i].Err = err
	}
	return err
}

func (s *Store) applyRow(ctx context.Context, r *core.Row) error {
	name := string(s.cfg.Namer.AppendName([]byte(s.prefix), r))
	if !r.Writes() {
		return s.read(ctx, name, r)
	}
	w, err := newWrite(name, r)
	if err != nil {
		return fmt.Errorf("firestore: a row of %d cells: %w: %w", len(r.Cells), err, core.ErrNotApplied)
	}
	s.writes.Add(1)
	resp, err := s.commit(ctx, []*firestorepb.Write{w})
	switch {
	case err == nil:
	case w.CurrentDocument != nil && missingDocument(err):
		clear0(r) // a refund of what has expired: there is nothing to lower
		return nil
	default:
		return err
	}
	if results := resp.GetWriteResults(); len(results) != 1 || !setValues(r, results[0].GetTransformResults()) {
		return &Error{Code: codes.Internal, message: "the answer does not match the write", cause: errors.New("transform results missing")}
	}
	return nil
}

// Contention: a Commit that Firestore answers with ABORTED was rolled back, so
// sending it again counts it once. Only that code is tried again, a few times
// with growing random pauses and within the caller's deadline: own records are
// written by one client and rarely meet it, and hot outer records are coalesced.
const (
	contendedTries = 5
	contendedPause = 5 * time.Millisecond
)

// commit sends one Commit, again where it was aborted, and returns an *Error if
// it failed.
func (s *Store) commit(ctx context.Context, writes []*firestorepb.Write, opts ...gax.CallOption) (*firestorepb.CommitResponse, error) {
	pause := contendedPause
	for try := 1; ; try++ {
		resp, err := s.commitOnce(ctx, writes, opts...)
		if err == nil {
			return resp, nil
		}
		if err.Code != codes.Aborted || try == contendedTries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err // the rollback is what is known
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause *= 3
		s.writes.Add(1) // a rejected write may be billed
		s.trips.Add(1)
	}
}

func (s *Store) commitOnce(ctx context.Context, writes []*firestorepb.Write, opts ...gax.CallOption) (*firestorepb.CommitResponse, *Error) {
	ctx, call := watch(ctx)
	resp, err := s.client.Commit(ctx, &firestorepb.CommitRequest{Database: s.database, Writes: writes}, opts...)
	if err != nil {
		return nil, classify(err, call.sent.Load())
	}
	return resp, nil
}

// read fetches the row's cells: one billed read, whether the document exists or
// not. BatchGetDocuments says "missing" in so many words, where GetDocument has
// one code for an absent document and an absent database.
func (s *Store) read(ctx context.Context, name string, r *core.Row) error {
	paths := make([]string, 0, len(r.Cells))
	for i := range r.Cells {
		if int(r.Cells[i].Slot) >= len(fields) {
			return fmt.Errorf("firestore: slot %d: %w: %w", r.Cells[i].Slot, core.ErrUnsupported, core.ErrNotApplied)
		}
		paths = append(paths, fields[r.Cells[i].Slot])
	}
	s.reads.Add(1)
	// Whatever happens below, a read has changed nothing: its errors all say so.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := s.client.BatchGetDocuments(ctx, &firestorepb.BatchGetDocumentsRequest{
		Database:  s.database,
		Documents: []string{name},
		Mask:      &firestorepb.DocumentMask{FieldPaths: paths},
	})
	if err != nil {
		return classify(err, false)
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return &Error{Code: codes.Internal, message: "the read ended without an answer", cause: io.ErrUnexpectedEOF, notApplied: true}
		}
		if err != nil {
			return classify(err, false)
		}
		if doc := resp.GetFound(); doc != nil {
			for i := range r.Cells {
				r.Cells[i].Value = number(doc.GetFields()[fields[r.Cells[i].Slot]])
			}
			return nil
		}
		if resp.GetMissing() != "" {
			clear0(r)
			return nil
		}
	}
}

// clear0 sets every cell to the value of an absent one.
func clear0(r *core.Row) {
	for i := range r.Cells {
		r.Cells[i].Value = 0
	}
}
