package accesslog

import (
	"hash/maphash"
	"sync"
)

// seenPerShard bounds the memory of the duplicate filter: two generations of 64
// shards, some 50 MB when full. Rows of one request stand close together, so
// forgetting the older half loses nothing.
const (
	seenShards   = 64
	seenPerShard = 16 << 10
)

// A seenSet recognises further rows of a request in the formats that write
// several: Vercel one per message, Cloudflare and Google when they deliver twice.
// Other formats repeat whole lines only when the visitor repeated the request.
type seenSet struct {
	seed   maphash.Seed
	shards [seenShards]struct {
		sync.Mutex
		young, old map[uint64]struct{}
	}
}

func newSeenSet() *seenSet { return &seenSet{seed: maphash.MakeSeed()} }

func (s *seenSet) repeated(r *Record) bool {
	switch r.Format {
	case FormatVercel, FormatCloudflare, FormatGoogleLB, FormatCloudRun:
	default:
		return false
	}
	if r.RequestID == "" {
		return false
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(r.RequestID)
	if r.Format != FormatVercel { // Vercel's rows of one request bear different times
		var t [8]byte
		n := r.Time.UnixNano()
		for i := range t {
			t[i] = byte(n >> (8 * i))
		}
		h.Write(t[:])
	}
	sum := h.Sum64()
	sh := &s.shards[sum%seenShards]
	sh.Lock()
	defer sh.Unlock()
	if _, ok := sh.young[sum]; ok {
		return true
	}
	_, ok := sh.old[sum]
	if len(sh.young) >= seenPerShard {
		sh.old, sh.young = sh.young, nil
	}
	if sh.young == nil {
		sh.young = make(map[uint64]struct{})
	}
	sh.young[sum] = struct{}{}
	return ok
}
