package match

import (
	"cmp"
	"slices"
)

// kind is the kind of a value: the same text may be a tool and a tag.
type kind uint8

const (
	ofRepo kind = iota
	ofLanguage
	ofEnvironment
	ofTool
	ofRepoTool // a tool in one repo
	ofTag
)

// value is something that agents offer and tasks demand.
type value struct {
	kind kind
	repo string // of a tool in a repo
	text string
}

// holders is the set of agents that offer a value.
type holders struct {
	of    value
	cells []cell // by word
	asked int    // the search that has last asked for the value
}

// cell is one word of a set of slots. A set has only non-empty cells, because most values are
// held by few agents.
type cell struct {
	word int32
	bits uint64
}

// place returns the position of a slot in a set.
func place(slot int32) (word int32, bit uint64) {
	return slot >> 6, 1 << (slot & 63)
}

// find returns the index of the cell of a word, or where to insert it.
func (h *holders) find(word int32) (at int, there bool) {
	return slices.BinarySearchFunc(h.cells, word, byWord)
}

func byWord(c cell, word int32) int { return cmp.Compare(c.word, word) }

func (h *holders) has(slot int32) bool {
	if h == nil {
		return false
	}
	word, bit := place(slot)
	at, there := h.find(word)
	return there && h.cells[at].bits&bit != 0
}

// add adds a slot and reports whether it is new.
func (h *holders) add(slot int32) bool {
	word, bit := place(slot)
	at, there := h.find(word)
	if !there {
		h.cells = slices.Insert(h.cells, at, cell{word: word})
	}
	old := h.cells[at].bits
	h.cells[at].bits |= bit
	return old&bit == 0
}

// drop removes a slot of the set.
func (h *holders) drop(slot int32) {
	word, bit := place(slot)
	at, _ := h.find(word)
	h.cells[at].bits &^= bit
	if h.cells[at].bits == 0 {
		h.cells = slices.Delete(h.cells, at, at+1)
	}
}

// seek returns the first cell from at on that is not before a word. It first tries the next few
// cells, because the result is usually near.
func seek(cells []cell, at int, word int32) int {
	for range 8 {
		if at >= len(cells) || cells[at].word >= word {
			return at
		}
		at++
	}
	further, _ := slices.BinarySearchFunc(cells[at:], word, byWord)
	return at + further
}
