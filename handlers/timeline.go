package handlers

import (
	"cmp"
	"slices"
	"time"
)

// byTime is something that is looked at when a time has come. The number tells
// apart what has the same time.
type byTime interface{ date() (time.Time, int64) }

// timeOrder is things by their time, the earliest first. What is in one does not
// change its time.
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

// first is the earliest time, counted from the start of this orchestrator: what
// was before that could not be heard.
func (l timeOrder[T]) first(since time.Time) time.Time {
	at, _ := l[0].date()
	if at.Before(since) {
		return since
	}
	return at
}
