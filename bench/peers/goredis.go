package main

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// overGoRedis writes Stile's records through go-redis, so that a difference to the
// peers is the layout's and not the client library's. It is for measuring only: of
// what stores/redis does when a server fails it does nothing.
type overGoRedis struct {
	client   *goredis.Client
	namer    rows.Namer
	expiries bitfield.Pending
}

var (
	_ core.Store    = (*overGoRedis)(nil)
	_ core.Settler  = (*overGoRedis)(nil)
	_ core.Featurer = (*overGoRedis)(nil)
)

func newOverGoRedis(o *goredis.Options) *overGoRedis {
	return &overGoRedis{client: goredis.NewClient(o), namer: rows.Namer{Site: "peers"}}
}

// Apply sends one command per row, one after the other: a decision here has one row.
func (s *overGoRedis) Apply(ctx context.Context, b *core.Batch) error {
	for i := range b.Rows {
		r := &b.Rows[i]
		name := s.namer.Name(r)
		var buf [32]string
		cmd := goredis.NewIntSliceCmd(ctx, boxed(bitfield.Append(buf[:0], name, r))...)
		if r.Err = s.client.Process(ctx, cmd); r.Err != nil {
			return r.Err
		}
		var previous int64
		if previous, r.Err = bitfield.Decode(r, cmd.Val()); r.Err != nil {
			return r.Err
		}
		s.expiries.Note(name, r, previous, 3)
	}
	return nil
}

// Due implements core.Settler.
func (s *overGoRedis) Due() bool { return s.expiries.Waiting() > 0 }

// Settle sends the expiries of new records.
func (s *overGoRedis) Settle(ctx context.Context) error {
	for _, e := range s.expiries.Take(bitfield.MaxSettle) {
		var buf [3]string
		cmd := goredis.NewIntCmd(ctx, boxed(bitfield.AppendExpiry(buf[:0], e.Name, e.At))...)
		if err := s.client.Process(ctx, cmd); err != nil {
			s.expiries.Add(e)
			return err
		}
		s.expiries.Confirm(e.Name)
	}
	return nil
}

// Features are those of stores/redis.
func (s *overGoRedis) Features() core.Features {
	return core.Features{Name: "redis", Shared: true, Clocks: true, RetainsRows: true}
}

// Close closes the client.
func (s *overGoRedis) Close() error { return s.client.Close() }

func boxed(words []string) []any {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	return args
}
