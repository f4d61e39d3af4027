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

func (l timeOrder[T]) find(x T) (place int, there bool) {
	return slices.BinarySearchFunc(l, x, byDate[T])
}

func byDate[T byTime](a, b T) int {
	at, n := a.date()
	bt, m := b.date()
	return cmp.Or(at.Compare(bt), cmp.Compare(n, m))
}

func (l *timeOrder[T]) add(x T) {
	if place, there := l.find(x); !there {
		*l = slices.Insert(*l, place, x)
	}
}

func (l *timeOrder[T]) drop(x T) {
	if place, there := l.find(x); there {
		*l = slices.Delete(*l, place, place+1)
	}
}

// first returns the earliest time, or since if that is later. Before since, the orchestrator was
// down.
func (l timeOrder[T]) first(since time.Time) time.Time {
	at, _ := l[0].date()
	if at.Before(since) {
		return since
	}
	return at
}
