package graph

import (
	"cmp"
	"iter"
	"slices"
)

// ledger lists all dependencies by number, for binary search. A search in the list of a node
// would be quadratic in total for a node that waits for a million others.
type ledger struct {
	entries []entry
	struck  int // entries of removed dependencies
	last    int64
}

type entry struct {
	number int64
	edge   Edge
}

// crumbs is the number of unused entries that are not worth removing.
const crumbs = 64

func (l *ledger) enter(number int64, e Edge) {
	l.entries = append(l.entries, entry{number: number, edge: e})
	l.last = number
}

// strike counts the entry of a removed dependency. The entries are removed when they are the
// majority.
func (l *ledger) strike(stamps []stamp) {
	l.struck++
	if l.struck > crumbs && l.struck > len(l.entries)/2 {
		l.entries = slices.DeleteFunc(l.entries, func(y entry) bool { return !y.stands(stamps) })
		l.struck = 0
	}
}

// stands reports whether a dependency still exists. Another one may have its edge, but not its
// number.
func (e entry) stands(stamps []stamp) bool { return stamps[e.edge].number == e.number }

// Numbered returns the dependency of a node with a number.
func (g *Graph) Numbered(down Node, number int64) (Edge, bool) {
	at, there := slices.BinarySearchFunc(g.ledger.entries, number, func(y entry, n int64) int { return cmp.Compare(y.number, n) })
	if !there {
		return none, false
	}
	y := g.ledger.entries[at]
	if !y.stands(g.stamps) || g.edges[y.edge].ends[needs] != down {
		return none, false
	}
	return y.edge, true
}

// All iterates over all dependencies in the order of creation, as Put needs them. The loop must not
// remove dependencies.
func (g *Graph) All() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for _, y := range g.ledger.entries {
			if y.stands(g.stamps) && !yield(y.edge) {
				return
			}
		}
	}
}

// Last returns the latest number given, or 0. Its dependency may have been removed.
func (g *Graph) Last() int64 { return g.ledger.last }

// Skip reserves all numbers up to this one. After a snapshot is restored, pass it the Last of
// the original Graph.
func (g *Graph) Skip(to int64) { g.ledger.last = max(g.ledger.last, to) }

// keys holds the keys of dependencies. They are separate because few dependencies have one, and
// because the garbage collector does not scan edges without pointers.
type keys struct {
	texts []string // the first is "", for dependencies without a key
	spare []int32  // places that are free again
}

func newKeys() keys { return keys{texts: []string{""}} }

func (k *keys) at(place int32) string { return k.texts[place] }

// keep stores a key and returns its place.
func (k *keys) keep(key string) int32 {
	if key == "" {
		return 0
	}
	if last := len(k.spare) - 1; last >= 0 {
		place := k.spare[last]
		k.spare = k.spare[:last]
		k.texts[place] = key
		return place
	}
	k.texts = append(k.texts, key)
	return int32(len(k.texts) - 1)
}

// drop forgets the key at a place.
func (k *keys) drop(place int32) {
	if place > 0 {
		k.texts[place] = ""
		k.spare = append(k.spare, place)
	}
}
