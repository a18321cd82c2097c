package rows

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// A Namer turns rows into the names under which stores keep them. The zero
// Namer names an empty site with plain keys. A Namer is safe for concurrent
// use once built.
type Namer struct {
	Site string // namespace; escaped, so any text is allowed

	// Secret, if set, returns the HMAC secret for rows whose epoch began at
	// start (Unix seconds; 0 for rows of clocks). Choosing by the epoch's start
	// and not by now means that a rotation neither doubles a budget nor forgets
	// one early. Nil means plain keys. See AppendName for what is hidden.
	Secret func(start int64) []byte
}

// AppendName appends the record name of r to dst and returns it. The name is
// pure ASCII from [A-Za-z0-9._:~-] plus %XX escapes, is unique for (site, kind,
// id, plan, epoch), never starts with a dot and has no slash, so it serves as a
// Redis key, a Firestore document id and a DynamoDB partition key alike:
//
//	site:a:203.0.113.9:9f3a01c2:20605
//
// Variable parts are escaped, so two different keys can never meet in one name.
// With a Secret the id is replaced by 22 characters of its HMAC-SHA-256. An id
// longer than 128 bytes is replaced by its SHA-256 (keys are hostile input, and
// stores have limits on names).
func (n *Namer) AppendName(dst []byte, r *Row) []byte {
	dst = appendEscaped(dst, n.Site)
	dst = append(dst, ':')
	dst = append(dst, kindLetters[r.Key.Kind&15])
	dst = append(dst, ':')
	var buf [160]byte
	id := r.Key.appendID(buf[:0])
	switch {
	case n.Secret != nil:
		mac := hmac.New(sha256.New, n.Secret(r.Start))
		mac.Write([]byte{byte(r.Key.Kind)})
		mac.Write(id)
		dst = appendDigest(dst, mac.Sum(nil))
	case len(id) > 128:
		sum := sha256.Sum256(id)
		dst = append(dst, '%', '~') // no escape looks like this
		dst = appendDigest(dst, sum[:])
	default:
		dst = appendEscaped(dst, string(id))
	}
	dst = append(dst, ':')
	const hex = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hex[r.Plan>>shift&15])
	}
	dst = append(dst, ':')
	return strconv.AppendInt(dst, r.Epoch, 10)
}

// Name is AppendName as a string.
func (n *Namer) Name(r *Row) string {
	var buf [128]byte
	return string(n.AppendName(buf[:0], r))
}

// kindLetters holds one letter for each Kind, so that names stay short and do
// not depend on the order of the constants.
var kindLetters = [16]byte{'?', 'a', 'c', 'u', 'k', 'n', 's', 'h', 'g', '?', '?', '?', '?', '?', '?', '?'}

// appendID appends the identity of the key: the address without prefix length
// for an IPv4 address key, the prefix for other networks, else the ID.
func (k Key) appendID(dst []byte) []byte {
	if k.Kind != Address && k.Kind != Network {
		return append(dst, k.ID...)
	}
	if !k.Net.IsValid() {
		return append(dst, k.ID...) // the bounded "unidentified" client
	}
	dst = k.Net.Addr().AppendTo(dst)
	if k.Net.Bits() != k.Net.Addr().BitLen() {
		dst = append(dst, '/')
		dst = strconv.AppendInt(dst, int64(k.Net.Bits()), 10)
	}
	return dst
}

// String returns the key as people read and type it: kind and id, for example
// "address 203.0.113.9". It is not the record name.
func (k Key) String() string {
	return k.Kind.String() + " " + k.Display()
}

// Display returns the id alone, as the log shows it.
func (k Key) Display() string {
	var buf [64]byte
	return string(k.appendID(buf[:0]))
}

func appendDigest(dst, sum []byte) []byte {
	const size = 16 // 128 bits: no two of a site's keys will ever meet by chance
	return base64.RawURLEncoding.AppendEncode(dst, sum[:size])
}

// appendEscaped keeps [A-Za-z0-9._-], writes a colon (IPv6) as '~' so that names
// stay readable, and every other byte, '~' among them, as %XX.
func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			dst = append(dst, c)
		case c == '.' && len(dst) > 0:
			dst = append(dst, c)
		case c == ':':
			dst = append(dst, '~')
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}
