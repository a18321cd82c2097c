package asn

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	"github.com/stilehq/stile/core"
)

// A Set is some networks by number.
type Set map[uint32]string

// Only returns a source that knows the networks of the set and no others, so
// that the ASN bucket holds for them alone. A bucket over the network of a
// consumer provider would limit a city.
func Only(source core.ASNSource, set Set) core.ASNSource { return only{source, set} }

type only struct {
	source core.ASNSource
	set    Set
}

// LookupASN implements core.ASNSource.
func (o only) LookupASN(r *core.Request, client netip.Addr) uint32 {
	n := o.source.LookupASN(r, client)
	if _, ok := o.set[n]; !ok {
		return 0
	}
	return n
}

//go:embed hosting.txt
var hosting []byte

// Hosting returns the shipped set of hosting networks. Its file says when it was
// written, from what, and how sure that is; it is small, and meant to be
// replaced by one's own: see [ParseSet].
func Hosting() Set {
	set, err := ParseSet(hosting)
	if err != nil {
		return Set{} // a test holds that the shipped file parses
	}
	return set
}

// maxSet bounds a set: all networks of the internet are some 100,000.
const maxSet = 1 << 18

// ParseSet reads a list of networks, one a line: its number, with or without AS,
// and then its name. Lines that are empty or begin with # are passed over. The
// error wraps [ErrTable] and names the line.
func ParseSet(data []byte) (Set, error) {
	set := Set{}
	in := bufio.NewScanner(bytes.NewReader(data))
	line := 0
	for in.Scan() {
		line++
		text, _, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		n, ok := parseNumber(fields[0])
		if _, had := set[n]; !ok || had || len(set) >= maxSet {
			return nil, fmt.Errorf("%w: list line %d: no number of a network, or one twice", ErrTable, line)
		}
		set[n] = strings.Join(fields[1:], " ")
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%w: list after line %d: %w", ErrTable, line, err)
	}
	return set, nil
}
