package match

// search is one look for the best. Its slices are kept for the next one.
//
// It goes set by set and not agent by agent, nor even word by word: each step is
// a plain loop over words in which hardly a branch is guessed wrong, which was
// several times as fast as doing all of it for one word and then for the next.
type search struct {
	number int      // of all searches, to tell what this one has asked for
	lead   []cell   // those who hold the needed value that the fewest hold, if any is needed
	all    [][]cell // those who hold each other value that is needed
	any    [][]cell // those who hold one of which any will do
	anyOf  bool     // whether there are such
	soft   []soft
	prefer [1]cell // the preferred agent, as a set

	among []cell   // who can still be the best
	held  []uint64 // who of them hold what is looked at, cell by cell
	carry []uint64 // from one bit of the sums to the next
	sums  []uint64
}

// soft is something that adds points, and those who hold it.
type soft struct {
	here, there []cell // for themselves, or in the repo
	weight      uint   // in units
}

// Best finds the agent that fits best, and its score.
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

// base are the points of every agent that qualifies.
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

// need gathers what is hard, and reports whether an agent holds each of it.
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

// needs adds a value that every agent must hold, and reports whether one does.
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

// fresh reports whether an agent holds a value and this search has not asked for it
// before.
func (s *search) fresh(h *holders) bool {
	if h == nil || h.asked == s.number {
		return false
	}
	h.asked = s.number
	return true
}

// want gathers what is soft.
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
