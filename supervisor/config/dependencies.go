package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// dependencies reads depends_on. resolve resolves the names when all agents are known.
func dependencies(v value, owner string) []dependency {
	items, ok := v.items("a list of agents")
	if !ok {
		return nil
	}
	var waits []dependency
	for _, item := range items {
		name, ok := item.asText()
		if !ok {
			return nil
		}
		waits = append(waits, dependency{owner: owner, name: name, value: item})
	}
	return waits
}

// resolve replaces names of blocks by names of agents, and reports cycles.
func (r *reader) resolve(waits []dependency) {
	known := make([]string, 0, len(r.agents))
	isAgent := map[string]bool{}
	for name, b := range r.agents {
		if !b.broken {
			known = append(known, name)
		}
		for _, agent := range b.names {
			isAgent[agent] = true
		}
	}
	places := map[string]map[string]hcl.Range{} // agent -> dependency -> position
	for _, w := range waits {
		var names []string
		switch b := r.agents[w.name]; {
		case b != nil:
			names = b.names
		case isAgent[w.name]:
			names = []string{w.name}
		default:
			w.value.reject("unknown-agent", "Unknown agent",
				fmt.Sprintf("Agent %q depends on %s, which is not declared.", w.owner, w.value.quoted()),
				declaredAgents(w.value.suggest(w.name, known), known))
			continue
		}
		if w.agent < 0 {
			continue
		}
		a := &r.config.Agents[w.agent]
		a.DependsOn = joined(a.DependsOn, names)
		if places[a.Name] == nil {
			places[a.Name] = map[string]hcl.Range{}
		}
		for _, name := range names {
			places[a.Name][name] = w.value.expr.Range()
		}
	}
	needs, order := map[string][]string{}, []string(nil)
	for _, a := range r.config.Agents {
		needs[a.Name], order = a.DependsOn, append(order, a.Name)
	}
	r.cycles("Agents", order, needs, places)
}

// declaredAgents adds the declared agents to a hint if they are few.
func declaredAgents(hint string, known []string) string {
	const few = 8
	if len(known) > few {
		return hint
	}
	slices.Sort(known)
	return strings.TrimSpace(hint + " Declared agents: " + strings.Join(known, ", ") + ".")
}

// joined returns list with names added. A single dependency shares the block's list, because
// copies would use much memory with thousands of replicas.
func joined(list, names []string) []string {
	if len(list) == 0 {
		return slices.Clip(names)
	}
	have := map[string]bool{}
	for _, name := range list {
		have[name] = true
	}
	list = slices.Clip(list)
	for _, name := range names {
		if !have[name] {
			list = append(list, name)
		}
	}
	return list
}

// cycles reports every dependency that closes a cycle, with the whole cycle. It returns the names of order, each behind
// the names that it needs.
func (r *reader) cycles(who string, order []string, needs map[string][]string, places map[string]map[string]hcl.Range) (sorted []string) {
	const (
		unseen = iota
		onPath
		done
	)
	state := map[string]int{}
	var path []string
	var visit func(name string)
	visit = func(name string) {
		state[name] = onPath
		path = append(path, name)
		for _, need := range needs[name] {
			switch state[need] {
			case unseen:
				visit(need)
			case onPath:
				around := append(slices.Clone(path[slices.Index(path, need):]), need)
				r.report(places[name][need], Problem{
					Code: "config/dependency-cycle", Summary: "Dependency cycle",
					Detail: fmt.Sprintf("%s cannot wait for each other: %s.", who, strings.Join(around, " -> ")),
				})
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		sorted = append(sorted, name)
	}
	for _, name := range order {
		if state[name] == unseen {
			visit(name)
		}
	}
	return sorted
}
