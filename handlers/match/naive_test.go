package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// naive is an Index without optimizations: it applies the rules from top to bottom, agent by
// agent. The Index must always agree with it.
type naive map[string]naiveAgent

type naiveAgent struct {
	offer    Offer
	standing Standing
}

func (a *naiveAgent) repo(name string) (Repo, bool) {
	for _, r := range a.offer.Repos {
		if r.Name == name {
			return r, true
		}
	}
	return Repo{}, false
}

func (a *naiveAgent) languages() []string {
	all := slices.Clone(a.offer.Languages)
	for _, r := range a.offer.Repos {
		all = append(all, r.Languages...)
	}
	return all
}

func (a *naiveAgent) tools(repo string) []string {
	r, _ := a.repo(repo)
	return slices.Concat(a.offer.Tools, r.Tools)
}

// both returns the wanted texts that exist, each once, in the order wanted.
func both(wanted, there []string) (found []string) {
	for _, w := range wanted {
		if slices.Contains(there, w) && !slices.Contains(found, w) {
			found = append(found, w)
		}
	}
	return found
}

func lacking(wanted, there []string) (missing []string) {
	for _, w := range wanted {
		if !slices.Contains(there, w) && !slices.Contains(missing, w) {
			missing = append(missing, w)
		}
	}
	return missing
}

func list(texts []string) string { return strings.Join(texts, ", ") }

func (n naive) verdict(d *Demand, name string) Verdict {
	a := n[name]
	v := Verdict{Name: name, Online: a.standing.Online}
	if a.offer.Empty() {
		v.Score, v.Reasons = -1, []string{"no capabilities defined (disqualified)"}
		return v
	}
	if v.Reasons = a.against(d); len(v.Reasons) > 0 {
		v.Score = -1
		return v
	}
	give := func(points int, reason string) {
		v.Score += points
		v.Reasons = append(v.Reasons, fmt.Sprintf("%s (+%d)", reason, points))
	}
	if d.Repo != "" {
		give(100, "repo match: "+d.Repo)
	}
	if len(d.Languages) > 0 {
		give(50, "language match: "+list(both(d.Languages, d.Languages)))
	}
	if len(d.Environments) > 0 {
		give(30, "environment match: "+list(both(d.Environments, a.offer.Environments)))
	}
	if tools := both(d.Tools, a.tools(d.Repo)); len(tools) > 0 {
		give(10*len(tools), "tools match: "+list(tools))
	}
	if tags := both(d.Tags, a.offer.Tags); len(tags) > 0 {
		give(5*len(tags), "tags match: "+list(tags))
	}
	if d.Prefer == name {
		give(200, "preferred server")
	}
	if a.standing.Online {
		give(25, "online")
	}
	give(50, "has capacity")
	return v
}

func (a *naiveAgent) against(d *Demand) (reasons []string) {
	if _, there := a.repo(d.Repo); d.Repo != "" && !there {
		reasons = append(reasons, "missing repo: "+d.Repo+" (disqualified)")
	}
	for _, l := range lacking(d.Languages, a.languages()) {
		reasons = append(reasons, "missing language: "+l+" (disqualified)")
	}
	if len(d.Environments) > 0 && len(both(d.Environments, a.offer.Environments)) == 0 {
		reasons = append(reasons, "no matching environment: "+list(both(d.Environments, d.Environments))+" (disqualified)")
	}
	if s := a.standing; s.Running >= s.Capacity {
		reasons = append(reasons, fmt.Sprintf("at capacity: %d/%d (disqualified)", s.Running, s.Capacity))
	}
	return reasons
}

func (n naive) verdicts(d *Demand) []Verdict {
	all := []Verdict{}
	for name := range n {
		all = append(all, n.verdict(d, name))
	}
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (n naive) fits(d *Demand, name string, c Conditions) bool {
	a, known := n[name]
	return known && n.verdict(d, name).Score >= 0 &&
		(!c.Online || a.standing.Online) &&
		(!c.Free || a.standing.Load < a.standing.Capacity) &&
		name != c.Not
}

// best returns the first verdict that meets the conditions. The load decides before the name.
func (n naive) best(d *Demand, c Conditions) (string, int, bool) {
	var best *Verdict
	for _, v := range n.verdicts(d) {
		if n.fits(d, v.Name, c) && (best == nil || v.Score == best.Score && n[v.Name].standing.Load < n[best.Name].standing.Load) {
			best = &v
		}
	}
	if best == nil {
		return "", 0, false
	}
	return best.Name, best.Score, true
}
