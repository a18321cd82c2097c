package upstash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// A Store keeps rows in one Upstash Redis database. It is safe for concurrent
// use.
type Store struct {
	cfg      Config
	client   *client
	pending  bitfield.Pending
	commands atomic.Int64
	closed   atomic.Bool
}

var (
	_ core.Store    = (*Store)(nil)
	_ core.Settler  = (*Store)(nil)
	_ core.Featurer = (*Store)(nil)
)

var errClosed = errors.New("store is closed")

// New returns a store for c without any network: the first call connects. It
// fails only if c.Validate does.
func New(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	return &Store{cfg: c, client: newClient(c)}, nil
}

// Open returns a store and connects to it, within c.ConnectTimeout plus
// c.Timeout and ctx. If c is invalid, the store is nil. Any other error is that
// of [Store.Probe], and the store beside it is usable: a caller that must start
// without its store logs the error and goes on.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout+s.cfg.Timeout)
	defer cancel()
	return s, s.Probe(ctx)
}

// Features implements core.Featurer: all algorithms, shared by all instances.
func (s *Store) Features() core.Features {
	return core.Features{Name: "upstash", Shared: true, Clocks: true, RetainsRows: true}
}

// Commands returns the number of commands sent so far to change or read rows
// and to set expiries: what is billed (times 1 + read regions for writes to a
// global database).
func (s *Store) Commands() int64 { return s.commands.Load() }

// Trips returns the number of HTTP requests sent so far.
func (s *Store) Trips() int64 { return s.client.trips.Load() }

// Pending returns the number of expiries that wait for [Store.Settle] or for the
// next Apply, and how many were given up.
func (s *Store) Pending() (waiting int, dropped int64) { return s.pending.Len() }

// Due reports whether Settle has anything to send.
func (s *Store) Due() bool {
	waiting, _ := s.Pending()
	return waiting > 0
}

// send sends row commands and then expiries in one request. The replies are
// those of the row commands.
func (s *Store) send(ctx context.Context, commands [][]string, expiries []bitfield.Expiry) ([]reply, error) {
	n := len(commands)
	for _, e := range expiries {
		commands = append(commands, bitfield.AppendExpiry(nil, e.Name, e.At))
	}
	if t, ok := ctx.Deadline(); !ok || time.Until(t) > s.cfg.Timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
	}
	replies, err := s.client.do(ctx, commands)
	if !errors.Is(err, core.ErrNotApplied) {
		s.commands.Add(int64(len(commands)))
	}
	for i, e := range expiries {
		if err != nil || replies[n+i].Error != "" {
			s.pending.Add(e)
		} else {
			s.pending.Confirm(e.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return replies, nil
	}
	return replies[:n], nil
}

// Apply implements core.Store. The batch's commands go out in one HTTP request;
// expiries that wait ride along. It waits until ctx is done or Config.Timeout
// has passed.
func (s *Store) Apply(ctx context.Context, b *core.Batch) error {
	if s.closed.Load() {
		return failAll(b, notApplied(errClosed))
	}
	if err := ctx.Err(); err != nil {
		return failAll(b, notApplied(err))
	}
	commands := make([][]string, 0, len(b.Rows)+1)
	names := make([]string, len(b.Rows))
	for i := range b.Rows {
		r := &b.Rows[i]
		r.Err = nil
		names[i] = s.cfg.Namer.Name(r)
		if words := bitfield.Append(nil, names[i], r); words != nil {
			commands = append(commands, words)
		}
	}
	if len(commands) == 0 {
		return nil
	}
	replies, err := s.send(ctx, commands, s.pending.Take(bitfield.MaxRide))
	if err != nil {
		return failAll(b, err)
	}
	next := 0
	for i := range b.Rows {
		r := &b.Rows[i]
		if len(r.Cells) == 0 {
			continue
		}
		s.receive(r, names[i], replies[next])
		next++
	}
	for i := range b.Rows {
		if err := b.Rows[i].Err; err != nil {
			return err
		}
	}
	return nil
}

// receive reads one reply into its row.
func (s *Store) receive(r *core.Row, name string, from reply) {
	if from.Error != "" {
		r.Err = reason(from.Error)
		return
	}
	numbers := make([]int64, 0, len(r.Cells)+2)
	if err := json.Unmarshal(from.Result, &numbers); err != nil {
		r.Err = unknown(fmt.Errorf("the answer to BITFIELD cannot be read: %w", err))
		return
	}
	previous, err := bitfield.Decode(r, numbers)
	if err != nil {
		r.Err = unknown(err)
		return
	}
	s.pending.Note(name, r, previous, int64(s.cfg.Repair))
}

func failAll(b *core.Batch, err error) error {
	for i := range b.Rows {
		b.Rows[i].Err = err
	}
	return err
}

// Settle implements core.Settler: it sends the EXPIREATs that are due, in one
// request, and waits for the answer. Those that fail are kept for the next
// Settle or Apply.
func (s *Store) Settle(ctx context.Context) error {
	list := s.pending.Take(bitfield.MaxSettle)
	if len(list) == 0 {
		return nil
	}
	replies, err := s.send(ctx, nil, list)
	if err != nil {
		return err
	}
	for _, r := range replies {
		if r.Error != "" {
			return reason(r.Error)
		}
	}
	return nil
}

// Close sends the expiries that are still due, if the database answers within
// Config.Timeout, and closes idle connections. Apply afterwards returns an error
// that wraps core.ErrNotApplied.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.Settle(context.Background())
	s.client.http.CloseIdleConnections()
	return err
}

// ErrClock is a warning of Probe: records may expire early or late.
var ErrClock = errors.New("upstash: the server's clock and ours differ by more than 2 s")

// IsWarning reports whether err, from Probe, is a warning only.
func IsWarning(err error) bool { return errors.Is(err, ErrClock) }

// Probe asks the database for its time and tries the token with a BITFIELD that
// changes nothing, in one request: two commands, not counted by Commands. It
// reports a wrong or read-only token, a used-up plan, a wrong URL, and as a
// warning a clock that is off. Nil means that counting will work.
func (s *Store) Probe(ctx context.Context) error {
	if s.closed.Load() {
		return notApplied(errClosed)
	}
	before := time.Now()
	replies, err := s.client.do(ctx, [][]string{
		{"TIME"},
		{bitfield.Write, "stile:probe", "GET", "u63", "#0"},
	})
	after := time.Now()
	if err != nil {
		return err
	}
	if text := replies[1].Error; text != "" {
		return reason(text)
	}
	var clock []json.RawMessage
	if json.Unmarshal(replies[0].Result, &clock) != nil || len(clock) != 2 {
		return nil // the time is a courtesy
	}
	seconds, err := strconv.ParseInt(string(trimQuotes(clock[0])), 10, 64)
	if err != nil {
		return nil
	}
	server := time.Unix(seconds, 0)
	// The reply has whole seconds here: one more is allowed for.
	const allowed = 3 * time.Second
	if d := server.Sub(after); d > allowed {
		return fmt.Errorf("%w (it is ahead by about %s)", ErrClock, d.Round(time.Second))
	}
	if d := before.Sub(server); d > allowed {
		return fmt.Errorf("%w (it is behind by about %s)", ErrClock, d.Round(time.Second))
	}
	return nil
}

func trimQuotes(s []byte) []byte {
	if len(s) >= 2 && s[0] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}
