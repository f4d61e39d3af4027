package match

import (
	"cmp"
	"slices"
)

// kind records what a value is: the same text may be a tool and a tag.
type kind uint8

const (
	ofRepo kind = iota
	ofLanguage
	ofEnvironment
	ofTool
	ofRepoTool // a tool that is there in one repo
	ofTag
)

// value is something that agents offer and tasks demand.
type value struct {
	kind kind
	repo string // of a tool in a repo
	text string
}

// holders are the agents that offer a value.
type holders struct {
	of    value
	cells []cell // by word
	asked int    // the search that has last asked for the value
}

// cell is one word of a set of slots. A set has cells only for words in which
// there are any: most values are held by few agents.
type cell struct {
	word int32
	bits uint64
}

// place is where a slot is in a set.
func place(slot int32) (word int32, bit uint64) {
	return slot >> 6, 1 << (slot & 63)
}

// find is the cell of a word, or where it would be.
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

// add reports whether the slot is new.
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

// drop takes out a slot that is there.
func (h *holders) drop(slot int32) {
	word, bit := place(slot)
	at, _ := h.find(word)
	h.cells[at].bits &^= bit
	if h.cells[at].bits == 0 {
		h.cells = slices.Delete(h.cells, at, at+1)
	}
}

// seek is the first cell from one on that is not before a word. Mostly it is
// near, but where another set has a wide gap, it is far.
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
