package gcp

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainTime is within the ten seconds that Cloud Run leaves between SIGTERM and
// SIGKILL, the last flush included. STILE_GRACE says another, as it does for
// stile serve.
const drainTime = 8 * time.Second

// DrainOnTerm drains the function when the process is told to end, and ends it
// then by the same signal. The Functions Framework has no hook for it. The
// platform has stopped sending requests by the time of the signal.
func (f *Function) DrainOnTerm() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		s := <-told
		ctx, cancel := context.WithTimeout(context.Background(), f.grace)
		defer cancel()
		f.Drain(ctx)
		signal.Reset(syscall.SIGTERM)
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(s) != nil {
			os.Exit(0)
		}
	}()
}
