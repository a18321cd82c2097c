package gate

import (
	"sync"
	"time"
)

// noiseEvery is the least time between two lines about the same trouble.
const noiseEvery = 10 * time.Second

// noise keeps a trouble that comes with every request from filling the log.
type noise struct {
	mu   sync.Mutex
	at   time.Time
	left int
}

// due reports whether to write now, and how many times it was left out before.
func (n *noise) due(now time.Time) (left int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d := now.Sub(n.at); !n.at.IsZero() && d >= 0 && d < noiseEvery {
		n.left++
		return 0, false
	}
	left, n.left, n.at = n.left, 0, now
	return left, true
}
