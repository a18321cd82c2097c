package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/policy"
)

// A keySecret names the records of epochs that begin at from or later.
type keySecret struct {
	from   int64 // Unix seconds
	secret []byte
}

// namer names records as store.keys says.
//
// A secret is written as "SECRET", in force from the beginning, or as
// "2026-12-01=SECRET", in force for records whose epoch begins on that day (UTC)
// or later. So a rotation is announced ahead: every instance, whenever it is
// started, names a record by the secret that held when its epoch began, and a
// key neither gets a second budget in the epoch nor is forgotten early. Records
// of clocks have no epoch; the first secret names them for as long as it is
// listed.
func namer(f *policy.File) (rows.Namer, error) {
	n := rows.Namer{Site: f.Site}
	if f.Store.Keys != policy.KeysHMAC {
		return n, nil
	}
	secrets, err := keySecrets(f.Store.KeySecrets.Values())
	if err != nil {
		return n, err
	}
	n.Secret = func(start int64) []byte {
		for i := len(secrets) - 1; i > 0; i-- {
			if start >= secrets[i].from {
				return secrets[i].secret
			}
		}
		return secrets[0].secret
	}
	return n, nil
}

// keySecrets reads the secrets in the order in which they come into force. No
// error quotes a secret.
func keySecrets(values []string) ([]keySecret, error) {
	var out []keySecret
	for i, v := range values {
		k := keySecret{from: -1 << 62}
		if date, secret, ok := strings.Cut(v, "="); ok && len(date) == len(time.DateOnly) {
			day, err := time.Parse(time.DateOnly, date)
			if err != nil {
				return nil, fmt.Errorf("store.key_secrets[%d]: it begins like a date and is none; write 2026-12-01=SECRET, or SECRET alone", i)
			}
			k.from, v = day.Unix(), secret
		}
		if v == "" {
			return nil, fmt.Errorf("store.key_secrets[%d]: empty", i)
		}
		k.secret = []byte(v)
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, errors.New("store.key_secrets: keys: hmac needs at least one secret")
	}
	slices.SortStableFunc(out, func(a, b keySecret) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	for i := range out[1:] {
		if out[i].from == out[i+1].from {
			return nil, errors.New("store.key_secrets: two secrets come into force at the same time; date the newer one, as in 2026-12-01=SECRET")
		}
	}
	return out, nil
}
