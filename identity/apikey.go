package identity

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// maxAPIKey bounds a key as it is sent, in bytes.
const maxAPIKey = 512

// An APIKey is one known key. The key itself is nowhere kept.
type APIKey struct {
	Hash string // SHA-256 of the key, 64 hex digits
	Name string // the owner: what counters and logs call it; two keys of one name share a counter
	Tier int64  // multiplies the limits; 0 and 1 = ordinary
}

// APIKeys recognises callers by their keys. It is immutable and safe for
// concurrent use.
//
// Hashes keep a leaked file from being a list of keys, provided that keys are
// random: 16 bytes or more. A word that somebody thought of is found by trying.
type APIKeys struct {
	header string
	keys   map[[sha256.Size]byte]knownKey
}

type knownKey struct {
	sum [sha256.Size]byte
	APIKey
}

// NewAPIKeys returns an identifier of keys that are sent in a header field of
// that canonical name. The error joins everything that is wrong with the list,
// by the entries' places.
func NewAPIKeys(header string, list []APIKey) (*APIKeys, error) {
	out := &APIKeys{header: textproto.CanonicalMIMEHeaderKey(header), keys: make(map[[sha256.Size]byte]knownKey, len(list))}
	var errs []error
	if header == "" {
		errs = append(errs, errors.New("identity: API keys need the name of a header field"))
	}
	for i, k := range list {
		raw, err := hex.DecodeString(k.Hash)
		switch {
		case err != nil || len(raw) != sha256.Size:
			errs = append(errs, fmt.Errorf("identity: API key %d: the hash is no SHA-256 in hex", i))
			continue
		case k.Name == "" || len(k.Name) > maxUserID:
			errs = append(errs, fmt.Errorf("identity: API key %d: a name of %d bytes: want 1 to %d", i, len(k.Name), maxUserID))
		case k.Tier < 0:
			errs = append(errs, fmt.Errorf("identity: API key %d: tier %d", i, k.Tier))
		}
		sum := [sha256.Size]byte(raw)
		if _, had := out.keys[sum]; had {
			errs = append(errs, fmt.Errorf("identity: API key %d is listed twice", i))
		}
		out.keys[sum] = knownKey{sum, k}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

var _ core.Identifier = (*APIKeys)(nil)

// Identify implements core.Identifier: the owner of the one key that was sent. An
// unknown key is nobody's.
//
// Time tells nothing of the keys: what is compared is their SHA-256, which nobody
// can steer towards a known one, and the last step takes the same time for all.
func (a *APIKeys) Identify(r *core.Request, _ netip.Addr) core.Identity {
	if r.Header == nil {
		return core.Identity{}
	}
	v := r.Header.Values(a.header)
	if len(v) != 1 || v[0] == "" || len(v[0]) > maxAPIKey {
		return core.Identity{}
	}
	var buf [maxAPIKey]byte
	sum := sha256.Sum256(buf[:copy(buf[:], v[0])])
	k, ok := a.keys[sum]
	if subtle.ConstantTimeCompare(sum[:], k.sum[:]) != 1 || !ok {
		return core.Identity{}
	}
	return core.Identity{Kind: rows.APIKey, ID: k.Name, Tier: k.Tier, Proof: "api-key"}
}
