package queue

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Urgencies is the number of classes of urgency.
const Urgencies = 4

// A Bucket holds the waiting items that ask the same. They differ only in their order.
type Bucket[T Item, Asks any] struct {
	Asks Asks // of a taker

	key     string
	under   []string // the texts that it asks for
	filed   string   // the one under which it is
	at      int      // its index there
	waiting [Urgencies]List[T]
	size    int
}

// Head returns the next item, or the zero value if none waits.
func (b *Bucket[T, Asks]) Head() (head T) {
	for _, l := range b.waiting {
		if len(l) > 0 {
			return l[0]
		}
	}
	return head
}

// Items returns the waiting items, in order.
func (b *Bucket[T, Asks]) Items() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, l := range b.waiting {
			for _, x := range l {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// A Queue holds waiting items in buckets.
type Queue[T Item, Asks any] struct {
	byKey map[string]*Bucket[T, Asks]
	under map[string][]*Bucket[T, Asks] // those with items
	spare int
}

// New returns an empty Queue that keeps some empty buckets for later items.
func New[T Item, Asks any](spare int) Queue[T, Asks] {
	return Queue[T, Asks]{byKey: make(map[string]*Bucket[T, Asks]), under: make(map[string][]*Bucket[T, Asks]), spare: spare}
}

// AppendKey appends a text to a key, preceded by its length. No length begins with the byte 0xff.
func AppendKey(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

// Find returns the bucket with a key, or nil.
func (q *Queue[T, Asks]) Find(key []byte) *Bucket[T, Asks] { return q.byKey[string(key)] }

// Open adds a bucket of items that ask for some texts. An item must be added to it at once.
func (q *Queue[T, Asks]) Open(key []byte, under []string, asks Asks) *Bucket[T, Asks] {
	b := &Bucket[T, Asks]{Asks: asks, key: string(key), under: under}
	q.byKey[b.key] = b
	return b
}

// Add adds an item to a bucket. It reports whether the bucket was empty.
func (q *Queue[T, Asks]) Add(b *Bucket[T, Asks], x T) (first bool) {
	if first = b.size == 0; first {
		q.file(b)
	}
	b.waiting[x.Urgency()] = b.waiting[x.Urgency()].With(x)
	b.size++
	return first
}

// Remove removes an item from its bucket.
func (q *Queue[T, Asks]) Remove(b *Bucket[T, Asks], x T) {
	b.waiting[x.Urgency()] = b.waiting[x.Urgency()].Without(x)
	if b.size--; b.size == 0 {
		q.unfile(b)
	}
}

// file adds a bucket to the index.
func (q *Queue[T, Asks]) file(b *Bucket[T, Asks]) {
	b.filed = ""
	for i, text := range b.under {
		if i == 0 || len(q.under[text]) < len(q.under[b.filed]) {
			b.filed = text
		}
	}
	b.at = len(q.under[b.filed])
	q.under[b.filed] = append(q.under[b.filed], b)
}

// unfile removes an empty bucket from the index.
func (q *Queue[T, Asks]) unfile(b *Bucket[T, Asks]) {
	beside := q.under[b.filed]
	last := len(beside) - 1
	beside[b.at], beside[last].at = beside[last], b.at
	beside[last] = nil
	if last > 0 {
		q.under[b.filed] = beside[:last]
	} else {
		delete(q.under, b.filed)
	}
	if len(q.byKey) > q.spare {
		delete(q.byKey, b.key)
	}
}

// Under returns the buckets with items that are filed under a text.
func (q *Queue[T, Asks]) Under(text string) []*Bucket[T, Asks] { return q.under[text] }

// Buckets returns all buckets with items, in no order.
func (q *Queue[T, Asks]) Buckets() iter.Seq[*Bucket[T, Asks]] {
	return func(yield func(*Bucket[T, Asks]) bool) {
		for beside := range maps.Values(q.under) {
			for _, b := range beside {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// Len returns the number of buckets, with the empty ones that are kept.
func (q *Queue[T, Asks]) Len() int { return len(q.byKey) }

// Check returns an error if a bucket or an item is not in its place. It is for tests.
func (q *Queue[T, Asks]) Check() error {
	filed := 0
	for text, beside := range q.under {
		if len(beside) == 0 {
			return fmt.Errorf("no bucket is under %q", text)
		}
		filed += len(beside)
		for at, b := range beside {
			switch {
			case b.at != at || b.filed != text:
				return fmt.Errorf("the bucket %q is at %d under %q, not at %d under %q", b.key, at, text, b.at, b.filed)
			case q.byKey[b.key] != b:
				return fmt.Errorf("another bucket has the key %q", b.key)
			case text == "" && len(b.under) > 0 && !slices.Contains(b.under, ""), text != "" && !slices.Contains(b.under, text):
				return fmt.Errorf("the bucket %q does not ask for %q", b.key, text)
			}
			if err := b.check(); err != nil {
				return err
			}
		}
	}
	if len(q.byKey) > filed+q.spare {
		return fmt.Errorf("%d empty buckets are kept, and %d is the maximum", len(q.byKey)-filed, q.spare)
	}
	return nil
}

// check returns an error if the items of a bucket are not in order.
func (b *Bucket[T, Asks]) check() error {
	size := 0
	for urgency, l := range b.waiting {
		size += len(l)
		for i, x := range l {
			if int(x.Urgency()) != urgency || i > 0 && l[i-1].Created() >= x.Created() {
				return fmt.Errorf("the item %d is not in its place in the bucket %q", x.Created(), b.key)
			}
		}
	}
	if size != b.size || size == 0 {
		return fmt.Errorf("the bucket %q has %d items, and counts %d", b.key, size, b.size)
	}
	return nil
}

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

// find returns the index of the item with a number, or where it would be inserted.
func (l List[T]) find(number int64) (at int, there bool) {
	return slices.BinarySearchFunc(l, number, func(o T, created int64) int { return cmp.Compare(o.Created(), created) })
}

// With returns the list with an item added. Usually the item is added at the end.
func (l List[T]) With(x T) List[T] {
	if n := len(l); n == 0 || l[n-1].Created() < x.Created() {
		return append(l, x)
	}
	at, there := l.find(x.Created())
	if there {
		return l
	}
	return slices.Insert(l, at, x)
}

// After returns the items after a number.
func (l List[T]) After(number int64) List[T] {
	at, there := l.find(number)
	if there {
		at++
	}
	return l[at:]
}

// Without returns the list without an item. Usually the item is the first.
func (l List[T]) Without(x T) List[T] {
	var none T
	switch at, there := l.find(x.Created()); {
	case !there:
		return l
	case len(l) == 1:
		l[0] = none
		return l[:0] // the room is for the next one
	case at == 0:
		l[0] = none
		return l[1:]
	case at < len(l)/2: // move the shorter part
		copy(l[1:at+1], l[:at])
		l[0] = none
		return l[1:]
	default:
		return slices.Delete(l, at, at+1)
	}
}

// A Timed is an item with a due time. The number breaks ties.
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

// A Set is a list of texts without duplicates, in the order of insertion. It may be as
// long as a line, so a long one has a map.
type Set struct {
	Texts []string
	known map[string]struct{} // nil while they are few
}

const few = 16

// Add adds a text if it is new.
func (o *Set) Add(text string) {
	if o.known == nil && len(o.Texts) < few {
		if !slices.Contains(o.Texts, text) {
			o.Texts = append(o.Texts, text)
		}
		return
	}
	if o.known == nil {
		o.known = make(map[string]struct{})
		for _, t := range o.Texts {
			o.known[t] = struct{}{}
		}
	}
	if _, known := o.known[text]; !known {
		o.known[text] = struct{}{}
		o.Texts = append(o.Texts, text)
	}
}
