package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/stilehq/stile/core"
)

// maxAttempts bounds the conditional writes of one row. Two suffice unless other
// instances change the record in between.
const maxAttempts = 5

// A Store is core.Store over one DynamoDB table. It holds a pool of connections
// and no state besides. Safe for concurrent use.
type Store struct {
	cfg    Config
	client *ddb.Client
	idle   interface{ CloseIdleConnections() }
	closed atomic.Bool

	writes, reads, trips atomic.Int64
}

var (
	_ core.Store    = (*Store)(nil)
	_ core.Featurer = (*Store)(nil)
)

// Open returns a store for cfg and spends up to cfg.ConnectTimeout on opening a
// connection, by an eventually consistent read of a record that does not exist
// (half a read unit), so that the first hit need not: an instance that a slow
// crawler always meets cold must still count. An unreachable service is no error;
// errors are a wrong configuration and an absent region. Whether the table can be
// used is Probe's to say.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, defaultConnect)
	client, idle, err := newClient(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, client: client, idle: idle}
	if cfg.ConnectTimeout > 0 {
		ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
		defer cancel()
		_, _ = s.client.GetItem(ctx, &ddb.GetItemInput{TableName: &s.cfg.Table, Key: record(probeID)})
	}
	return s, nil
}

func record(key string) item { return item{keyAttribute: &types.AttributeValueMemberS{Value: key}} }

// Features declares window counters and clocks. A row may have 128 cells, 64 of
// them with a floor or a refund: an expression has 4 KB and 300 operators.
func (s *Store) Features() core.Features {
	return core.Features{Name: "dynamodb", Shared: true, Clocks: true, MaxCells: maxCells, RetainsRows: true}
}

// Operations returns what was sent so far by Apply: writes (failed conditions
// too, since they are billed), strongly consistent reads, and round trips that
// Apply waited for (the rows of a batch go in parallel; the slowest counts).
func (s *Store) Operations() (writes, reads, trips int64) {
	return s.writes.Load(), s.reads.Load(), s.trips.Load()
}

// Close closes idle connections. Calls under way go on to their end.
func (s *Store) Close() error {
	if !s.closed.Swap(true) {
		s.idle.CloseIdleConnections()
	}
	return nil
}

var errClosed = fmt.Errorf("dynamodb: the store is closed: %w", core.ErrNotApplied)

// Apply sends every row at once, each in a request of its own: a transaction
// would cost twice and let contention on one row refuse the others. The context's
// deadline bounds the wait; give it one, since a server that neither answers nor
// hangs up is otherwise waited for. See core.Store and Error for what an error
// means.
func (s *Store) Apply(ctx context.Context, b *core.Batch) error {
	if s.closed.Load() {
		for i := range b.Rows {
			b.Rows[i].Err = errClosed
		}
		return errClosed
	}
	used := 0
	for i := range b.Rows {
		b.Rows[i].Err = nil
		if len(b.Rows[i].Cells) > 0 {
			used++
		}
	}
	var (
		wg    sync.WaitGroup
		trips = make([]int, len(b.Rows))
	)
	for i := range b.Rows {
		r := &b.Rows[i]
		switch {
		case len(r.Cells) == 0:
		case used == 1: // the normal case, without a goroutine
			trips[i], r.Err = s.applyRow(ctx, r)
		default:
			wg.Go(func() { trips[i], r.Err = s.applyRow(ctx, r) })
		}
	}
	wg.Wait()
	var first error
	most := 0
	for i := range b.Rows {
		first = cmp.Or(first, b.Rows[i].Err)
		most = max(most, trips[i])
	}
	s.trips.Add(int64(most))
	return first
}

// applyRow performs one row and returns how many requests it sent, one after
// another.
func (s *Store) applyRow(ctx context.Context, r *core.Row) (trips int, err error) {
	plan, err := newPlan(r)
	if err != nil {
		return 0, err
	}
	key := s.cfg.Namer.Name(r)
	if !r.Writes() {
		found, err := s.get(ctx, key, plan)
		for i := range r.Cells {
			r.Cells[i].Value = number(found[fields[r.Cells[i].Slot]])
		}
		return 1, err
	}
	var (
		old  item
		seen bool
	)
	for attempt := range maxAttempts {
		u := newUpdate(s.cfg.Table, key, r, plan, old, seen)
		out, err := s.update(ctx, u.in)
		trips++
		if err == nil {
			return trips, u.setValues(r, plan, out.Attributes)
		}
		var failed *types.ConditionalCheckFailedException
		if !errors.As(err, &failed) {
			return trips, err
		}
		// Nothing was written. The answer holds the record, if there is one; a
		// server that leaves it out (a local stand-in) is asked again where
		// taking the record for absent could be wrong.
		old, seen = failed.Item, true
		if len(old) == 0 && (attempt > 0 || !r.Creates()) {
			old, err = s.get(ctx, key, plan)
			trips++
			if err != nil {
				return trips, err
			}
		}
		if len(old) == 0 && !r.Creates() {
			for i := range r.Cells {
				r.Cells[i].Value = 0 // a refund of what has expired
			}
			return trips, nil
		}
	}
	return trips, &Error{Code: codeContended, notApplied: true,
		cause: fmt.Errorf("%d conditional writes of one row lost their races", maxAttempts)}
}

// update sends one UpdateItem and returns an *Error if it failed.
func (s *Store) update(ctx context.Context, in *ddb.UpdateItemInput) (*ddb.UpdateItemOutput, error) {
	s.writes.Add(1)
	ctx, call := watch(ctx)
	out, err := s.client.UpdateItem(ctx, in)
	if err != nil {
		return nil, classify(err, call.sent.Load())
	}
	return out, nil
}

// get reads the slots of plan: one read unit, whether the record exists or not. It
// asks for the key too, which tells an item without those slots from no item.
func (s *Store) get(ctx context.Context, key string, plan []change) (item, error) {
	s.reads.Add(1)
	names := make([]string, 1, len(plan)+1)
	names[0] = keyAttribute
	for i := range plan {
		names = append(names, fields[plan[i].slot])
	}
	out, err := s.client.GetItem(ctx, &ddb.GetItemInput{
		TableName:            &s.cfg.Table,
		Key:                  record(key),
		ConsistentRead:       aws.Bool(true),
		ProjectionExpression: aws.String(strings.Join(names, ",")),
	})
	if err != nil {
		return nil, classify(err, false) // a read changes nothing, and says so
	}
	return out.Item, nil
}
