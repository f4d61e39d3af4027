package queue

import (
	"cmp"
	"slices"
	"time"
)

// A Timed is something that is due at a time. The number breaks ties.
type Timed interface {
	Date() (at time.Time, number int64)
}

// A Timeline is a list ordered by time, the earliest first. The time of an element must not
// change while it is in the list.
type Timeline[T Timed] []T

// find returns the index of an element, or where it would be inserted.
func (t Timeline[T]) find(x T) (place int, there bool) {
	return slices.BinarySearchFunc(t, x, CompareTimes[T])
}

// CompareTimes orders elements of a Timeline.
func CompareTimes[T Timed](a, b T) int {
	at, n := a.Date()
	bt, m := b.Date()
	return cmp.Or(at.Compare(bt), cmp.Compare(n, m))
}

// Add adds an element, unless it is in the list.
func (t *Timeline[T]) Add(x T) {
	if place, there := t.find(x); !there {
		*t = slices.Insert(*t, place, x)
	}
}

// Drop removes an element, if it is in the list.
func (t *Timeline[T]) Drop(x T) {
	if place, there := t.find(x); there {
		*t = slices.Delete(*t, place, place+1)
	}
}

// First returns the earliest time, or since if that is later. Before since, the orchestrator was
// down.
func (t Timeline[T]) First(since time.Time) time.Time {
	at, _ := t[0].Date()
	if at.Before(since) {
		return since
	}
	return at
}
