package wire

import (
	"context"
	"errors"
	"slices"

	"github.com/stilehq/stile/policy"
)

// Reload exchanges the policy. The store stays open, so a bucket keeps its
// counts whatever its new limit or scale; a bucket with a new window, key or zone
// opens new rows. On any error, all of which are joined, the old policy holds on.
// Keys that were refused before are asked of the store once more. What is fixed
// when the store is opened cannot be reloaded and is an error.
//
// The answers and log lines of requests under way may be the new policy's.
func (r *Ready) Reload(ctx context.Context, f *policy.File) ([]policy.Warning, error) {
	r.reload.Lock()
	defer r.reload.Unlock()
	old := r.Parts()
	errs := fixed(old.Policy, f)
	parts, warnings, err := r.build(f, old)
	if err := errors.Join(append(errs, err)...); err != nil {
		return warnings, err
	}
	r.parts.Store(parts)
	r.exchangeDone()
	old.Log.Flush(ctx) // lines that it held back would be lost with it
	return warnings, nil
}

// fixed names the settings that hold as long as the store is open: record names
// would change, and with them every count would be lost at once.
func fixed(was, is *policy.File) (errs []error) {
	for _, s := range []struct {
		path string
		same bool
	}{
		{"site", was.Site == is.Site},
		{"store.timeout", was.Store.Timeout == is.Store.Timeout},
		{"store.connect_timeout", was.Store.ConnectTimeout == is.Store.ConnectTimeout},
		{"store.keys", was.Store.Keys == is.Store.Keys},
		{"store.key_secrets", slices.Equal(was.Store.KeySecrets.Values(), is.Store.KeySecrets.Values())},
		{"store.max_ops_per_second", was.Store.MaxOpsPerSecond == is.Store.MaxOpsPerSecond},
		{"store.max_ops_per_day", was.Store.MaxOpsPerDay == is.Store.MaxOpsPerDay},
		{"store.max_keys", was.Store.MaxKeys == is.Store.MaxKeys},
	} {
		if !s.same {
			errs = append(errs, &policy.Error{Path: s.path, Problem: "cannot change while the store is open", Remedy: "restart to change it"})
		}
	}
	return errs
}
