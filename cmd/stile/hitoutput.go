package main

import (
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// surviveReaders lets the process outlive whoever reads its output: without it a
// log shipper that ends, or a `| head`, would take the site down with it.
func surviveReaders() { signal.Ignore(syscall.SIGPIPE) }

// A hitOutput is where the hit log goes. Lines that cannot be written are
// counted, and the operator is told at most once a minute: a visitor must not
// pay for a full disk. It is safe for concurrent use.
type hitOutput struct {
	w      io.Writer
	logger *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	lost int64 // since the operator was told
	told time.Time
}

// Write implements io.Writer and never fails.
func (h *hitOutput) Write(p []byte) (int, error) {
	_, err := h.w.Write(p)
	if err == nil {
		return len(p), nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost++
	if now := h.now(); h.told.IsZero() || now.Sub(h.told) >= time.Minute {
		h.told = now
		h.logger.Error("the hit log cannot be written; pages are served and counted as ever", "err", err, "lines_lost", h.lost)
		h.lost = 0
	}
	return len(p), nil
}
