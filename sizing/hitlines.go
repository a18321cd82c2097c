package sizing

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/sizing/accesslog"
)

// maxHitLine is far above the longest line that a hit log has.
const maxHitLine = 1 << 20

// HitLines is what reading hit logs came to.
type HitLines struct {
	Inputs  int      `json:"inputs"`
	Lines   int64    `json:"lines"`
	Entries int64    `json:"entries"`
	Foreign int64    `json:"foreign"` // lines of other programs, or cut off
	Errors  []string `json:"errors,omitempty"`

	latest time.Time
}

// A line that claims more than these is no line of ours: sampling writes at
// least one in a minute, and clocks are not that wrong.
var (
	earliestHit       = time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)
	mostLeftOut int64 = 1 << 20
)

// readHits gives each line of the hit log to take, in order. Lines that are none
// are counted, inputs that break off are named; the error is the context's.
// Now bounds believable times.
func readHits(ctx context.Context, inputs []accesslog.Input, now time.Time, show func(accesslog.Progress), take func(*hitlog.Entry)) (HitLines, error) {
	l := HitLines{latest: now.Add(24 * time.Hour)}
	at := accesslog.Progress{}
	for _, in := range inputs {
		if in.Size == 0 {
			at.Total = 0
			break
		}
		at.Total += in.Size
	}
	for _, in := range inputs {
		l.Inputs++
		if err := l.read(ctx, in, &at, show, take); ctx.Err() != nil {
			return l, ctx.Err()
		} else if err != nil {
			l.Errors = append(l.Errors, fmt.Sprintf("%s: %v", in.Name, err))
		}
	}
	return l, nil
}

func (l *HitLines) read(ctx context.Context, in accesslog.Input, at *accesslog.Progress, show func(accesslog.Progress), take func(*hitlog.Entry)) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	r, done, err := unpack(&counted{f, &at.Bytes})
	if err != nil {
		return err
	}
	defer done()
	for {
		line, err := r.ReadSlice('\n')
		long := false
		for errors.Is(err, bufio.ErrBufferFull) {
			long = true
			_, err = r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			l.line(line, long, take)
			if at.Lines++; at.Lines%4096 == 0 {
				show(*at)
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		if err != nil {
			show(*at)
			return nil
		}
	}
}

// line parses one line. What a platform puts before ours (a time, a container's
// name) is passed over.
func (l *HitLines) line(line []byte, long bool, take func(*hitlog.Entry)) {
	l.Lines++
	if i := bytes.IndexByte(line, '{'); i > 0 {
		line = line[i:]
	}
	e, err := hitlog.Parse(line)
	if err != nil || long || e.LeftOut > mostLeftOut || e.Time.Before(earliestHit) || e.Time.After(l.latest) {
		l.Foreign++
		return
	}
	l.Entries++
	take(&e)
}

// unpack looks at the first bytes, not at the name.
func unpack(from io.Reader) (*bufio.Reader, func(), error) {
	r := bufio.NewReaderSize(from, maxHitLine)
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return bufio.NewReaderSize(z, maxHitLine), func() { z.Close() }, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, nil, err
		}
		return bufio.NewReaderSize(z, maxHitLine), z.Close, nil
	}
	return r, func() {}, nil
}

// counted counts stored bytes for the progress display.
type counted struct {
	r io.Reader
	n *int64
}

// Read reads and counts.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}
