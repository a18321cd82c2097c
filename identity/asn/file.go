package asn

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
)

// maxFile bounds a file as it lies on the disk.
const maxFile = 256 << 20

// A File answers from a local table. It is safe for concurrent use.
type File struct {
	path  string
	table atomic.Pointer[loaded]
	mu    sync.Mutex // over loading
}

type loaded struct {
	ranges *ranges
	mmdb   *mmdb
	size   int64
	at     time.Time // the file's time of change
}

// OpenFile reads a table: ranges in tabs as iptoasn publishes them, plain or
// gzipped, or a MaxMind database with numbers of networks. Which it is says its
// content. The error wraps [ErrTable] or is the file system's.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	if _, err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

var _ core.ASNSource = (*File)(nil)

// LookupASN implements core.ASNSource.
func (f *File) LookupASN(_ *core.Request, client netip.Addr) uint32 {
	t := f.table.Load()
	client = client.Unmap().WithZone("")
	switch {
	case !client.IsValid():
		return 0
	case t.mmdb != nil:
		return t.mmdb.lookup(client)
	}
	return t.ranges.lookup(client)
}

// Changed returns when the file that is held was written.
func (f *File) Changed() time.Time { return f.table.Load().at }

// Reload reads the file again if its time or size has changed, and reports
// whether it did. On an error the held table serves on. Replace the file by
// renaming: a half-written one is refused, or read as the shorter table that it
// is.
func (f *File) Reload() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.Open(f.path)
	if err != nil {
		return false, fmt.Errorf("asn: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("asn: %w", err)
	}
	switch held := f.table.Load(); {
	case held != nil && held.at.Equal(info.ModTime()) && held.size == info.Size():
		return false, nil
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return false, fmt.Errorf("%w: %s: want a file of at most %d bytes", ErrTable, f.path, maxFile)
	}
	t, err := load(io.LimitReader(file, maxFile))
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	t.size, t.at = info.Size(), info.ModTime()
	f.table.Store(t)
	return true, nil
}

// Run reloads the file when it has changed, looking each time interval has
// passed, until ctx ends. Errors are logged, and the held table serves on.
func (f *File) Run(ctx context.Context, interval time.Duration, log *slog.Logger) {
	timer := time.NewTicker(max(interval, time.Second))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		switch changed, err := f.Reload(); {
		case err != nil:
			log.Warn("table of networks not reloaded, the held one serves on", "error", err, "held", f.Changed())
		case changed:
			log.Info("table of networks reloaded", "written", f.Changed())
		}
	}
}

// load tells the kinds of table apart by their first and last bytes.
func load(r io.Reader) (*loaded, error) {
	var head [2]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if head == [2]byte{0x1f, 0x8b} {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTable, err)
		}
		t, err := parseRanges(z)
		return &loaded{ranges: t}, err
	}
	if n == 2 && isText(head[0]) && isText(head[1]) {
		t, err := parseRanges(r)
		return &loaded{ranges: t}, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	t, err := openMMDB(data)
	return &loaded{mmdb: t}, err
}

// isText reports whether a table of text may begin with c: an address, a comment.
// A database begins with the nodes of its tree, and its first one leads to the
// second: a small number, whose first byte is 0.
func isText(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c == ':' || c == '#' || c == '.' || c == ' '
}
