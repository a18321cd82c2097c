package asn

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

const (
	// MaxRanges bounds a table: the whole internet has some 600,000 ranges.
	MaxRanges = 4 << 20
	// maxText bounds a table's text, decompressed.
	maxText = 512 << 20
	maxLine = 4 << 10
)

// ErrTable marks a file that is no usable table.
var ErrTable = errors.New("asn: table refused")

// ranges is a table of disjoint address ranges, sorted: 12 bytes for each of
// IPv4, 36 of IPv6. The source publishes ranges and not prefixes, so a prefix
// tree would need several entries for many of them, and several times the
// memory; looking one up is a binary search.
type ranges struct {
	four []range4
	six  []range6
}

type range4 struct{ first, last, asn uint32 }

type range6 struct {
	first, last [16]byte
	asn         uint32
}

func as4(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func (t *ranges) lookup(a netip.Addr) uint32 {
	if a.Is4() {
		n := as4(a)
		i, found := slices.BinarySearchFunc(t.four, n, func(r range4, n uint32) int { return cmp.Compare(r.first, n) })
		if !found {
			i--
		}
		if i < 0 || n > t.four[i].last {
			return 0
		}
		return t.four[i].asn
	}
	b := a.As16()
	i, found := slices.BinarySearchFunc(t.six, b, func(r range6, b [16]byte) int { return bytes.Compare(r.first[:], b[:]) })
	if !found {
		i--
	}
	if i < 0 || bytes.Compare(b[:], t.six[i].last[:]) > 0 {
		return 0
	}
	return t.six[i].asn
}

func (t *ranges) len() int { return len(t.four) + len(t.six) }

// parseRanges reads lines of iptoasn's form: first address, last address, number
// and more, separated by tabs; number 0 is "not routed". One bad line refuses the
// file: a table with holes would count clients under no network, unnoticed.
func parseRanges(r io.Reader) (*ranges, error) {
	t := &ranges{}
	in := bufio.NewScanner(io.LimitReader(r, maxText+1))
	in.Buffer(make([]byte, 0, maxLine), maxLine)
	read, line := 0, 0
	for in.Scan() {
		line++
		if read += len(in.Bytes()) + 1; read > maxText {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTable, maxText)
		}
		text := strings.TrimRight(in.Text(), "\r")
		if text == "" || text[0] == '#' {
			continue
		}
		if err := t.add(text); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrTable, line, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%w: after line %d: %w", ErrTable, line, err)
	}
	if t.len() == 0 {
		return nil, fmt.Errorf("%w: no range in it", ErrTable)
	}
	slices.SortFunc(t.four, func(a, b range4) int { return cmp.Compare(a.first, b.first) })
	slices.SortFunc(t.six, func(a, b range6) int { return bytes.Compare(a.first[:], b.first[:]) })
	for i := 1; i < len(t.four); i++ {
		if t.four[i].first <= t.four[i-1].last {
			return nil, fmt.Errorf("%w: ranges overlap", ErrTable)
		}
	}
	for i := 1; i < len(t.six); i++ {
		if bytes.Compare(t.six[i].first[:], t.six[i-1].last[:]) <= 0 {
			return nil, fmt.Errorf("%w: ranges overlap", ErrTable)
		}
	}
	t.four, t.six = slices.Clip(t.four), slices.Clip(t.six)
	return t, nil
}

func (t *ranges) add(text string) error {
	one, rest, _ := strings.Cut(text, "\t")
	two, rest, _ := strings.Cut(rest, "\t")
	number, _, _ := strings.Cut(rest, "\t")
	first, err := netip.ParseAddr(one)
	last, err2 := netip.ParseAddr(two)
	if err != nil || err2 != nil || first.Zone() != "" || last.Zone() != "" {
		return errors.New("no two addresses")
	}
	first, last = first.Unmap(), last.Unmap()
	if first.Is4() != last.Is4() || last.Less(first) {
		return errors.New("no range")
	}
	if number == "0" {
		return nil
	}
	n, ok := parseNumber(number)
	if !ok {
		return errors.New("no number of a network")
	}
	if t.len() >= MaxRanges {
		return fmt.Errorf("more than %d ranges", MaxRanges)
	}
	if first.Is4() {
		t.four = append(t.four, range4{as4(first), as4(last), n})
	} else {
		t.six = append(t.six, range6{first.As16(), last.As16(), n})
	}
	return nil
}
