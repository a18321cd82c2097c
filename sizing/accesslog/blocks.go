package accesslog

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// A block is a run of whole lines, with the W3C header in force at its start.
type block struct {
	text   string
	header string
}

// A cutter reads one input and sends blocks. It finds line ends only: parsing is
// the workers' business.
type cutter struct {
	ctx     context.Context
	out     chan<- block
	maxLine int
	header  string // the last #Fields line
	framer  *jsonFramer

	lines, bytes, oversized int64
	example                 string
}

var fieldsMark = []byte("#Fields:")

// cut reads r to its end. The error is the reader's; what was read before it has
// been sent.
func (c *cutter) cut(r io.Reader, progress func()) error {
	buf := make([]byte, 0, blockSize+4096)
	var scratch []byte // what the framer reads while it writes into buf
	c.framer, c.header = nil, ""
	skipping := false // inside a line that is too long
	for {
		if len(buf) == cap(buf) { // one line fills the buffer: let it grow to the bound
			grown := make([]byte, len(buf), 2*cap(buf))
			copy(grown, buf)
			buf = grown
		}
		n, err := readBlock(r, buf[len(buf):cap(buf)])
		c.bytes += int64(n)
		if c.framer == nil {
			buf = buf[:len(buf)+n]
			if n > 0 && !skipping && framed(buf) {
				c.framer = &jsonFramer{newline: true}
				scratch = append(scratch[:0], buf...)
				buf = c.framer.frame(buf[:0], scratch)
			}
		} else {
			scratch = append(scratch[:0], buf[len(buf):len(buf)+n]...)
			buf = c.framer.frame(buf, scratch)
		}
		if skipping {
			i := bytes.IndexByte(buf, '\n')
			if i < 0 {
				buf = buf[:0]
			} else {
				buf = buf[:copy(buf, buf[i+1:])]
				skipping = false
			}
		}
		end := bytes.LastIndexByte(buf, '\n')
		if err != nil && !skipping {
			end = len(buf) - 1
		}
		if end >= 0 {
			if err := c.send(buf[:end+1]); err != nil {
				return err
			}
			buf = buf[:copy(buf, buf[end+1:])]
		}
		if len(buf) > c.maxLine {
			c.oversize(buf)
			buf, skipping = buf[:0], true
		}
		progress()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// readBlock fills p unless the input pauses: a block from a pipe should not wait
// for a full buffer, but a file should not be read in small pieces.
func readBlock(r io.Reader, p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m, err := r.Read(p[n:])
		n += m
		if err != nil {
			return n, err
		}
		if n >= len(p)*3/4 {
			break
		}
	}
	return n, nil
}

func (c *cutter) oversize(b []byte) {
	c.oversized++
	c.lines++
	if c.example == "" {
		c.example = string(bytes.ToValidUTF8(b[:200], []byte("?")))
	}
}

// send hands a copy of b to the workers, and keeps the header for later blocks.
func (c *cutter) send(b []byte) error {
	blk := block{text: string(b), header: c.header}
	c.lines += int64(bytes.Count(b, []byte{'\n'}))
	if b[len(b)-1] != '\n' {
		c.lines++
	}
	// Forwards, since the search backwards is many times slower and a block rarely
	// holds a header at all.
	for rest := b; ; {
		i := bytes.Index(rest, fieldsMark)
		if i < 0 {
			break
		}
		line := rest[i:]
		if j := bytes.IndexByte(line, '\n'); j >= 0 {
			line = line[:j]
		}
		if i == 0 || rest[i-1] == '\n' || rest[i-1] == ' ' {
			c.header = string(bytes.TrimRight(line, "\r \t"))
		}
		rest = rest[i+len(line):]
	}
	select {
	case c.out <- blk:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}
