package graph

import (
	"cmp"
	"iter"
	"slices"
)

// ledger is all dependencies in the order of their numbers. Those of a node
// are in that order too, but to look through them for one costs as much as
// there are: for a node that waits for a million, a million times a million in
// all.
type ledger struct {
	entries []entry
	struck  int // entries of what has been removed
	last    int64
}

type entry struct {
	number int64
	edge   Edge
}

// crumbs are how many entries of removed dependencies are worth no clearing up.
const crumbs = 64

func (l *ledger) enter(number int64, e Edge) {
	l.entries = append(l.entries, entry{number: number, edge: e})
	l.last = number
}

// strike counts an entry whose dependency is removed. They are cleared up when
// they are the greater part.
func (l *ledger) strike(stamps []stamp) {
	l.struck++
	if l.struck > crumbs && l.struck > len(l.entries)/2 {
		l.entries = slices.DeleteFunc(l.entries, func(y entry) bool { return !y.stands(stamps) })
		l.struck = 0
	}
}

// stands reports whether a dependency is not removed. Another one may have got its
// edge, but not its number.
func (y entry) stands(stamps []stamp) bool { return stamps[y.edge].number == y.number }

// Numbered finds the dependency of a node that has a number.
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

// All is every dependency in the order of creation, as Put wants them. Nothing
// may be removed meanwhile.
func (g *Graph) All() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for _, y := range g.ledger.entries {
			if y.stands(g.stamps) && !yield(y.edge) {
				return
			}
		}
	}
}

// Last is the latest number that was given, 0 if none was. What had it may have
// been removed.
func (g *Graph) Last() int64 { return g.ledger.last }

// Skip lets no number up to this one be given. With Last of the Graph that a
// snapshot is of, numbers go on where they were.
func (g *Graph) Skip(to int64) { g.ledger.last = max(g.ledger.last, to) }
