package asn

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// mmdbOf writes a MaxMind database (format 2.0, IPv6 tree with IPv4 below
// ::/96, 24-bit records) that says the given of prefixes: a uint32 as MaxMind
// writes the number of a network, a string as IPinfo does, bytes as something
// else altogether.
func mmdbOf(entries map[string]any) []byte {
	type node struct{ next [2]int } // 0 = nothing, > 0 = node, < 0 = data, complement of the offset
	nodes := []node{{}}
	var data []byte
	var prefixes []string
	for p := range entries {
		prefixes = append(prefixes, p)
	}
	slices.Sort(prefixes)
	for _, text := range prefixes {
		p := netip.MustParsePrefix(text)
		bits := p.Bits()
		a := p.Addr().As16()
		if p.Addr().Is4() {
			bits += 96
			four := p.Addr().As4()
			a = [16]byte{}
			copy(a[12:], four[:])
		}
		offset := len(data)
		data = append(data, mmdbMap(entries[text])...)
		at := 0
		for i := range bits {
			bit := int(a[i/8]>>(7-i%8)) & 1
			if i == bits-1 {
				nodes[at].next[bit] = ^offset
				break
			}
			if nodes[at].next[bit] == 0 {
				nodes = append(nodes, node{})
				nodes[at].next[bit] = len(nodes) - 1
			}
			at = nodes[at].next[bit]
		}
	}
	var out []byte
	for _, n := range nodes {
		for _, next := range n.next {
			v := next
			switch {
			case next == 0:
				v = len(nodes)
			case next < 0:
				v = len(nodes) + 16 + ^next
			}
			out = append(out, byte(v>>16), byte(v>>8), byte(v))
		}
	}
	out = append(out, make([]byte, 16)...)
	out = append(out, data...)
	out = append(out, "\xab\xcd\xefMaxMind.com"...)
	out = append(out, 7<<5|9)
	out = append(append(out, mmdbString("binary_format_major_version")...), 5<<5|1, 2)
	out = append(append(out, mmdbString("binary_format_minor_version")...), 5<<5)
	out = append(append(out, mmdbString("build_epoch")...), 0|1, 9-7, 1)
	out = append(append(out, mmdbString("database_type")...), mmdbString("Test-ASN")...)
	out = append(append(out, mmdbString("description")...), 7<<5)
	out = append(append(out, mmdbString("ip_version")...), 5<<5|1, 6)
	out = append(append(out, mmdbString("languages")...), 0, 11-7)
	out = append(append(out, mmdbString("node_count")...), mmdbUint32(uint32(len(nodes)))...)
	return append(append(out, mmdbString("record_size")...), 5<<5|1, 24)
}

func mmdbMap(v any) []byte {
	switch v := v.(type) {
	case uint32:
		return append(append([]byte{7<<5 | 1}, mmdbString("autonomous_system_number")...), mmdbUint32(v)...)
	case string:
		return append(append([]byte{7<<5 | 1}, mmdbString("asn")...), mmdbString(v)...)
	case []byte:
		return append(append([]byte{7<<5 | 1}, mmdbString("name")...), mmdbString(string(v))...)
	}
	panic("no such entry")
}

func mmdbUint32(v uint32) []byte { return binary.BigEndian.AppendUint32([]byte{6<<5 | 4}, v) }

func mmdbString(s string) []byte {
	if len(s) < 29 {
		return append([]byte{2<<5 | byte(len(s))}, s...)
	}
	return append([]byte{2<<5 | 29, byte(len(s) - 29)}, s...)
}
