package redis

import (
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

var (
	errClosed = errors.New("store is closed")

	// ErrUnknown marks an error after which the server may or may not have
	// applied the row. It exists for people and logs; code asks whether an error
	// is core.ErrNotApplied.
	ErrUnknown = errors.New("redis: outcome unknown")
)

// notApplied marks err as one that proves the rows unchanged.
func notApplied(err error) error {
	return fmt.Errorf("redis: %w: %w", core.ErrNotApplied, err)
}

// unknown marks err as one that proves nothing.
func unknown(err error) error {
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// refused reports whether err is the server's proof that it did not run the
// command.
func refused(err error) bool {
	var reply goredis.Error
	return errors.As(err, &reply) && bitfield.Refused(reply.Error())
}

// classify turns a command's error into the store's: written says whether the
// client had begun to write the command's request.
func classify(err error, written bool) error {
	if !written || refused(err) {
		return notApplied(err)
	}
	return unknown(err)
}
