package memory

// maxValue is the highest value of a cell, by the contract of core.Cell.
const maxValue = 1 << 62

// advance is the one step of the store contract: max(v, floor) + add, kept
// within 0 .. maxValue whatever floor and add are.
func advance(v uint64, floor, add int64) uint64 {
	n := min(max(int64(v), floor), maxValue)
	if add > 0 && n > maxValue-add {
		return maxValue
	}
	return uint64(max(n+add, 0))
}

// load returns the value of slot in r and its place for put; place is -1 and
// the value 0 when r has no such cell. A cell past its Until is 0 too.
func (s *shard) load(r *record, slot uint8, horizon int64) (value uint64, place int) {
	if r.flags&(flagWide|flagSpilled) == 0 {
		for i := range int(r.flags & flagCount) {
			if uint8(r.words[i]>>24) == slot {
				if over(r.narrowUntil(i), horizon) {
					return 0, i
				}
				return uint64(r.words[i] & narrowMax), i
			}
		}
		return 0, -1
	}
	if r.flags&flagWide != 0 {
		c := r.wide()
		if c.slot != slot {
			return 0, -1
		}
		if over(c.until, horizon) {
			return 0, 0
		}
		return c.value, 0
	}
	cells := s.spill[r.words[0]]
	for i := range cells {
		if cells[i].slot == slot {
			if over(cells[i].until, horizon) {
				return 0, i
			}
			return cells[i].value, i
		}
	}
	return 0, -1
}

// put sets a cell of r, at the place that load gave for its slot. It widens the
// record's form when the cell does not fit, after dropping cells that are over.
func (s *shard) put(r *record, c spillCell, place int, horizon int64) {
	r.extend(c.until)
	switch {
	case r.flags&flagSpilled != 0:
		s.putSpilled(r, c, place, horizon)
	case r.flags&flagWide != 0:
		old := r.wide()
		switch {
		case place == 0:
			c.until = max(c.until, old.until)
			r.setWide(c)
		case over(old.until, horizon):
			r.flags &^= flagWide // empty
			s.put(r, c, -1, horizon)
		default:
			s.spillOut(r, c)
		}
	default:
		s.putNarrow(r, c, place, horizon)
	}
}

func (s *shard) putNarrow(r *record, c spillCell, place int, horizon int64) {
	n := int(r.flags & flagCount)
	fits := c.value <= narrowMax
	if place >= 0 && fits {
		r.words[place] = uint32(c.slot)<<24 | uint32(c.value)
		r.ages[place] = min(r.ages[place], r.age(c.until))
		return
	}
	if place >= 0 { // outgrown: out of the narrow list, into another form
		c.until = max(c.until, r.narrowUntil(place))
		n--
		r.words[place], r.ages[place] = r.words[n], r.ages[n]
		r.setCount(n)
	}
	if n == narrowCells || !fits {
		n = r.dropOver(horizon)
	}
	switch {
	case fits && n < narrowCells:
		r.words[n] = uint32(c.slot)<<24 | uint32(c.value)
		r.ages[n] = r.age(c.until)
		r.setCount(n + 1)
	case n == 0:
		r.setWide(c)
	default:
		s.spillOut(r, c)
	}
}

// dropOver drops the narrow cells that are over and returns how many are left.
func (r *record) dropOver(horizon int64) int {
	kept := 0
	for i := range int(r.flags & flagCount) {
		if !over(r.narrowUntil(i), horizon) {
			r.words[kept], r.ages[kept] = r.words[i], r.ages[i]
			kept++
		}
	}
	r.setCount(kept)
	return kept
}

func (r *record) setCount(n int) { r.flags = r.flags&^flagCount | uint8(n) }

func (r *record) wide() spillCell {
	return spillCell{
		value: uint64(r.words[0]) | uint64(r.words[1])<<32,
		until: r.words[2],
		slot:  uint8(r.words[3]),
	}
}

func (r *record) setWide(c spillCell) {
	r.words = [narrowCells]uint32{uint32(c.value), uint32(c.value >> 32), c.until, uint32(c.slot)}
	r.flags = r.flags&^flagCount | flagWide
}

// spillOut moves the cells of a narrow or wide record to the spill, with c added.
func (s *shard) spillOut(r *record, c spillCell) {
	cells := make([]spillCell, 0, 2*narrowCells)
	if r.flags&flagWide != 0 {
		cells = append(cells, r.wide())
	}
	for i := range int(r.flags & flagCount) {
		cells = append(cells, spillCell{
			value: uint64(r.words[i] & narrowMax), until: r.narrowUntil(i), slot: uint8(r.words[i] >> 24),
		})
	}
	cells = append(cells, c)
	s.spillCells += cap(cells)
	if n := len(s.spillFree); n > 0 {
		r.words[0] = s.spillFree[n-1]
		s.spillFree = s.spillFree[:n-1]
		s.spill[r.words[0]] = cells
	} else {
		r.words[0] = uint32(len(s.spill))
		s.spill = append(s.spill, cells)
	}
	r.flags = r.flags&^(flagCount|flagWide) | flagSpilled
}

func (s *shard) putSpilled(r *record, c spillCell, place int, horizon int64) {
	cells := s.spill[r.words[0]]
	if place >= 0 {
		c.until = max(c.until, cells[place].until)
		cells[place] = c
		return
	}
	if len(cells) == cap(cells) {
		cells = dropSpilled(cells, horizon)
		if len(cells) < narrowCells && s.narrowAgain(r, cells) {
			s.put(r, c, -1, horizon)
			return
		}
		// Grow only when dropping freed less than a quarter, so that the next
		// drop is far enough away to pay for itself.
		if full := cap(cells); len(cells) > full-full/4 {
			grown := make([]spillCell, len(cells), 2*full)
			copy(grown, cells)
			s.spillCells += full
			cells = grown
		}
	}
	s.spill[r.words[0]] = append(cells, c)
}

func dropSpilled(cells []spillCell, horizon int64) []spillCell {
	kept := cells[:0]
	for _, c := range cells {
		if !over(c.until, horizon) {
			kept = append(kept, c)
		}
	}
	return kept
}

// narrowAgain brings a spilled record whose few cells fit back to the narrow form.
func (s *shard) narrowAgain(r *record, cells []spillCell) bool {
	for _, c := range cells {
		if c.value > narrowMax {
			return false
		}
	}
	s.dropSpill(r)
	for i, c := range cells {
		r.words[i] = uint32(c.slot)<<24 | uint32(c.value)
		r.ages[i] = r.age(c.until)
	}
	r.setCount(len(cells))
	return true
}

// dropSpill gives up r's place in the spill; r has no cells afterwards.
func (s *shard) dropSpill(r *record) {
	if r.flags&flagSpilled == 0 {
		return
	}
	at := r.words[0]
	s.spillCells -= cap(s.spill[at])
	s.spill[at] = nil
	s.spillFree = append(s.spillFree, at)
	r.flags &^= flagSpilled
}
