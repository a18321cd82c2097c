package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/stilehq/stile/sizing/accesslog"
)

// isTerminal reports whether somebody looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A progress shows how far the reading of logs is, with rate and time left. It is
// silent when nobody looks. Its methods are called from one goroutine.
type progress struct {
	to   io.Writer // nil = silent
	what string
	bar  *progressbar.ProgressBar
	now  func() time.Time
	from time.Time
}

// progress returns a display that clears itself when done.
func (t *terminal) progress(what string) *progress {
	p := &progress{what: what, now: t.now}
	if isTerminal(t.stderr) {
		p.to = t.stderr
	}
	return p
}

// show takes the reader's word of where it is.
func (p *progress) show(at accesslog.Progress) {
	if p.to == nil {
		return
	}
	if p.bar == nil {
		p.from = p.now()
		total := at.Total
		if total <= 0 {
			total = -1 // standard input: a spinner with the rate
		}
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.to),
			progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowTotalBytes(true),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetElapsedTime(total > 0),
			progressbar.OptionSetWidth(20),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	text := fmt.Sprintf("%s %s lines", p.what, thousands(at.Lines))
	if s := p.now().Sub(p.from).Seconds(); s >= 1 {
		text += fmt.Sprintf(", %s/s", thousands(int64(float64(at.Lines)/s)))
	}
	_ = p.bar.Set64(at.Bytes) // a terminal that is gone is nobody's loss
	p.bar.Describe(text)
}

// done clears the line.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.Clear()
	}
}

// thousands groups digits for people: 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
