package handlers

import (
	"cmp"
	"slices"
)

// A taskList is a list of tasks in the order of their creation.
type taskList []*task

// find returns the index of a task in the list, or where it would be inserted.
func (l taskList) find(k *task) (at int, there bool) {
	return slices.BinarySearchFunc(l, k.created, func(o *task, created int64) int { return cmp.Compare(o.created, created) })
}

// with returns the list with a task added. Usually the task is added at the end.
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

// without returns the list without a task. Usually the task is the first.
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
