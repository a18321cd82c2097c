package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A KeySecret names the records of epochs that begin at From or later.
type KeySecret struct {
	From   int64 // Unix seconds; far in the past = from the beginning
	Secret []byte
}

// KeySecretsInForce returns the values of store.key_secrets in the order in
// which they come into force.
//
// A secret is written as "SECRET", in force from the beginning, or as
// "2026-12-01=SECRET", in force for records whose epoch begins on that day (UTC)
// or later. So a rotation is announced ahead: every instance, whenever it is
// started, names a record by the secret that held when its epoch began, and a
// key neither gets a second budget in the epoch nor is forgotten early. Records
// of clocks have no epoch; the first secret names them for as long as it is
// listed.
//
// The error is an [*Error] and quotes no secret. A parsed File has none.
func (s *Store) KeySecretsInForce() ([]KeySecret, error) {
	list, err := keySecrets(s.KeySecrets.Values())
	if err != nil {
		return nil, err
	}
	return list, nil
}

func keySecrets(values []string) ([]KeySecret, *Error) {
	var out []KeySecret
	bad := func(i int, problem, remedy string) ([]KeySecret, *Error) {
		return nil, &Error{Path: "store.key_secrets", Problem: fmt.Sprintf("secret %d %s", i+1, problem), Remedy: remedy}
	}
	for i, v := range values {
		k := KeySecret{From: -1 << 62}
		if date, secret, ok := strings.Cut(v, "="); ok && len(date) == len(time.DateOnly) && strings.Count(date, "-") == 2 {
			day, err := time.Parse(time.DateOnly, date)
			if err != nil {
				return bad(i, "begins like a date and is none", "write 2026-12-01=SECRET, or SECRET alone")
			}
			k.From, v = day.Unix(), secret
		}
		if v == "" {
			return bad(i, "is empty", "write 2026-12-01=SECRET, or SECRET alone")
		}
		k.Secret = []byte(v)
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, &Error{Path: "store.key_secrets", Problem: "is missing", Remedy: "keys: hmac needs at least one secret"}
	}
	slices.SortStableFunc(out, func(a, b KeySecret) int { return cmp.Compare(a.From, b.From) })
	for i := range out[1:] {
		if out[i].From == out[i+1].From {
			return nil, &Error{Path: "store.key_secrets", Problem: "holds two secrets that come into force at the same time", Remedy: "date the newer one, as in 2026-12-01=SECRET"}
		}
	}
	return out, nil
}
