package queue

import (
	"cmp"
	"slices"
)

// An Item can wait. The urgency 0 is first. No two items have the same number.
type Item interface {
	comparable
	Urgency() uint8
	Created() int64 // its number, which grows with each item
}

// Before reports whether an item comes before another.
func Before[T Item](a, b T) bool { return Compare(a, b) < 0 }

// Compare orders items by urgency, then by creation.
func Compare[T Item](a, b T) int {
	return cmp.Or(cmp.Compare(a.Urgency(), b.Urgency()), cmp.Compare(a.Created(), b.Created()))
}

// A List is a list of items in the order of their creation.
type List[T Item] []T

// find returns the index of an item in the list, or where it would be inserted.
func (l List[T]) find(x T) (at int, there bool) {
	return slices.BinarySearchFunc(l, x.Created(), func(o T, created int64) int { return cmp.Compare(o.Created(), created) })
}

// With returns the list with an item added. Usually the item is added at the end.
func (l List[T]) With(x T) List[T] {
	if n := len(l); n == 0 || l[n-1].Created() < x.Created() {
		return append(l, x)
	}
	at, there := l.find(x)
	if there {
		return l
	}
	return slices.Insert(l, at, x)
}

// After returns the items after one.
func (l List[T]) After(x T) List[T] {
	at, there := l.find(x)
	if there {
		at++
	}
	return l[at:]
}

// Without returns the list without an item. Usually the item is the first.
func (l List[T]) Without(x T) List[T] {
	var none T
	switch at, there := l.find(x); {
	case !there:
		return l
	case len(l) == 1:
		l[0] = none
		return l[:0] // the room is for the next one
	case at == 0:
		l[0] = none
		return l[1:]
	default:
		return slices.Delete(l, at, at+1)
	}
}
