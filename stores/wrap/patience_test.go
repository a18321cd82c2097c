package wrap

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 1))
		p := newPatience(parent, time.Second)
		if until, ok := p.Deadline(); !ok || time.Until(until) != time.Second {
			t.Errorf("deadline %v, %v", until, ok)
		}
		if p.Err() != nil || p.timed != nil || p.Value(key{}) != 1 {
			t.Errorf("%v, a timer %v", p.Err(), p.timed != nil)
		}
		child, stop := context.WithTimeout(p, time.Hour)
		defer stop()
		if until, _ := child.Deadline(); time.Until(until) != time.Second || child.Value(key{}) != 1 {
			t.Errorf("a derived context ends at %v", until)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, ctx := range []context.Context{p, child} {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("after its time: %v", ctx.Err())
			}
		}
		p.end()

		p = newPatience(parent, time.Second) // never asked for Done
		time.Sleep(time.Second)
		if !errors.Is(p.Err(), context.DeadlineExceeded) {
			t.Errorf("after its time: %v", p.Err())
		}
		p.end()

		p = newPatience(parent, time.Second)
		done := p.Done()
		cancel()
		<-done
		if !errors.Is(p.Err(), context.Canceled) {
			t.Errorf("after the caller's end: %v", p.Err())
		}
		p.end()

		near, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		p = newPatience(near, time.Second)
		if until, _ := p.Deadline(); time.Until(until) != time.Millisecond {
			t.Errorf("the caller's deadline is nearer than %v", until)
		}
		p.end()
		p = newPatience(t.Context(), time.Second)
		_ = p.Done()
		p.end()
		if !errors.Is(p.Err(), context.Canceled) {
			t.Errorf("after its end: %v", p.Err())
		}
	})
}

// TestPatienceIsShared: contexts are used from many goroutines at once.
func TestPatienceIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPatience(t.Context(), time.Second)
		defer p.end()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if p.Err() != nil || p.Value(0) != nil {
					t.Error("it ended, or holds a value")
				}
				<-p.Done()
				if !errors.Is(p.Err(), context.DeadlineExceeded) {
					t.Error(p.Err())
				}
			})
		}
		wg.Wait()
	})
}
