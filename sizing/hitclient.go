package sizing

import (
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/hitlog"
)

// What a client of the hit log looks like, in the words of "stile size" and
// "stile replay". The log has no assets and no referrers, so the evidence is weaker
// than theirs, and is printed beside them.
const (
	isPerson   = "engaged"
	isShared   = "shared"
	isProgram  = "robotic"
	isClaimed  = ClassClaimed
	isVerified = ClassVerified
	isUnclear  = "unclear"
)

// hitHour is what one client asked for in one hour.
type hitHour struct {
	hour    int32 // Unix hours
	asked   uint32
	refused uint32 // or would have been
	told    uint32 // refused with 429
}

// A hitClient is one key of the limiter. Counts weigh sampled lines by what they
// stand for.
type hitClient struct {
	keyType, key string
	addr         netip.Addr // not valid when the log hides it
	network      netip.Prefix
	agent        string // the first
	agents       []uint64

	asked, refused int64
	told           int64 // refusals that were really answered with 429
	before         int64 // asked for before it was first told
	lines, dest    int64 // lines, and those with fetch metadata
	first, last    time.Time
	firstTold      time.Time
	firstRefused   time.Time
	lastRefused    time.Time
	until          time.Time // when the limit that refused last lets it in again
	bucket         string    // that refused last
	ref            string    // of the last refusal, as the visitor saw it
	hours          []hitHour
	gaps           [20]uint16 // lines by the binary logarithm of the seconds since the one before
}

const agentsKept = 16

func (c *hitClient) add(e *hitlog.Entry) {
	weight := 1 + e.LeftOut
	c.lines++
	if e.SecFetchDest != "" {
		c.dest++
	}
	c.noteAgent(e.UserAgent)
	if c.lines > 1 {
		s := max(0, int64(e.Time.Sub(c.last)/time.Second))
		if i := min(bits.Len64(uint64(s)), len(c.gaps)-1); c.gaps[i] < 65535 {
			c.gaps[i]++
		}
	}
	if c.lines == 1 || e.Time.Before(c.first) {
		c.first = e.Time
	}
	if e.Time.After(c.last) {
		c.last = e.Time
	}
	h := c.hour(int32(e.Time.Unix() / 3600))
	h.asked += uint32(weight)
	c.asked += weight
	if c.told == 0 && e.Event != hitlog.Limited {
		c.before += weight
	}
	if e.Event == hitlog.Hit {
		return
	}
	h.refused += uint32(weight)
	c.refused += weight
	if e.Event == hitlog.Limited {
		c.told += weight
		h.told += uint32(weight)
		if c.firstTold.IsZero() {
			c.firstTold = e.Time
		}
	}
	if c.firstRefused.IsZero() || e.Time.Before(c.firstRefused) {
		c.firstRefused = e.Time
	}
	if e.Time.Before(c.lastRefused) {
		return
	}
	c.lastRefused, c.ref = e.Time, e.Ref
	if b := binding(e); b != nil {
		const longest = 366 * 24 * 3600 // no window is longer
		c.bucket, c.until = strings.Clone(b.Name), e.Time.Add(time.Duration(min(b.ResetS, longest))*time.Second)
	}
}

// binding is the bucket with nothing left; of several, the one that takes
// longest.
func binding(e *hitlog.Entry) *hitlog.Bucket {
	var worst *hitlog.Bucket
	for i := range e.Buckets {
		if b := &e.Buckets[i]; b.Remaining <= 0 && (worst == nil || b.ResetS > worst.ResetS) {
			worst = b
		}
	}
	return worst
}

func (c *hitClient) noteAgent(ua string) {
	h := fnv.New64a()
	h.Write([]byte(ua))
	sum := h.Sum64()
	if c.lines == 1 {
		c.agent = strings.Clone(ua)
	}
	if len(c.agents) < agentsKept && !slices.Contains(c.agents, sum) {
		c.agents = append(c.agents, sum)
	}
}

// hour finds a cell from the newest backwards: logs run forwards.
func (c *hitClient) hour(h int32) *hitHour {
	for i := len(c.hours) - 1; i >= 0; i-- {
		if c.hours[i].hour == h {
			return &c.hours[i]
		}
	}
	c.hours = append(c.hours, hitHour{hour: h})
	return &c.hours[len(c.hours)-1]
}

// medianGap is a lower bound of the seconds between two requests, to a power of
// two.
func (c *hitClient) medianGap() int64 {
	var n, sum int64
	for _, g := range c.gaps {
		n += int64(g)
	}
	for i, g := range c.gaps {
		if sum += int64(g); g > 0 && 2*sum >= n {
			if i == 0 {
				return 0
			}
			return 1 << (i - 1)
		}
	}
	return 0
}

// sleepless reports pages in eighteen or more hours of one UTC day.
func (c *hitClient) sleepless() bool {
	days := map[int32]int{}
	for _, h := range c.hours {
		if days[h.hour/24]++; days[h.hour/24] >= 18 {
			return true
		}
	}
	return false
}

func (c *hitClient) peakHour() int64 {
	var peak int64
	for _, h := range c.hours {
		peak = max(peak, int64(h.asked))
	}
	return peak
}

// stubborn is the number of real 429s after which no person is behind a client.
const stubborn = 50

// browserName reports whether a User-Agent is one that browsers send.
func browserName(ua string) bool {
	return strings.HasPrefix(ua, "Mozilla/") || strings.HasPrefix(ua, "Opera/")
}

// looksLike judges a client. Sent says whether browsers of this site send fetch
// metadata at all, which they do over https only.
func (c *hitClient) looksLike(sent bool) (kind, why string) {
	browser := browserName(c.agent)
	some := c.dest*10 >= c.lines*9
	switch {
	case !browser:
		return isProgram, "its User-Agent is no browser's"
	case sent && c.dest == 0:
		return isProgram, "a browser's name, but none of the headers that browsers send here"
	case c.sleepless():
		return isProgram, "awake in 18 or more hours of a day"
	case len(c.agents) >= 5 && some:
		return isShared, "several browsers behind one address"
	case c.lines >= 10 && c.medianGap() < 1:
		return isProgram, "half of its requests came within a second of another"
	case c.told >= stubborn:
		return isProgram, "went on asking after many refusals"
	case len(c.agents) >= 5:
		return isProgram, "many User-Agents, and no browser's headers"
	case c.asked < 2:
		return isUnclear, "one page only"
	case some:
		return isPerson, "a browser's headers, at a reader's pace"
	}
	return isUnclear, "a browser's name at a reader's pace; the log has no fetch metadata to tell"
}
