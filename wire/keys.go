package wire

import (
	"github.com/stilehq/stile/core/rows"
	"github.com/stilehq/stile/policy"
)

// namer names records as store.keys says; see [policy.Store.KeySecretsInForce].
func namer(f *policy.File) (rows.Namer, error) {
	n := rows.Namer{Site: f.Site}
	if f.Store.Keys != policy.KeysHMAC {
		return n, nil
	}
	secrets, err := f.Store.KeySecretsInForce()
	if err != nil {
		return n, err
	}
	n.Secret = func(start int64) []byte {
		for i := len(secrets) - 1; i > 0; i-- {
			if start >= secrets[i].From {
				return secrets[i].Secret
			}
		}
		return secrets[0].Secret
	}
	return n, nil
}
