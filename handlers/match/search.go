package match

import (
	"math/bits"
	"slices"
)

// question is a demand to check against every agent, with its values looked up once.
type question struct {
	index                                *Index
	repo                                 []wish // one, or none
	languages, environments, tools, tags []wish
	prefer                               string
}

// wish is a value of a demand, with its holders.
type wish struct {
	text        string
	here, there *holders // in general, or in the repo
}

func (w *wish) met(slot int32) bool { return w.here.has(slot) || w.there.has(slot) }

func (x *Index) ask(d *Demand) *question {
	q := &question{
		index:        x,
		languages:    x.wishes(ofLanguage, d.Languages),
		environments: x.wishes(ofEnvironment, d.Environments),
		tools:        x.wishes(ofTool, d.Tools),
		tags:         x.wishes(ofTag, d.Tags),
		prefer:       d.Prefer,
	}
	if d.Repo == "" {
		return q
	}
	q.repo = x.wishes(ofRepo, []string{d.Repo})
	for i := range q.tools {
		w := &q.tools[i]
		w.there = x.by[value{kind: ofRepoTool, repo: d.Repo, text: w.text}]
	}
	return q
}

// wishes looks up texts without duplicates, in the order of the demand.
func (x *Index) wishes(k kind, texts []string) []wish {
	wishes := make([]wish, 0, len(texts))
	seen := make(map[string]bool, len(texts))
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			wishes = append(wishes, wish{text: text, here: x.by[value{kind: k, text: text}]})
		}
	}
	return wishes
}

// texts returns the texts of wishes.
func texts(wishes []wish) []string {
	texts := make([]string, 0, len(wishes))
	for i := range wishes {
		texts = append(texts, wishes[i].text)
	}
	return texts
}

// met returns the texts of the wishes that an agent meets.
func met(wishes []wish, slot int32) []string {
	texts := make([]string, 0, len(wishes))
	for i := range wishes {
		if wishes[i].met(slot) {
			texts = append(texts, wishes[i].text)
		}
	}
	return texts
}

// search is the state of one search for the best agent. Its slices are reused.
//
// It processes one set after the other, not one agent or word after the other. Each step is a
// plain loop over words with predictable branches, which was measured to be several times
// faster.
type search struct {
	number int      // number of this search, to detect repeated values
	lead   []cell   // holders of the rarest needed value, if any is needed
	all    [][]cell // holders of each other needed value
	any    [][]cell // holders of each value of a group; one value is enough
	anyOf  bool     // whether one of any is needed
	soft   []soft
	prefer [1]cell // the preferred agent, as a set

	among []cell   // candidates
	held  []uint64 // candidates that hold the current value, cell by cell
	carry []uint64 // carry from one bit of the sums to the next
	sums  []uint64
}

// soft is a soft demand and its holders.
type soft struct {
	here, there []cell // in general, or in the repo
	weight      uint   // in units
}

// Best returns the agent that fits best, and its score.
func (x *Index) Best(d *Demand, c Conditions) (name string, score int, ok bool) {
	s := &x.search
	s.begin()
	if !x.need(d) || !x.qualify(c) {
		return "", 0, false
	}
	x.want(d)
	s.addUp(x.words)
	units := s.narrow()
	x.settle()
	slot := x.order[s.choose(x.keys)&rankOfKey]
	return x.agents[slot].name, d.base() + unit*units, true
}

// base returns the points that every qualified agent has.
func (d *Demand) base() int {
	points := capacityPoints
	if d.Repo != "" {
		points += repoPoints
	}
	if len(d.Languages) > 0 {
		points += languagePoints
	}
	if len(d.Environments) > 0 {
		points += environmentPoints
	}
	return points
}

func (s *search) begin() {
	s.number++
	s.lead, s.anyOf = nil, false
	s.all, s.any, s.soft, s.among = s.all[:0], s.any[:0], s.soft[:0], s.among[:0]
}

// need collects the hard demands. It returns false if a value has no holder.
func (x *Index) need(d *Demand) bool {
	s := &x.search
	if d.Repo != "" && !s.needs(x.by[value{kind: ofRepo, text: d.Repo}]) {
		return false
	}
	for _, text := range d.Languages {
		if !s.needs(x.by[value{kind: ofLanguage, text: text}]) {
			return false
		}
	}
	for _, text := range d.Environments {
		if h := x.by[value{kind: ofEnvironment, text: text}]; s.fresh(h) {
			s.any = append(s.any, h.cells)
		}
	}
	s.anyOf = len(d.Environments) > 0
	return !s.anyOf || len(s.any) > 0
}

// needs adds a value that the agent must hold. It returns false if the value has no holder.
func (s *search) needs(h *holders) bool {
	if !s.fresh(h) {
		return h != nil
	}
	cells := h.cells
	if s.lead == nil {
		s.lead = cells
		return true
	}
	if len(cells) < len(s.lead) {
		cells, s.lead = s.lead, cells
	}
	s.all = append(s.all, cells)
	return true
}

