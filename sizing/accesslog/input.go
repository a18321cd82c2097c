package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// An Input is one log to read.
type Input struct {
	Name string
	Size int64 // bytes as stored; 0: unknown
	Open func() (io.ReadCloser, error)
}

// ErrNoInput is wrapped by Files' error when an argument names nothing.
var ErrNoInput = errors.New("accesslog: no such log")

// Files turns arguments into inputs: paths, glob patterns (with **), and "-" for
// stdin. What a pattern finds is put in rotation order, oldest first, so that
// access.log.10 comes before access.log.2 and that before access.log. All
// arguments that fail are reported at once.
func Files(stdin io.Reader, args ...string) ([]Input, error) {
	var in []Input
	var errs []error
	for _, a := range args {
		if a == "-" {
			in = append(in, Reader("standard input", stdin))
			continue
		}
		names := []string{a}
		if _, err := os.Stat(a); err != nil {
			if names, err = doublestar.FilepathGlob(a, doublestar.WithFilesOnly()); err != nil {
				errs = append(errs, fmt.Errorf("%w: %s: %w", ErrNoInput, a, err))
				continue
			}
		}
		if len(names) == 0 {
			errs = append(errs, fmt.Errorf("%w: %s", ErrNoInput, a))
		}
		sort.SliceStable(names, func(i, j int) bool { return rotationLess(names[i], names[j]) })
		for _, n := range names {
			st, err := os.Stat(n)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%w: %w", ErrNoInput, err))
			case st.IsDir():
				errs = append(errs, fmt.Errorf("%w: %s is a directory; name its files (%s)", ErrNoInput, n, filepath.Join(n, "*")))
			default:
				in = append(in, Input{Name: n, Size: st.Size(), Open: func() (io.ReadCloser, error) { return os.Open(n) }})
			}
		}
	}
	return in, errors.Join(errs...)
}

// Reader makes an input of a stream. It can be scanned once.
func Reader(name string, r io.Reader) Input {
	return Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
}

// rotationLess orders rotated files from old to new: by name without the
// rotation number, then by number downwards, the unnumbered file last.
func rotationLess(a, b string) bool {
	an, ai := rotation(a)
	bn, bi := rotation(b)
	if an != bn {
		return an < bn
	}
	return ai > bi
}

func rotation(name string) (string, int) {
	for _, ext := range [...]string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, ext)
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 || !digits(name[i+1:]) || len(name)-i > 6 { // longer: a date, which sorts by itself
		return name, 0
	}
	n := 0
	for _, c := range name[i+1:] {
		n = n*10 + int(c-'0')
	}
	return name[:i], n
}

// countingReader counts the stored bytes for the progress display.
type countingReader struct {
	r io.Reader
	n *int64
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// decompress looks at the first bytes, not at the name: shippers rename.
func decompress(r io.Reader) (io.Reader, func(), error) {
	br := bufio.NewReaderSize(r, 256<<10)
	head, err := br.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(br, zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return br, func() {}, nil
}
