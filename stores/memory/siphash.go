package memory

import (
	"encoding/binary"
	"math/bits"

	"github.com/stilehq/stile/core"
)

// fingerprint stands for a row's identity in the table.
type fingerprint [2]uint64

// sipKey is the secret of one table's fingerprints.
type sipKey [2]uint64

// sum is SipHash-2-4 with 128 bits of output (Aumasson, Bernstein: "SipHash: a
// fast short-input PRF", 2012, and its 128-bit variant) of the words, little
// endian, followed by the bytes of tail. A keyed function is needed and not just
// a mixing one: ids are chosen by visitors, and whoever could make two of them
// meet could spend another's budget.
//
// The rounds are loops over locals on purpose: as a method the round is too
// large to be inlined, and the state would go through memory every time.
func (k sipKey) sum(words []uint64, tail string) fingerprint {
	v0 := k[0] ^ 0x736f6d6570736575
	v1 := k[1] ^ 0x646f72616e646f6d ^ 0xee
	v2 := k[0] ^ 0x6c7967656e657261
	v3 := k[1] ^ 0x7465646279746573
	length := 8*len(words) + len(tail)
	for last := false; !last; {
		var m uint64
		switch {
		case len(words) > 0:
			m, words = words[0], words[1:]
		case len(tail) >= 8:
			m, tail = leWord(tail), tail[8:]
		default:
			m, last = uint64(length)<<56, true
			for i := range len(tail) {
				m |= uint64(tail[i]) << (8 * i)
			}
		}
		v3 ^= m
		for range 2 {
			v0 += v1
			v2 += v3
			v1 = bits.RotateLeft64(v1, 13) ^ v0
			v3 = bits.RotateLeft64(v3, 16) ^ v2
			v0 = bits.RotateLeft64(v0, 32) + v3
			v2 += v1
			v1 = bits.RotateLeft64(v1, 17) ^ v2
			v3 = bits.RotateLeft64(v3, 21) ^ v0
			v2 = bits.RotateLeft64(v2, 32)
		}
		v0 ^= m
	}
	var out fingerprint
	v2 ^= 0xee
	for half := range out {
		for range 4 {
			v0 += v1
			v2 += v3
			v1 = bits.RotateLeft64(v1, 13) ^ v0
			v3 = bits.RotateLeft64(v3, 16) ^ v2
			v0 = bits.RotateLeft64(v0, 32) + v3
			v2 += v1
			v1 = bits.RotateLeft64(v1, 17) ^ v2
			v3 = bits.RotateLeft64(v3, 21) ^ v0
			v2 = bits.RotateLeft64(v2, 32)
		}
		out[half] = v0 ^ v1 ^ v2 ^ v3
		v1 ^= 0xdd
	}
	return out
}

func leWord(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fingerprint hashes everything that tells r from another row. The fixed part
// goes first and its first word says how long it is, so that no id can imitate
// another row's fields.
func (k sipKey) fingerprint(r *core.Row) fingerprint {
	net := r.Key.Net
	head := uint64(r.Key.Kind) | uint64(uint16(net.Bits()))<<16 | uint64(r.Plan)<<32
	fixed, n := [4]uint64{1: uint64(r.Epoch)}, 2
	if addr := net.Addr(); addr.IsValid() {
		a := addr.As16()
		fixed[2], n = binary.BigEndian.Uint64(a[8:]), 3
		head |= 1 << 8
		if !addr.Is4() { // 203.0.113.9 and ::ffff:203.0.113.9 are two keys
			fixed[3], n = binary.BigEndian.Uint64(a[:8]), 4
			head |= 2 << 8
		}
	}
	fixed[0] = head
	return k.sum(fixed[:n], r.Key.ID)
}
