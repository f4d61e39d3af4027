package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Verdict describes how an agent fits a demand. A disqualified agent has the score -1, and the
// reasons list its missing values.
type Verdict struct {
	Name    string
	Score   int
	Online  bool
	Reasons []string
}

// Fits reports whether an agent qualifies under the conditions. It is cheaper than Verdict.
func (x *Index) Fits(d *Demand, name string, c Conditions) bool {
	slot, known := x.slots[name]
	if !known || c.Not != "" && name == c.Not {
		return false
	}
	at, bit := place(slot)
	w := x.words[at]
	return w.offering&w.room&bit != 0 &&
		(!c.Online || w.online&bit != 0) &&
		(!c.Free || w.free&bit != 0) &&
		x.qualifies(slot, d)
}

// qualifies reports whether an agent meets all hard demands.
func (x *Index) qualifies(slot int32, d *Demand) bool {
	if d.Repo != "" && !x.by[value{kind: ofRepo, text: d.Repo}].has(slot) {
		return false
	}
	for _, text := range d.Languages {
		if !x.by[value{kind: ofLanguage, text: text}].has(slot) {
			return false
		}
	}
	for _, text := range d.Environments {
		if x.by[value{kind: ofEnvironment, text: text}].has(slot) {
			return true
		}
	}
	return len(d.Environments) == 0
}

// Verdict returns the verdict on one agent. An unknown agent has no offer.
func (x *Index) Verdict(d *Demand, name string) Verdict {
	slot, known := x.slots[name]
	if !known {
		return Verdict{Name: name, Score: disqualified, Reasons: []string{offersNothing}}
	}
	return x.ask(d).verdict(slot)
}

// Lacks returns the hard demands that a known agent does not meet. Its capacity does not count.
func (x *Index) Lacks(d *Demand, name string) []string {
	slot, known := x.slots[name]
	if !known {
		return []string{offersNothing}
	}
	return x.ask(d).lacks(slot)
}

// Verdicts returns the verdicts on all agents, sorted by descending score, then by name.
func (x *Index) Verdicts(d *Demand) []Verdict {
	q := x.ask(d)
	all := make([]Verdict, 0, len(x.order))
	for _, slot := range x.order {
		all = append(all, q.verdict(slot))
	}
	slices.SortStableFunc(all, func(a, b Verdict) int { return cmp.Compare(b.Score, a.Score) })
	return all
}

const offersNothing = "no capabilities defined (disqualified)"

// verdict returns the verdict on one agent.
func (q *question) verdict(slot int32) Verdict {
	a := &q.index.agents[slot]
	v := Verdict{Name: a.name, Online: a.standing.Online}
	if v.Reasons = q.against(slot, a); len(v.Reasons) > 0 {
		v.Score = disqualified
		return v
	}
	q.hard(&v, slot)
	q.soft(&v, slot)
	return v
}

// against returns the reasons that disqualify an agent.
func (q *question) against(slot int32, a *agent) (reasons []string) {
	if at, bit := place(slot); q.index.words[at].offering&bit == 0 {
		return []string{offersNothing}
	}
	for _, reason := range q.lacks(slot) {
		reasons = append(reasons, reason+" (disqualified)")
	}
	if s := a.standing; s.Running >= s.Capacity {
		reasons = append(reasons, fmt.Sprintf("at capacity: %d/%d (disqualified)", s.Running, s.Capacity))
	}
	return reasons
}

// lacks returns the hard demands that an agent does not meet.
func (q *question) lacks(slot int32) (lacks []string) {
	for _, w := range q.repo {
		if !w.met(slot) {
			lacks = append(lacks, "missing repo: "+w.text)
		}
	}
	for _, w := range q.languages {
		if !w.met(slot) {
			lacks = append(lacks, "missing language: "+w.text)
		}
	}
	if len(q.environments) > 0 && len(met(q.environments, slot)) == 0 {
		lacks = append(lacks, "no matching environment: "+strings.Join(texts(q.environments), ", "))
	}
	return lacks
}

