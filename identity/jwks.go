package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

const (
	// MaxKeySetBytes bounds a document of keys; sign-in services publish a few
	// thousand bytes.
	MaxKeySetBytes = 1 << 20

	maxKeys    = 64
	maxSameID  = 4 // keys of one id that are tried
	minRSABits = 2048
	maxRSABits = 8192 // verifying takes time that grows with the square
)

// ErrKeySet marks a document that holds no usable set of keys.
var ErrKeySet = errors.New("identity: key set refused")

// A publicKey is one key of a set, with what it may be used for.
type publicKey struct {
	id  string
	alg string // empty = whatever fits the key
	key crypto.PublicKey
}

// fits reports whether a token of that algorithm may be verified with the key.
func (k *publicKey) fits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch key := k.key.(type) {
	case *rsa.PublicKey:
		return len(alg) == 5 && (alg[:2] == "RS" || alg[:2] == "PS")
	case *ecdsa.PublicKey:
		return alg == map[elliptic.Curve]string{elliptic.P256(): "ES256", elliptic.P384(): "ES384", elliptic.P521(): "ES512"}[key.Curve]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

// jwk is one key as it is published (RFC 7517, RFC 7518 §6, RFC 8037 §2).
type jwk struct {
	Kty string   `json:"kty"`
	Use string   `json:"use"`
	Ops []string `json:"key_ops"`
	Alg string   `json:"alg"`
	Kid string   `json:"kid"`
	Crv string   `json:"crv"`
	N   string   `json:"n"`
	E   string   `json:"e"`
	X   string   `json:"x"`
	Y   string   `json:"y"`
}

// parseKeySet reads a JSON Web Key Set. Keys of kinds or uses that are not
// known, and bad ones, are passed over, as RFC 7517 §5 asks; a set in which none
// is left is refused.
func parseKeySet(data []byte) ([]publicKey, error) {
	if len(data) > MaxKeySetBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrKeySet, MaxKeySetBytes)
	}
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%w: not a JSON key set", ErrKeySet)
	}
	if len(doc.Keys) > maxKeys {
		return nil, fmt.Errorf("%w: %d keys", ErrKeySet, len(doc.Keys))
	}
	var out []publicKey
	for _, raw := range doc.Keys {
		var k jwk
		if json.Unmarshal(raw, &k) != nil || k.Use != "" && k.Use != "sig" || len(k.Ops) > 0 && !slices.Contains(k.Ops, "verify") || len(k.Kid) > 256 {
			continue
		}
		if key := k.public(); key != nil {
			out = append(out, publicKey{id: k.Kid, alg: k.Alg, key: key})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no usable key among %d", ErrKeySet, len(doc.Keys))
	}
	return out, nil
}

// public returns the key, nil when it is none that may be used. A shared secret
// ("oct") is none: whoever can read the set could sign.
func (k *jwk) public() crypto.PublicKey {
	switch k.Kty {
	case "RSA":
		n, e := decode(k.N), decode(k.E)
		if len(e) == 0 || len(e) > 4 {
			return nil
		}
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits || key.E < 3 || key.E&1 == 0 {
			return nil
		}
		return key
	case "EC":
		curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
		curve, ok := curves[k.Crv]
		if !ok {
			return nil
		}
		size := (curve.Params().BitSize + 7) / 8
		x, y := decode(k.X), decode(k.Y)
		if len(x) != size || len(y) != size {
			return nil
		}
		key, err := ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...))
		if err != nil {
			return nil // not a point of the curve
		}
		return key
	case "OKP":
		if x := decode(k.X); k.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize {
			return ed25519.PublicKey(x)
		}
	}
	return nil
}

// decode reads base64url; nil when it is none or absurdly long.
func decode(s string) []byte {
	if len(s) > 4*maxRSABits/8 {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}
