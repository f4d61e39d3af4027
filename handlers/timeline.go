package handlers

import (
	"cmp"
	"slices"
	"time"
)

// dated is something that is looked at when a time has come. The number tells
// apart what has the same time.
type dated interface{ date() (time.Time, int64) }

// timeline is things by their time, the earliest first. What is in one does not
// change its time.
type timeline[T dated] []T

func (l timeline[T]) find(x T) (place int, there bool) {
	return slices.BinarySearchFunc(l, x, byDate[T])
}

func byDate[T dated](a, b T) int {
	at, n := a.date()
	bt, m := b.date()
	return cmp.Or(at.Compare(bt), cmp.Compare(n, m))
}

func (l *timeline[T]) add(x T) {
	if place, there := l.find(x); !there {
		*l = slices.Insert(*l, place, x)
	}
}

func (l *timeline[T]) drop(x T) {
	if place, there := l.find(x); there {
		*l = slices.Delete(*l, place, place+1)
	}
}

// first is the earliest time, counted from the start of this orchestrator: what
// was before that nobody could have heard.
func (l timeline[T]) first(since time.Time) time.Time {
	at, _ := l[0].date()
	if at.Before(since) {
		return since
	}
	return at
}