// hard adds the points for hard demands, which the agent meets. Of the environments, one is
// enough.
func (q *question) hard(v *Verdict, slot int32) {
	if len(q.repo) > 0 {
		v.add("repo match", texts(q.repo), repoPoints)
	}
	if len(q.languages) > 0 {
		v.add("language match", texts(q.languages), languagePoints)
	}
	if len(q.environments) > 0 {
		v.add("environment match", met(q.environments, slot), environmentPoints)
	}
}

// soft adds the points for soft demands and for the standing of the agent.
func (q *question) soft(v *Verdict, slot int32) {
	if tools := met(q.tools, slot); len(tools) > 0 {
		v.add("tools match", tools, toolPoints*len(tools))
	}
	if tags := met(q.tags, slot); len(tags) > 0 {
		v.add("tags match", tags, tagPoints*len(tags))
	}
	if q.prefer != "" && v.Name == q.prefer {
		v.add("preferred server", nil, preferPoints)
	}
	if v.Online {
		v.add("online", nil, onlinePoints)
	}
	v.add("has capacity", nil, capacityPoints)
}

// add adds points and the reason for them.
func (v *Verdict) add(reason string, which []string, points int) {
	if len(which) > 0 {
		reason += ": " + strings.Join(which, ", ")
	}
	v.Score += points
	v.Reasons = append(v.Reasons, fmt.Sprintf("%s (+%d)", reason, points))
}

// qualify keeps the candidates that meet all hard demands, and reports whether any is left.
func (x *Index) qualify(c Conditions) bool {
	s := &x.search
	s.start(x.words, c, x.cell(c.Not))
	for _, cells := range s.all {
		s.blank()
		s.gather(cells)
		s.keep()
	}
	if s.anyOf {
		s.blank()
		for _, cells := range s.any {
			s.gather(cells)
		}
		s.keep()
	}
	return len(s.among) > 0
}

// cell returns the set of one agent. The set of an unknown agent is empty.
func (x *Index) cell(name string) cell {
	slot, known := x.slots[name]
	if name == "" || !known {
		return cell{word: -1}
	}
	word, bit := place(slot)
	return cell{word: word, bits: bit}
}

// start sets the candidates to the holders of the rarest needed value, or to all agents.
func (s *search) start(words []word, c Conditions, not cell) {
	if s.lead == nil {
		for at := range words {
			s.consider(cell{word: int32(at), bits: words[at].ready(c)}, not)
		}
		return
	}
	for _, l := range s.lead {
		s.consider(cell{word: l.word, bits: l.bits & words[l.word].ready(c)}, not)
	}
}

func (s *search) consider(c, not cell) {
	if c.word == not.word {
		c.bits &^= not.bits
	}
	if c.bits != 0 {
		s.among = append(s.among, c)
	}
}

// ready returns the agents that may get a task at all.
func (w *word) ready(c Conditions) uint64 {
	bits := w.offering & w.room
	if c.Online {
		bits &= w.online
	}
	if c.Free {
		bits &= w.free
	}
	return bits
}

// gather adds the holders of a value to held.
func (s *search) gather(cells []cell) {
	among, held := s.among, s.held
	for i, j := 0, 0; i < len(among) && i < len(held) && j < len(cells); {
		switch here, there := among[i].word, cells[j].word; {
		case here == there:
			held[i] |= cells[j].bits
			i++
			j++
		case here < there:
			i = seek(among, i+1, there)
		default:
			j = seek(cells, j+1, here)
		}
	}
}

// keep drops the candidates that are not in held.
func (s *search) keep() {
	kept := 0
	for i, c := range s.among {
		c.bits &= s.held[i]
		s.among[kept] = c
		if c.bits != 0 {
			kept++
		}
	}
	s.among = s.among[:kept]
}

// blank empties held.
func (s *search) blank() { s.held = extended(s.held[:0], len(s.among)) }
