package match

// search is the state of one search for the best agent. Its slices are reused.
//
// It processes one set after the other, not one agent or word after the other. Each step is a
// plain loop over words with predictable branches, which was measured to be several times
// faster.
type search struct {
	number int      // number of this search, to detect repeated values
	lead   []cell   // holders of the rarest needed value, if any is needed
	all    [][]cell // holders of each other needed value
	any    [][]cell // holders of each value of which one is enough
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
