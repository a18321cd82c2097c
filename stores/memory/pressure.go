package memory

// newcomerShare is the part of a shard, one in this many, that pressure may take
// from: the records of the lowest classes which together are at least so many.
// It lets a newcomer live long enough to be counted, also among busy records.
const newcomerShare = 8

// minShrink is the number of places below which a shard is not worth shrinking.
const minShrink = 128

// displace finds the record that a newcomer replaces in a full table, detaches
// it and returns its place. A record that is over goes first where the hand
// meets one; else a live one of the lowest classes, see the package comment.
// The shard must hold a record.
//
// The hand stops after eight records on average even when only one in eight is
// eligible, and a newcomer takes its victim's place behind the hand, so among
// equals the oldest goes first.
func (s *shard) displace(horizon int64) int {
	ceiling := s.ceiling()
	for {
		place := s.hand
		if s.hand++; s.hand >= s.used {
			s.hand = 0
		}
		r := s.at(place)
		switch {
		case r.flags&flagUsed == 0:
		case over(r.until, horizon):
			s.detach(place)
			s.recycled++
			return place
		case r.class() > ceiling:
		case r.flags&flagSecond != 0:
			r.flags &^= flagSecond
		default:
			s.evictedLive++
			if r.hits > 1 {
				s.evictedBusy++
			}
			s.detach(place)
			return place
		}
	}
}

// ceiling is the lowest class such that the records up to it are at least one in
// newcomerShare. At least one record is of that class or below.
func (s *shard) ceiling() int {
	need, sum := (s.count+newcomerShare-1)/newcomerShare, 0
	for c := range s.byClass {
		if sum += s.byClass[c]; sum >= need {
			return c
		}
	}
	return classes - 1
}

// sweep looks at the next few records and recycles those that are over. Every
// new record pays for a sweep of sweepPerNew others, so no goroutine is needed:
// as long as records come, those of a past window go at least as fast.
func (s *shard) sweep(horizon int64) {
	for range min(sweepPerNew, s.used) {
		place := s.broom
		if s.broom++; s.broom >= s.used {
			s.broom = 0
		}
		if r := s.at(place); r.flags&flagUsed != 0 && over(r.until, horizon) {
			s.recycle(place)
		}
		if s.broom == 0 && s.used > minShrink && s.count < s.used/2 {
			s.shrink()
			return
		}
	}
}

// shrink gives memory back after a crowd has gone: the records that are left
// move into new chunks, and the rest is the garbage collector's.
func (s *shard) shrink() {
	old, used := s.chunks, s.used
	s.chunks, s.used, s.free, s.hand, s.broom = nil, 0, 0, 0, 0
	for place := range used {
		if r := &old[place/chunkLen][place%chunkLen]; r.flags&flagUsed != 0 {
			*s.at(s.place()) = *r
		}
	}
	size := 16
	for size*3 < s.count*4*2 { // room for twice as many
		size *= 2
	}
	s.reindex(size)
}
