package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"orchestrator/supervisor/settings"
)

// A Change is one difference. Agent is empty if it does not concern an agent.
type Change struct {
	Agent      string
	Action     settings.Action
	Attributes []string // such as "restart.delay"
	Place      string
	Detail     string
}

// Compare returns the changes that applying next requires while prev runs. Changes of settings
// come first, then changed agents in the order of next, then removed agents. A nil Config is
// empty.
func Compare(prev, next *Config) []Change {
	var changes []Change
	if prev != nil && next != nil {
		changes = append(compareSettings(prev, next), compareTasks(prev, next)...)
	}
	old, now := prev.byName(), next.byName()
	if next != nil {
		for i := range next.Agents {
			a := &next.Agents[i]
			if c, ok := compareAgent(old[a.Name], a, prev.scaled(a.Block)); ok {
				changes = append(changes, c)
			}
		}
	}
	if prev != nil {
		for i := range prev.Agents {
			if a := &prev.Agents[i]; now[a.Name] == nil {
				changes = append(changes, stopped(a, next.scaled(a.Block)))
			}
		}
	}
	return changes
}

func (c *Config) byName() map[string]*Agent {
	agents := map[string]*Agent{}
	if c == nil {
		return agents
	}
	for i := range c.Agents {
		agents[c.Agents[i].Name] = &c.Agents[i]
	}
	return agents
}

// scaled returns the attribute that adds or removes an agent of a block in both configurations.
func (c *Config) scaled(block string) []string {
	if c != nil && c.places["agent."+block] != "" {
		return []string{"replicas"}
	}
	return nil
}

func compareSettings(prev, next *Config) []Change {
	var changes []Change
	for _, s := range changed(prev.section(), next.section()) {
		c := Change{Action: s.needs, Attributes: []string{s.name}, Place: cmp.Or(next.Place(s.name), prev.Place(s.name))}
		c.Detail = s.name + " takes effect at once"
		if s.needs == settings.ActionRefused {
			c.Detail = s.name + " cannot change while the orchestrator runs; restart it"
		}
		changes = append(changes, c)
	}
	return changes
}

// compareTasks returns the changes of task blocks. A task is given out once, so a changed or
// removed block has no effect on it.
func compareTasks(prev, next *Config) []Change {
	var changes []Change
	add := func(place, name, detail string) {
		changes = append(changes, Change{Action: settings.ActionLive, Attributes: []string{name}, Place: place, Detail: name + detail})
	}
	old := map[string]*Task{}
	for i := range prev.Tasks {
		old[prev.Tasks[i].Name] = &prev.Tasks[i]
	}
	for i := range next.Tasks {
		t := &next.Tasks[i]
		name := "task." + t.Name
		switch before := old[t.Name]; {
		case before == nil:
			add(next.Place(name), name, " is submitted, unless it already was")
		case !reflect.DeepEqual(before, t):
			add(next.Place(name), name, " was already submitted, and its task stays unchanged")
		}
		delete(old, t.Name)
	}
	for i := range prev.Tasks {
		if name := "task." + prev.Tasks[i].Name; old[prev.Tasks[i].Name] != nil {
			add(prev.Place(name), name, " is no longer declared; its task stays")
		}
	}
	return changes
}

func compareAgent(old, now *Agent, scaled []string) (Change, bool) {
	c := Change{Agent: now.Name, Place: now.Place}
	if old == nil {
		c.Action, c.Attributes, c.Detail = settings.ActionStart, scaled, "is new"
		if scaled != nil {
			c.Detail = "is one more replica"
		}
		return c, true
	}
	var breaking []string
	for _, t := range changed(old.section(), now.section()) {
		c.Attributes = append(c.Attributes, t.name)
		if t.needs == settings.ActionRestart {
			breaking = append(breaking, t.name)
		}
	}
	switch {
	case len(c.Attributes) == 0:
		return Change{}, false
	case len(breaking) > 0:
		c.Action = settings.ActionRestart
		c.Detail = strings.Join(breaking, ", ") + changeVerb(breaking) + " only at a start; it is drained and restarted"
	default:
		c.Action = settings.ActionLive
		c.Detail = strings.Join(c.Attributes, ", ") + changeVerb(c.Attributes) + " at once"
	}
	return c, true
}

func changeVerb(names []string) string {
	if len(names) == 1 {
		return " takes effect"
	}
	return " take effect"
}

func stopped(a *Agent, scaled []string) Change {
	c := Change{Agent: a.Name, Action: settings.ActionStop, Attributes: scaled, Place: a.Place, Detail: "is no longer declared"}
	if scaled != nil {
		c.Detail = "is a surplus replica"
	}
	return c
}

// section returns the rows of a configuration, without the blocks of agents and tasks.
func (c *Config) section() section {
	r := &reader{config: c}
	return section{children: append(r.settings(hcl.Range{}), child{kind: "host"}.live(&c.Hosts), child{kind: "session"}.live(&c.Sessions))}
}

// section returns the rows of an agent.
func (a *Agent) section() section { return new(reader).agentSection(a, nil, nil, false) }

// changed returns the rows of a section that have other values than in another one.
func changed(prev, next section) (all []row) {
	old := prev.rows("")
	for i, now := range next.rows("") {
		if !slices.EqualFunc(old[i].held, now.held, same) {
			all = append(all, now)
		}
	}
	return all
}

// same compares variables. An empty list equals a nil one.
func same(a, b any) bool {
	if x, ok := a.(*[]string); ok {
		return slices.Equal(*x, *b.(*[]string))
	}
	if x, ok := a.(*[]int); ok {
		return slices.Equal(*x, *b.(*[]int))
	}
	return reflect.DeepEqual(a, b)
}
