package crawlers

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ErrSnapshot marks a snapshot file that cannot be read.
var ErrSnapshot = errors.New("crawlers: bad snapshot")

// A Held is one list as it is held: its ranges and where they came from.
type Held struct {
	Prefixes []netip.Prefix // sorted, without duplicates
	Created  time.Time      // the list's own creation time; zero when it states none
	Fetched  time.Time      // when this content was first had from its source
	ETag     string         // the source's validator; empty when it has none
	Source   string         // the URL, or in words where the ranges were read
	// Partial: an excerpt. It proves what it holds; the rest of the crawler's
	// ranges is missing until the first refresh.
	Partial bool
}

// A Snapshot is the ranges of many lists by list id, as written by
// [Verifier.Update]: a sorted text file that shows in a diff what changed.
type Snapshot map[string]Held

const snapshotTitle = "stile-crawler-ranges 1"

//go:embed snapshot.txt
var shipped []byte

// Shipped returns the snapshot that is built in: small, dated and sourced.
func Shipped() (Snapshot, error) { return ReadSnapshot(shipped) }

// ReadSnapshot reads what [Snapshot.Encode] wrote. Errors wrap [ErrSnapshot];
// ranges are judged as those of a fetched list are.
func ReadSnapshot(b []byte) (Snapshot, error) {
	s := Snapshot{}
	bad := func(line int, why string) (Snapshot, error) {
		return nil, fmt.Errorf("%w: line %d: %s", ErrSnapshot, line, why)
	}
	if len(b) > 16<<20 {
		return bad(0, "too long")
	}
	sc := bufio.NewScanner(bytes.NewReader(b))
	id, n, titled := "", 0, false
	var held Held
	finish := func() error {
		if id == "" {
			return nil
		}
		held.Prefixes = tidy(held.Prefixes)
		if err := plausible(held.Prefixes); err != nil {
			return fmt.Errorf("list %s: %w", id, err)
		}
		s[id] = held
		return nil
	}
	for sc.Scan() {
		n++
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if !titled {
			if line != snapshotTitle {
				return bad(n, "not a file of crawler ranges")
			}
			titled = true
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "list":
			if err := finish(); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
			}
			if _, twice := s[rest]; twice || !validID(rest) {
				return bad(n, "list id bad or used twice")
			}
			id, held = rest, Held{}
			continue
		case "source":
			held.Source = rest
		case "created":
			held.Created, err = time.Parse(time.RFC3339, rest)
		case "fetched":
			held.Fetched, err = time.Parse(time.RFC3339, rest)
		case "etag":
			held.ETag = rest
		case "partial":
			held.Partial = true
		default:
			var p netip.Prefix
			if p, err = parsePrefix(line); err == nil {
				held.Prefixes = append(held.Prefixes, p)
			}
		}
		if err != nil || id == "" {
			return bad(n, "neither a range nor a known word, or before the first list")
		}
		if len(held.Prefixes) > 2*DefaultMaxPrefixes {
			return bad(n, "list too long")
		}
	}
	if err := sc.Err(); err != nil || !titled {
		return bad(n, "not a file of crawler ranges")
	}
	if err := finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return s, nil
}

// Encode writes s as text: lists by id, ranges by address, so that two files
// differ only where the sources do. now dates the file.
func (s Snapshot) Encode(w io.Writer, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ranges of crawlers as their operators publish them. DO NOT EDIT: written by `stile crawlers update`.\n# written %s\n%s\n",
		now.UTC().Format(time.RFC3339), snapshotTitle)
	for _, id := range slices.Sorted(maps.Keys(s)) {
		h := s[id]
		fmt.Fprintf(&b, "\nlist %s\nsource %s\n", id, h.Source)
		if !h.Created.IsZero() {
			fmt.Fprintf(&b, "created %s\n", h.Created.UTC().Format(time.RFC3339))
		}
		if !h.Fetched.IsZero() {
			fmt.Fprintf(&b, "fetched %s\n", h.Fetched.UTC().Format(time.RFC3339))
		}
		if h.ETag != "" {
			fmt.Fprintf(&b, "etag %s\n", h.ETag)
		}
		if h.Partial {
			b.WriteString("partial\n")
		}
		for _, p := range h.Prefixes {
			b.WriteString(p.String() + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
