package supervisor

import (
	"container/heap"
	"time"
)

// deadline is something to be done at a time.
type deadline struct {
	at    time.Time
	do    func()
	index int // in the heap; -1 when it is not there
}

// deadlines are all that is due some day, soonest first. One timer serves them
// all.
type deadlines []*deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push is for package heap.
func (d *deadlines) Push(x any) {
	entry := x.(*deadline)
	entry.index = len(*d)
	*d = append(*d, entry)
}

// Pop is for package heap.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	entry := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	entry.index = -1
	return entry
}

// add enters something to do.
func (d *deadlines) add(at time.Time, do func()) *deadline {
	entry := &deadline{at: at, do: do}
	heap.Push(d, entry)
	return entry
}

// drop takes an entry out. A nil entry, or one that was due, is fine.
func (d *deadlines) drop(entry *deadline) {
	if entry != nil && entry.index >= 0 {
		heap.Remove(d, entry.index)
	}
}

// next is when the soonest is due.
func (d deadlines) next() (time.Time, bool) {
	if len(d) == 0 {
		return time.Time{}, false
	}
	return d[0].at, true
}

// pop takes out the soonest entry if it is due.
func (d *deadlines) pop(now time.Time) *deadline {
	if len(*d) == 0 || (*d)[0].at.After(now) {
		return nil
	}
	return heap.Pop(d).(*deadline)
}
