package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"net/netip"
	"sync"
	"time"
)

// A token is what a cookie says, signed. All of it is fixed in length and place,
// so nothing has to be parsed before the signature is known to be good:
//
//	0      version
//	1-3    key id
//	4-8    issue, Unix seconds, big endian
//	9-24   random id: what is counted
//	25-27  place: a keyed hash of the address that it was issued to
//	28-47  HMAC-SHA-256 over the site, the cookie's name and the above, 160 bits of it
//
// 48 bytes are 64 characters of base64 without a rest.
type token [48]byte

const (
	tokenVersion = 1
	tokenSigned  = 28
	tokenText    = 64
)

func (t *token) issued() time.Time {
	var b [8]byte
	copy(b[3:], t[4:9])
	return time.Unix(int64(binary.BigEndian.Uint64(b[:])), 0)
}

func (t *token) id() [16]byte     { return [16]byte(t[9:25]) }
func (t *token) place() [3]byte   { return [3]byte(t[25:28]) }
func (t *token) encode() string   { return encoding.EncodeToString(t[:]) }
func (t *token) encodeID() string { return encoding.EncodeToString(t[9:25]) }

// A cookieKey is one secret, with its hash states kept for reuse. It is safe for
// concurrent use.
type cookieKey struct {
	id      [3]byte
	context []byte // signed before the token: whose cookie it is
	states  sync.Pool
}

// A macState is one keyed hash with room for its input and output, so that
// verifying allocates nothing.
type macState struct {
	hash hash.Hash
	in   [64]byte
	sum  [sha256.Size]byte
}

func newCookieKey(secret, site, name string) *cookieKey {
	k := &cookieKey{context: []byte("stile cookie\x00" + site + "\x00" + name + "\x00")}
	k.states.New = func() any { return &macState{hash: hmac.New(sha256.New, []byte(secret))} }
	// The id says which secret signed, and nothing about it.
	sum := k.mac([]byte("stile key id\x00"))
	copy(k.id[:], sum[:])
	return k
}

// mac returns the keyed hash of the parts.
func (k *cookieKey) mac(parts ...[]byte) (sum [sha256.Size]byte) {
	s := k.states.Get().(*macState)
	defer k.states.Put(s)
	s.hash.Reset()
	for _, p := range parts {
		s.hash.Write(p)
	}
	copy(sum[:], s.hash.Sum(s.sum[:0]))
	return sum
}

// signature returns the part of the keyed hash that a token carries.
func (k *cookieKey) signature(t *token) (out [len(token{}) - tokenSigned]byte) {
	s := k.states.Get().(*macState)
	defer k.states.Put(s)
	s.hash.Reset()
	s.hash.Write(k.context)
	s.hash.Write(s.in[:copy(s.in[:], t[:tokenSigned])])
	copy(out[:], s.hash.Sum(s.sum[:0]))
	return out
}

func (k *cookieKey) verify(t *token) bool {
	if t[0] != tokenVersion || [3]byte(t[1:4]) != k.id {
		return false
	}
	want := k.signature(t)
	return subtle.ConstantTimeCompare(want[:], t[tokenSigned:]) == 1
}

// issue returns a new token for a client at an address.
func (k *cookieKey) issue(now time.Time, at netip.Prefix) *token {
	var t token
	var seconds [8]byte
	binary.BigEndian.PutUint64(seconds[:], uint64(max(0, now.Unix())))
	copy(t[4:9], seconds[3:])
	rand.Read(t[9:25]) // never fails (crypto/rand)
	place := k.placeOf(at)
	copy(t[25:28], place[:])
	k.sign(&t)
	return &t
}

// sign makes a token this key's own.
func (k *cookieKey) sign(t *token) {
	t[0] = tokenVersion
	copy(t[1:4], k.id[:])
	sum := k.signature(t)
	copy(t[tokenSigned:], sum[:])
}

// placeOf is a keyed hash of an address key: enough to tell whether a cookie
// came back to where it was issued, and too little to say where that was.
func (k *cookieKey) placeOf(at netip.Prefix) (out [3]byte) {
	sum := k.mac([]byte("stile place\x00"), []byte(at.String()))
	copy(out[:], sum[:])
	return out
}

// newcomerID names the counters of an address's newcomers without naming the
// address: the log may be told to hide addresses.
func (k *cookieKey) newcomerID(at netip.Prefix) string {
	sum := k.mac([]byte("stile newcomers\x00"), []byte(at.String()))
	return "new:" + encoding.EncodeToString(sum[:12])
}
