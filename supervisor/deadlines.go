package supervisor

import (
	"container/heap"
	"time"
)

// A deadline is a function that is to be called at a given time.
type deadline struct {
	at    time.Time
	do    func()
	index int // in the heap; -1 when it is not there
}

// deadlines is a heap of all pending deadlines, soonest first. One timer serves them all.
type deadlines []*deadline

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	entry := x.(*deadline)
	entry.index = len(*d)
	*d = append(*d, entry)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	entry := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	entry.index = -1
	return entry
}

// add adds a deadline and returns it.
func (d *deadlines) add(at time.Time, do func()) *deadline {
	entry := &deadline{at: at, do: do}
	heap.Push(d, entry)
	return entry
}

// drop removes an entry. It ignores a nil entry and one that is no longer in the heap.
func (d *deadlines) drop(entry *deadline) {
	if entry != nil && entry.index >= 0 {
		heap.Remove(d, entry.index)
	}
}

// next returns the time of the soonest deadline, and whether there is one.
func (d deadlines) next() (time.Time, bool) {
	if len(d) == 0 {
		return time.Time{}, false
	}
	return d[0].at, true
}

// pop removes and returns the soonest entry if it is due, or returns nil.
func (d *deadlines) pop(now time.Time) *deadline {
	if len(*d) == 0 || (*d)[0].at.After(now) {
		return nil
	}
	return heap.Pop(d).(*deadline)
}
