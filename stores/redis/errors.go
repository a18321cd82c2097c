package redis

import (
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

var (
	errClosed   = errors.New("store is closed")
	errUnserved = errors.New("no node of the cluster serves the slot")

	// ErrUnknown marks an error after which the server may or may not have
	// applied the row. It exists for people and logs; code asks whether an error
	// is core.ErrNotApplied.
	ErrUnknown = errors.New("redis: outcome unknown")
)

// notApplied marks err as one that proves the rows unchanged.
func notApplied(err error) error {
	if errors.Is(err, core.ErrNotApplied) {
		return err
	}
	return fmt.Errorf("redis: %w: %w", core.ErrNotApplied, err)
}

// unknown marks err as one that proves nothing.
func unknown(err error) error {
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// reply returns the text of an error reply, and whether err is one. The client
// library takes "ERR " off, which no other word of the protocol stands for.
func reply(err error) (text string, ok bool) {
	var e *rueidis.RedisError
	if !errors.As(err, &e) || e.IsNil() {
		return "", false
	}
	return e.Error(), true
}

// refused reports whether err is the server's proof that it did not run the
// command.
func refused(err error) bool {
	text, ok := reply(err)
	return ok && (bitfield.Refused(text) || bitfield.Refused("ERR "+text))
}

// classify turns the error of a command that was sent into the store's.
func classify(err error) error {
	if refused(err) {
		return notApplied(err)
	}
	return unknown(err)
}
