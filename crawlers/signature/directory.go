package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// TestKeyID is the thumbprint of the key that RFC 9421 publishes with its
// private half: anyone can sign with it.
const TestKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

// Bounds of a directory.
const (
	maxDirectory = 64 << 10 // bytes
	maxKeys      = 32
)

// ErrDirectory marks a key directory that was read and refused.
var ErrDirectory = errors.New("signature: directory refused")

// key is one usable key of a directory.
type key struct {
	public           ed25519.PublicKey
	notBefore, until int64 // Unix seconds; 0 = unbounded
}

// Thumbprint is the JWK thumbprint of an Ed25519 key (RFC 7638, RFC 8037): the
// key id that signatures name.
func Thumbprint(public ed25519.PublicKey) string {
	// The members in lexical order, without spaces; base64url needs no escaping.
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// parseDirectory reads a JWK set into keys by thumbprint. Keys of other kinds
// are passed over; the key's own kid is not believed. Errors wrap
// [ErrDirectory].
func parseDirectory(body []byte, allowTestKey bool) (map[string]key, error) {
	var doc struct {
		Keys []struct {
			Kty string      `json:"kty"`
			Crv string      `json:"crv"`
			X   string      `json:"x"`
			Use string      `json:"use"`
			Nbf json.Number `json:"nbf"`
			Exp json.Number `json:"exp"`
		} `json:"keys"`
	}
	if len(body) > maxDirectory {
		return nil, fmt.Errorf("%w: %d bytes", ErrDirectory, len(body))
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("%w: not a JWK set (%T)", ErrDirectory, err)
	}
	if len(doc.Keys) > maxKeys {
		return nil, fmt.Errorf("%w: %d keys, more than %d", ErrDirectory, len(doc.Keys), maxKeys)
	}
	keys := map[string]key{}
	for _, k := range doc.Keys {
		if k.Kty != "OKP" || k.Crv != "Ed25519" || (k.Use != "" && k.Use != "sig") {
			continue
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%w: an Ed25519 key without a valid x", ErrDirectory)
		}
		nbf, err1 := seconds(k.Nbf)
		exp, err2 := seconds(k.Exp)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%w: nbf or exp is no time", ErrDirectory)
		}
		id := Thumbprint(x)
		if id == TestKeyID && !allowTestKey {
			continue
		}
		keys[id] = key{public: x, notBefore: nbf, until: exp}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: no usable Ed25519 key", ErrDirectory)
	}
	return keys, nil
}

// seconds reads a numeric date. Some directories write milliseconds: values
// beyond the year 5138 are taken for those.
func seconds(n json.Number) (int64, error) {
	if n == "" {
		return 0, nil
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > 1e15 {
		return 0, ErrDirectory
	}
	if f > 1e11 {
		f /= 1000
	}
	return int64(f), nil
}

func (k key) validAt(now time.Time) bool {
	at := now.Unix()
	return at >= k.notBefore && (k.until == 0 || at < k.until)
}
