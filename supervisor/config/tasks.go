package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// A Task is a task block: a task that is given out once.
type Task struct {
	Name     string // the block's label
	Title    string // the label unless the file has a title
	Spec     string
	Agent    string   // name of the agent that gets it; "": any that fits
	Role     string   // that the agent must have; "": any
	Requires []string // capabilities that the agent must have
	Needs    []string // names of tasks that must be done first
	Work
}

// A need is an element of needs.
type need struct {
	task  string
	value value
}

// tasks reads the task blocks. It sorts the tasks: each one follows the tasks that it needs.
func (r *reader) tasks(blocks hcl.Blocks) {
	seen := map[string]hcl.Range{}
	var needs []need
	for _, b := range blocks {
		if r.unique(seen, b) && r.checkName(b, "A task") {
			r.config.places["task."+b.Labels[0]] = place(b.DefRange)
			t, of := r.task(b)
			r.config.Tasks = append(r.config.Tasks, t)
			needs = append(needs, of...)
		}
	}
	r.taskNeeds(seen, needs)
}

// task reads one block.
func (r *reader) task(b *hcl.Block) (Task, []need) {
	t := Task{Name: b.Labels[0], Title: b.Labels[0]}
	var needs []need
	var agent, role value
	set := r.read(b.Body, r.scope, section{
		title: fmt.Sprintf("Task %q", t.Name),
		path:  "task." + t.Name,
		attributes: []attribute{
			attr("title", &t.Title, word),
			attr("spec", &t.Spec, text),
			attr("agent", &t.Agent, func(into *string, v value) { agent = v; word(into, v) }),
			attr("role", &t.Role, func(into *string, v value) { role = v; quoted(into, v) }),
			attr("requires", &t.Requires, words),
			attr("needs", &needs, func(into *[]need, v value) { *into = needsOf(v, t.Name) }),
			attr("verify", &t.Verify, argvs),
		},
		children: []child{r.workspace("task."+t.Name, &t.Workspace, r.scope)},
	})
	if at, ok := set["agent"]; ok {
		for _, other := range []string{"role", "requires"} {
			if _, ok := set[other]; ok {
				r.report(at, Problem{
					Code: "config/agent-and-role", Summary: "Agent is both named and matched",
					Detail: fmt.Sprintf("agent names the agent of the task, and %s matches any agent.", other), Hint: "Keep one of the two.",
				})
			}
		}
		if t.Agent != "" {
			r.taskAgent(t.Agent, agent)
		}
		return t, needs
	}
	if t.Role == "" && len(t.Requires) == 0 {
		t.Role = roles[0]
	}
	if t.Role != "" {
		r.taskRole(&t, role, b)
	}
	return t, needs
}

// needsOf reads needs. taskNeeds resolves the names when all tasks are known.
func needsOf(v value, task string) []need {
	items, ok := v.items("a list of tasks")
	if !ok {
		return nil
	}
	var needs []need
	for _, item := range items {
		needs = append(needs, need{task: task, value: item})
	}
	return needs
}

// taskAgent checks that an agent of the file has a name.
func (r *reader) taskAgent(name string, v value) {
	var known []string
	for label, b := range r.agents {
		if b.broken && label == name || slices.Contains(b.names, name) {
			return
		}
		known = append(known, b.names...)
	}
	hint := declaredAgents(v.suggest(name, known), known)
	if b := r.agents[name]; b != nil && len(b.names) > 0 {
		hint = fmt.Sprintf("It has replicas: name one, for example %q.", b.names[0])
	}
	v.reject("unknown-agent", "Unknown agent", fmt.Sprintf("No agent is called %s.", v.quoted()), hint)
}

// taskRole checks that an agent has the role of a task. One with a predefined role may join
// later.
func (r *reader) taskRole(t *Task, v value, b *hcl.Block) {
	known := slices.Clone(roles)
	for i := range r.config.Agents {
		if r.config.Agents[i].Role == t.Role {
			return
		}
		known = append(known, r.config.Agents[i].Role)
	}
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Values(r.agents)), func(b *block) bool { return b.broken }):
	case slices.Contains(roles, t.Role):
		r.report(b.DefRange, Problem{
			Severity: SeverityWarning, Code: "config/task-without-agent", Summary: "No agent for a task",
			Detail: fmt.Sprintf("No agent of this file has the role %q; the task %q waits until one joins.", t.Role, t.Name),
		})
	default:
		v.reject("unknown-role", "Unknown role", fmt.Sprintf("No agent of this file has the role %s.", v.quoted()), v.suggest(t.Role, known))
	}
}

// taskNeeds replaces the elements of needs by names of tasks, and sorts the tasks.
func (r *reader) taskNeeds(known map[string]hcl.Range, needs []need) {
	of, places := map[string][]string{}, map[string]map[string]hcl.Range{}
	for _, n := range needs {
		name, ok := n.value.asText()
		if !ok {
			continue
		}
		if _, ok := known[name]; !ok {
			n.value.reject("unknown-task", "Unknown task",
				fmt.Sprintf("Task %q needs %s, which is not declared.", n.task, n.value.quoted()),
				n.value.suggest(name, slices.Collect(maps.Keys(known))))
			continue
		}
		of[n.task] = joined(of[n.task], []string{name})
		if places[n.task] == nil {
			places[n.task] = map[string]hcl.Range{}
		}
		places[n.task][name] = n.value.expr.Range()
	}
	byName := map[string]Task{}
	var names []string
	for _, t := range r.config.Tasks {
		t.Needs = of[t.Name]
		byName[t.Name], names = t, append(names, t.Name)
	}
	r.config.Tasks = nil
	for _, name := range r.cycles("Tasks", names, of, places) {
		if t, ok := byName[name]; ok {
			r.config.Tasks = append(r.config.Tasks, t)
		}
	}
}
