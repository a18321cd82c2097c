package accesslog

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// A Sink takes the records of one worker. Record is called from one goroutine
// only, so a sink needs no locks; r is valid during the call (see Record).
// Records arrive in no order across workers.
type Sink interface {
	Record(r *Record)
}

// SinkFunc is a function as a Sink.
type SinkFunc func(r *Record)

// Record calls f.
func (f SinkFunc) Record(r *Record) { f(r) }

// Scan reads all inputs once. NewSink is called for each worker before reading
// begins, with 0, 1, …; the caller merges the sinks after Scan has returned.
//
// Bad lines and unreadable inputs do not end a scan: they are counted in Stats.
// The error is the context's, and Stats then holds what was read until then.
func Scan(ctx context.Context, inputs []Input, o Options, newSink func(worker int) Sink) (Stats, error) {
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	blocks := make(chan block, workers)
	seen := newSeenSet()
	stats := make([]*Stats, workers)
	var wg sync.WaitGroup
	for i := range workers {
		w := &worker{p: NewParser(o), sink: newSink(i), seen: seen}
		stats[i] = w.p.Stats()
		wg.Go(func() {
			for b := range blocks {
				w.block(b)
			}
		})
	}
	total := readAll(ctx, inputs, o, blocks)
	close(blocks)
	wg.Wait()
	for _, s := range stats {
		total.add(s)
	}
	return total, ctx.Err()
}

// readAll cuts the inputs one after the other.
func readAll(ctx context.Context, inputs []Input, o Options, out chan<- block) Stats {
	var s Stats
	var stored, size int64
	for _, in := range inputs {
		if in.Size == 0 {
			size = 0
			break
		}
		size += in.Size
	}
	c := &cutter{ctx: ctx, out: out, maxLine: o.maxLine()}
	progress := func() {
		if o.Progress != nil {
			o.Progress(Progress{Bytes: stored, Total: size, Lines: c.lines})
		}
	}
	for _, in := range inputs {
		if ctx.Err() != nil {
			break
		}
		s.Inputs++
		if err := readOne(c, in, &stored, progress); err != nil && ctx.Err() == nil {
			s.Errors = append(s.Errors, fmt.Errorf("%s: %w", in.Name, err))
		}
	}
	s.Bytes = c.bytes
	s.Lines = c.oversized // the workers count the rest
	s.Skipped[Oversized] = c.oversized
	s.Examples[Oversized] = c.example
	return s
}

func readOne(c *cutter, in Input, stored *int64, progress func()) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	r, done, err := decompress(countingReader{f, stored})
	if err != nil {
		return err
	}
	defer done()
	return c.cut(r, progress)
}

// A worker parses blocks.
type worker struct {
	p    *Parser
	sink Sink
	seen *seenSet
	rec  Record
}

func (w *worker) block(b block) {
	if b.header != "" {
		w.p.directive(b.header)
	} else {
		w.p.w3c = nil // another input's header says nothing about this one
	}
	for s := b.text; s != ""; {
		line := s
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			line, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		if w.p.Parse(line, &w.rec) != Parsed {
			continue
		}
		if w.seen.repeated(&w.rec) {
			w.p.retract(&w.rec, line)
			continue
		}
		w.sink.Record(&w.rec)
	}
}

// retract turns a record just counted into a duplicate row.
func (p *Parser) retract(r *Record, line string) {
	p.stats.Records--
	p.stats.Formats[r.Format]--
	if !r.Client.IsValid() {
		p.stats.NoAddress--
	}
	if p.localTime {
		p.stats.LocalTimes--
	}
	p.stats.skip(DuplicateRow, line)
}