// fresh reports whether a value has a holder and was not yet used in this search.
func (s *search) fresh(h *holders) bool {
	if h == nil || h.asked == s.number {
		return false
	}
	h.asked = s.number
	return true
}

// want collects the soft demands.
func (x *Index) want(d *Demand) {
	s := &x.search
	for _, text := range d.Tools {
		w := soft{weight: toolPoints / unit}
		if h := x.by[value{kind: ofTool, text: text}]; s.fresh(h) {
			w.here = h.cells
		}
		if h := x.by[value{kind: ofRepoTool, repo: d.Repo, text: text}]; d.Repo != "" && s.fresh(h) {
			w.there = h.cells
		}
		if w.here != nil || w.there != nil {
			s.soft = append(s.soft, w)
		}
	}
	for _, text := range d.Tags {
		if h := x.by[value{kind: ofTag, text: text}]; s.fresh(h) {
			s.soft = append(s.soft, soft{here: h.cells, weight: tagPoints / unit})
		}
	}
	if s.prefer[0] = x.cell(d.Prefer); s.prefer[0].bits != 0 {
		s.soft = append(s.soft, soft{here: s.prefer[:], weight: preferPoints / unit})
	}
}

// addUp adds up the soft points. sums holds one bit of all sums after the other, with one word
// for each candidate cell.
func (s *search) addUp(words []word) {
	s.sums = s.sums[:0]
	s.blank()
	for i, c := range s.among {
		s.held[i] = words[c.word].online
	}
	s.add(onlinePoints / unit)
	for i := range s.soft {
		s.blank()
		s.gather(s.soft[i].here)
		s.gather(s.soft[i].there)
		s.add(s.soft[i].weight)
	}
}

// add adds a weight to the sums of the agents in held.
func (s *search) add(weight uint) {
	for ; weight != 0; weight &= weight - 1 {
		s.carry = append(s.carry[:0], s.held...)
		s.addFrom(bits.TrailingZeros(weight))
	}
}

// addFrom adds carry to a bit of the sums and propagates the carries. It adds bits as needed.
func (s *search) addFrom(bit int) {
	n := len(s.carry)
	for carries := true; carries; bit++ {
		if missing := (bit+1)*n - len(s.sums); missing > 0 {
			s.sums = extended(s.sums, missing)
		}
		carries = addBit(s.sums[bit*n:(bit+1)*n], s.carry)
	}
}

func addBit(sum, carry []uint64) bool {
	var carries uint64
	carry = carry[:len(sum)]
	for i, c := range carry {
		both := sum[i] & c
		sum[i] ^= c
		carry[i] = both
		carries |= both
	}
	return carries != 0
}

// narrow keeps only the candidates with the highest sum, and returns the sum. It goes from the
// highest bit to the lowest.
func (s *search) narrow() (units int) {
	n := len(s.among)
	for end := len(s.sums); end > 0; end -= n {
		units <<= 1
		if bit := s.sums[end-n : end]; s.anyWith(bit) {
			units++
			for i := range bit {
				s.among[i].bits &= bit[i]
			}
		}
	}
	return units
}

func (s *search) anyWith(bit []uint64) bool {
	var with uint64
	for i, c := range s.among[:len(bit)] {
		with |= c.bits & bit[i]
	}
	return with != 0
}

// choose returns the smallest key of the candidates.
func (s *search) choose(keys [][64]uint64) uint64 {
	least := uint64(noKey)
	for _, c := range s.among {
		of := &keys[c.word]
		switch n := bits.OnesCount64(c.bits); {
		case n < few:
			least = min(least, leastOfFew(of, c.bits))
		case n < len(of):
			least = min(least, leastOfMany(of, c.bits))
		default:
			least = min(least, slices.Min(of[:]))
		}
	}
	return least
}

// few is a number of set bits: from it on, a scan of all 64 is faster, as measured.
const few = 20

func leastOfFew(keys *[64]uint64, left uint64) uint64 {
	least := uint64(noKey)
	for ; left != 0; left &= left - 1 {
		least = min(least, keys[bits.TrailingZeros64(left)&63])
	}
	return least
}

// leastOfMany avoids branches, which would often be mispredicted: it makes the keys of other
// agents too large.
func leastOfMany(keys *[64]uint64, left uint64) uint64 {
	least := uint64(noKey)
	for _, key := range keys {
		least = min(least, key|(left&1-1))
		left >>= 1
	}
	return least
}

// extended returns a slice with n more words, all 0.
func extended(words []uint64, n int) []uint64 {
	had := len(words)
	words = slices.Grow(words, n)[:had+n]
	clear(words[had:])
	return words
}
