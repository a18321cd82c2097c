package wrap

import "time"

// A dueQueue holds rows in the order in which they got something to report. All
// rows of one queue wait equally long, so the first is always the next one due.
type dueQueue struct {
	items []dueItem
	head  int
}

type dueItem struct {
	row rowID
	at  time.Time
}

func (q *dueQueue) push(id rowID, at time.Time) {
	if q.head > 1024 && q.head*2 > len(q.items) {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	q.items = append(q.items, dueItem{id, at})
}

// pop returns the first item that was pushed at or before limit.
func (q *dueQueue) pop(limit time.Time) (dueItem, bool) {
	if q.head == len(q.items) || q.items[q.head].at.After(limit) {
		return dueItem{}, false
	}
	q.head++
	return q.items[q.head-1], true
}
