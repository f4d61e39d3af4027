package handlers

import (
	"cmp"
	"slices"
)

// taskList is tasks in the order of their creation.
type taskList []*task

// find says where a task stands, or would.
func (l taskList) find(k *task) (at int, there bool) {
	return slices.BinarySearchFunc(l, k.created, func(o *task, created int64) int { return cmp.Compare(o.created, created) })
}

// with is the line with a task in its place. Nearly always that is the end.
func (l taskList) with(k *task) taskList {
	if n := len(l); n == 0 || l[n-1].created < k.created {
		return append(l, k)
	}
	at, there := l.find(k)
	if there {
		return l
	}
	return slices.Insert(l, at, k)
}

// after returns the tasks after one.
func (l taskList) after(k *task) taskList {
	at, there := l.find(k)
	if there {
		at++
	}
	return l[at:]
}

// without is the line without a task. Nearly always it is the first.
func (l taskList) without(k *task) taskList {
	switch at, there := l.find(k); {
	case !there:
		return l
	case len(l) == 1:
		l[0] = nil
		return l[:0] // the room is for the next one
	case at == 0:
		l[0] = nil
		return l[1:]
	default:
		return slices.Delete(l, at, at+1)
	}
}
