package handlers

import (
	"cmp"
	"slices"
	"time"
)

// A byTime is something that is due at a time. The number breaks ties.
type byTime interface{ date() (time.Time, int64) }

// A timeOrder is a list ordered by time, the earliest first. The time of an element must not
// change while it is in the list.
type timeOrder[T byTime] []T

func (t timeOrder[T]) find(x T) (place int, there bool) {
	return slices.BinarySearchFunc(t, x, byDate[T])
}

func byDate[T byTime](a, b T) int {
	at, n := a.date()
	bt, m := b.date()
	return cmp.Or(at.Compare(bt), cmp.Compare(n, m))
}

func (t *timeOrder[T]) add(x T) {
	if place, there := t.find(x); !there {
		*t = slices.Insert(*t, place, x)
	}
}

func (t *timeOrder[T]) drop(x T) {
	if place, there := t.find(x); there {
		*t = slices.Delete(*t, place, place+1)
	}
}

// first returns the earliest time, or since if that is later. Before since, the orchestrator was
// down.
func (t timeOrder[T]) first(since time.Time) time.Time {
	at, _ := t[0].date()
	if at.Before(since) {
		return since
	}
	return at
}
