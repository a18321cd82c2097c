package crawlers

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
)

// Format names how a published list is written.
type Format string

// The formats that vendors use.
const (
	GoogleJSON Format = "google-json" // {"creationTime": …, "prefixes": [{"ipv4Prefix": …} | {"ipv6Prefix": …}]}
	PlainText  Format = "text"        // one address or prefix a line, # comments
	CSV        Format = "csv"         // address or prefix in the first column (RFC 8805 geofeeds), # comments
)

// Bounds of a list. They are far above what vendors publish (the longest list
// seen in 2026 had 9,870 entries, in half a megabyte).
const (
	MaxListBytes       = 4 << 20 // of a body, after decoding
	DefaultMaxPrefixes = 10000   // entries per list
)

// ErrList marks a list that was read and refused: unreadable, empty, too long,
// or holding ranges that cannot be a crawler's. The held one stays in force.
var ErrList = errors.New("crawlers: list refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrList}, args...)...)
}

// ParseList reads the body of a published list: sorted prefixes without
// duplicates, and the time of creation when the list states one (else zero).
// maxPrefixes 0 means [DefaultMaxPrefixes]. Every error wraps [ErrList]; one
// bad entry refuses the list, since it means that the format is not what the
// catalogue says.
func ParseList(f Format, body []byte, maxPrefixes int) (prefixes []netip.Prefix, created time.Time, err error) {
	if maxPrefixes <= 0 {
		maxPrefixes = DefaultMaxPrefixes
	}
	if len(body) > MaxListBytes {
		return nil, time.Time{}, refuse("%d bytes", len(body))
	}
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return nil, time.Time{}, refuse("empty")
	}
	if trimmed[0] == '<' {
		return nil, time.Time{}, refuse("looks like HTML")
	}
	switch f {
	case GoogleJSON:
		prefixes, created, err = parseGoogle(trimmed, maxPrefixes)
	case PlainText:
		prefixes, err = parseText(string(trimmed), maxPrefixes)
	case CSV:
		prefixes, err = parseCSV(body, maxPrefixes)
	default:
		err = refuse("unknown format %q", f)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	prefixes = tidy(prefixes)
	if err := plausible(prefixes); err != nil {
		return nil, time.Time{}, err
	}
	return prefixes, created, nil
}

func parseGoogle(body []byte, limit int) ([]netip.Prefix, time.Time, error) {
	var doc struct {
		CreationTime string `json:"creationTime"`
		Prefixes     []struct {
			V4 string `json:"ipv4Prefix"`
			V6 string `json:"ipv6Prefix"`
		} `json:"prefixes"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		// The error's text can quote the body: keep only its kind.
		return nil, time.Time{}, refuse("not JSON of the expected shape (%T)", err)
	}
	if len(doc.Prefixes) > limit {
		return nil, time.Time{}, refuse("%d prefixes, more than %d", len(doc.Prefixes), limit)
	}
	out := make([]netip.Prefix, 0, len(doc.Prefixes))
	for i, e := range doc.Prefixes {
		s := e.V4
		if s == "" {
			s = e.V6
		}
		if e.V4 != "" && e.V6 != "" {
			return nil, time.Time{}, refuse("entry %d holds two prefixes", i)
		}
		p, err := parsePrefix(s)
		if err != nil || p.Addr().Is4() != (e.V4 != "") {
			return nil, time.Time{}, refuse("entry %d is no prefix of its family", i)
		}
		out = append(out, p)
	}
	return out, parseCreation(doc.CreationTime), nil
}

// parseCreation reads the forms that vendors use; they mostly leave the zone
// out and mean UTC. An unreadable one counts as not stated.
func parseCreation(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 2000 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	return time.Time{}
}

func parseText(body string, limit int) ([]netip.Prefix, error) {
	var out []netip.Prefix
	n := 0
	for line := range strings.Lines(body) {
		n++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		p, err := parsePrefix(line)
		if err != nil {
			return nil, refuse("line %d is no prefix", n)
		}
		if len(out) == limit {
			return nil, refuse("more than %d prefixes", limit)
		}
		out = append(out, p)
	}
	return out, nil
}

func parseCSV(body []byte, limit int) ([]netip.Prefix, error) {
	r := csv.NewReader(bytes.NewReader(body))
	r.Comment, r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = '#', -1, true, true
	var out []netip.Prefix
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, refuse("not CSV near byte %d", r.InputOffset())
		}
		line, _ := r.FieldPos(0)
		p, err := parsePrefix(strings.TrimSpace(rec[0]))
		if err != nil {
			return nil, refuse("first column of line %d is no prefix", line)
		}
		if len(out) == limit {
			return nil, refuse("more than %d prefixes", limit)
		}
		out = append(out, p)
	}
}

// parsePrefix reads an address or a prefix; host bits are dropped. A mapped
// address is refused: no list holds one, and it would never match a client.
func parsePrefix(s string) (netip.Prefix, error) {
	if strings.IndexByte(s, '/') < 0 {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return netip.Prefix{}, ErrList
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, ErrList
	}
	return p.Masked(), nil
}
