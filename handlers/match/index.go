package match

import (
	"cmp"
	"slices"
	"strings"
)

// An Index holds the agents and their offers. Only one goroutine may use it at a time, even for
// queries, because they share buffers.
type Index struct {
	slots map[string]int32
	spare []int32 // unused slots
	by    map[value]*holders

	agents []agent      // by slot
	words  []word       // by slot, 64 to each
	keys   [][64]uint64 // by word and slot: the load, then the rank of the name; less is better

	order  []int32 // slots by name
	ranked int     // length of the prefix of order that has its ranks in keys

	search search
}

// agent is a known agent, or an unused slot.
type agent struct {
	name     string
	standing Standing
	offers   []*holders // the holders of its values
}

// word holds the facts about 64 agents that every search needs.
type word struct {
	offering uint64 // anything at all
	room     uint64 // for another task to run
	free     uint64 // for another task to be given
	online   uint64
}

const (
	maxLoad   = 1<<31 - 1 // the largest load that is distinguished
	rankOfKey = 1<<32 - 1 // the bits of it
	noKey     = 1<<64 - 1 // is less than this
)

// New returns an empty Index.
func New() *Index {
	return &Index{slots: make(map[string]int32), by: make(map[value]*holders)}
}

// Put adds an agent or replaces its offer. It keeps no references to the offer.
func (x *Index) Put(name string, o Offer, s Standing) {
	slot, known := x.slots[name]
	if known {
		x.leave(slot)
	} else {
		slot = x.admit(name)
	}
	at, bit := place(slot)
	set(&x.words[at].offering, bit, !o.Empty())
	x.join(slot, &o)
	x.stand(slot, s)
}

// Stand updates the standing of an agent. Unknown agents are ignored.
func (x *Index) Stand(name string, s Standing) {
	if slot, known := x.slots[name]; known {
		x.stand(slot, s)
	}
}

func (x *Index) stand(slot int32, s Standing) {
	x.agents[slot].standing = s
	at, bit := place(slot)
	w := &x.words[at]
	set(&w.room, bit, s.Running < s.Capacity)
	set(&w.free, bit, s.Load < s.Capacity)
	set(&w.online, bit, s.Online)
	load := uint64(min(max(s.Load, 0), maxLoad))
	key := x.key(slot)
	*key = load<<32 | *key&rankOfKey
}

func (x *Index) key(slot int32) *uint64 { return &x.keys[slot>>6][slot&63] }

func set(bits *uint64, bit uint64, on bool) {
	*bits &^= bit
	if on {
		*bits |= bit
	}
}

// Remove removes an agent.
func (x *Index) Remove(name string) {
	slot, known := x.slots[name]
	if !known {
		return
	}
	x.leave(slot)
	delete(x.slots, name)
	rank, _ := x.rank(name)
	x.order = slices.Delete(x.order, rank, rank+1)
	x.ranked = min(x.ranked, rank)
	at, bit := place(slot)
	x.words[at].offering &^= bit
	x.agents[slot] = agent{}
	x.spare = append(x.spare, slot)
}

// admit gives a slot to a new name.
func (x *Index) admit(name string) int32 {
	slot := int32(len(x.agents))
	if last := len(x.spare) - 1; last >= 0 {
		slot, x.spare = x.spare[last], x.spare[:last]
	} else {
		x.agents = append(x.agents, agent{})
		if slot&63 == 0 {
			x.words = append(x.words, word{})
			x.keys = append(x.keys, [64]uint64{})
		}
	}
	x.agents[slot].name = name
	x.slots[name] = slot
	rank, _ := x.rank(name)
	x.order = slices.Insert(x.order, rank, slot)
	x.ranked = min(x.ranked, rank)
	return slot
}

// rank returns the position of a name in order, or where to insert it.
func (x *Index) rank(name string) (int, bool) {
	return slices.BinarySearchFunc(x.order, name, func(slot int32, name string) int {
		return strings.Compare(x.agents[slot].name, name)
	})
}

// settle updates the ranks in keys after changes of the agents. It is called by searches,
// because agents often change in groups.
func (x *Index) settle() {
	for rank := x.ranked; rank < len(x.order); rank++ {
		key := x.key(x.order[rank])
		*key = *key&^rankOfKey | uint64(rank)
	}
	x.ranked = len(x.order)
}

// join adds an agent to the holders of everything that it offers.
func (x *Index) join(slot int32, o *Offer) {
	for i := range o.Repos {
		r := &o.Repos[i]
		x.hold(slot, value{kind: ofRepo, text: r.Name})
		x.holdAll(slot, ofLanguage, "", r.Languages)
		x.holdAll(slot, ofRepoTool, r.Name, r.Tools)
	}
	x.holdAll(slot, ofLanguage, "", o.Languages)
	x.holdAll(slot, ofEnvironment, "", o.Environments)
	x.holdAll(slot, ofTool, "", o.Tools)
	x.holdAll(slot, ofTag, "", o.Tags)
}

func (x *Index) holdAll(slot int32, k kind, repo string, texts []string) {
	for _, text := range texts {
		x.hold(slot, value{kind: k, repo: repo, text: text})
	}
}

func (x *Index) hold(slot int32, v value) {
	h := x.by[v]
	if h == nil {
		h = &holders{of: v}
		x.by[v] = h
	}
	if h.add(slot) {
		a := &x.agents[slot]
		a.offers = append(a.offers, h)
	}
}

// leave removes an agent from its holders, and removes holders that become empty.
func (x *Index) leave(slot int32) {
	a := &x.agents[slot]
	for _, h := range a.offers {
		h.drop(slot)
		if len(h.cells) == 0 {
			delete(x.by, h.of)
		}
	}
	clear(a.offers)
	a.offers = a.offers[:0]
}

// Offer lists the skills of an agent.
type Offer struct {
	Repos                                []Repo
	Languages, Environments, Tools, Tags []string
}

// Repo is a repository of an agent, with the agent's skills in it.
type Repo struct {
	Name             string
	Languages, Tools []string
}

// Empty reports whether an offer has no values, so that it fits no demand.
func (o *Offer) Empty() bool {
	return len(o.Repos) == 0 && len(o.Languages) == 0 && len(o.Environments) == 0 && len(o.Tools) == 0 && len(o.Tags) == 0
}

// Demand lists the requirements of a task on its agent. Prefer is the name of an agent.
type Demand struct {
	Repo                                 string
	Languages, Environments, Tools, Tags []string
	Prefer                               string
}

// Standing is the changing state of an agent. Running counts against its capacity. Load
// includes tasks that have not begun and breaks ties.
type Standing struct {
	Online                  bool
	Running, Capacity, Load int
}

// Conditions restrict a search.
type Conditions struct {
	Online bool   // only agents that are online
	Free   bool   // only agents with less load than capacity
	Not    string // never this agent
}

// Points; see the package documentation.
const (
	disqualified      = -1
	repoPoints        = 100
	languagePoints    = 50
	environmentPoints = 30
	toolPoints        = 10
	tagPoints         = 5
	preferPoints      = 200
	onlinePoints      = 25
	capacityPoints    = 50

	// unit divides all soft points, so that sums of them have fewer bits.
	unit = 5
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

// value is a text that agents offer and tasks demand.
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
