package core

import (
	"context"
	"errors"
	"sync"
)

// mapStore is the store contract as literally as it can be written: the oracle
// of the tests in this package. Real stores are held against the same contract
// by stores/storetest.
type mapStore struct {
	mu    sync.Mutex
	cells map[mapCell]int64
	known map[mapCell]bool // records, with slot 0
	trips int
	rows  int
	fail  func(b *Batch) error // called before anything is applied
}

type mapCell struct {
	key   Key
	plan  uint32
	epoch int64
	slot  uint16
}

func newMapStore() *mapStore {
	return &mapStore{cells: map[mapCell]int64{}, known: map[mapCell]bool{}}
}

func (s *mapStore) Apply(_ context.Context, b *Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trips++
	s.rows += len(b.Rows)
	if s.fail != nil {
		if err := s.fail(b); err != nil {
			for i := range b.Rows {
				b.Rows[i].Err = err
			}
			return err
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		r.Err = nil
		record := mapCell{key: r.Key, plan: r.Plan, epoch: r.Epoch}
		exists := s.known[record]
		for j := range r.Cells {
			c := &r.Cells[j]
			at := mapCell{r.Key, r.Plan, r.Epoch, c.Slot}
			c.Value = max(0, max(s.cells[at], c.Floor)+c.Add)
			if r.Creates() || exists && r.Writes() {
				s.cells[at] = c.Value
				s.known[record] = true
			}
		}
	}
	return nil
}

func (s *mapStore) Close() error { return nil }

// total sums the counters of a key.
func (s *mapStore) total(k Key) (n int64) {
	for c, v := range s.cells {
		if c.key == k {
			n += v
		}
	}
	return n
}

var errStore = errors.New("store is down")
