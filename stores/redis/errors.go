package redis

import (
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stilehq/stile/core"
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

// refusals are the beginnings of error replies by which a Redis server refuses a
// command before it runs. Other error replies prove nothing: a proxy in between
// (Envoy, Twemproxy) reports its own lost upstream connections as "ERR …".
var refusals = []string{
	"OOM ", "READONLY ", "NOAUTH ", "WRONGPASS ", "NOPERM ", "LOADING ",
	"MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "MOVED ", "ASK ", "CROSSSLOT ",
	"MISCONF ", "NOREPLICAS ", "BUSY ", "WRONGTYPE ",
	"ERR unknown command", "ERR max number of clients", "ERR AUTH", "ERR invalid password",
	"ERR wrong number of arguments", "ERR bit offset", "ERR value is not an integer",
}

// refused reports whether err is the server's proof that it did not run the
// command.
func refused(err error) bool {
	var reply goredis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range refusals {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

// classify turns a command's error into the store's: written says whether the
// client had begun to write the command's request.
func classify(err error, written bool) error {
	if !written || refused(err) {
		return notApplied(err)
	}
	return unknown(err)
}
