package task

import (
	"orchestrator/wire"
)

// graph is tasks and what they depend on, and which of them are to be shown. A
// task is known by its place in the list.
type graph struct {
	Tasks []Seen   // oldest first
	needs [][]edge // what each depends on
	feeds [][]edge // what depends on each
	shown []bool
	left  int // chosen, and not shown
}

// edge leads to another task.
type edge struct {
	to   int
	link *wire.Link
}

// gates reports whether a dependency holds a task up.
func (e *edge) gates() bool { return e.link.Type != wire.DependsRelated }

// NewGraph makes the graph of tasks.
func NewGraph(tasks []Seen) *graph {
	g := &graph{Tasks: tasks, needs: make([][]edge, len(tasks)), feeds: make([][]edge, len(tasks)), shown: make([]bool, len(tasks))}
	at := make(map[string]int, len(tasks))
	for i := range tasks {
		at[tasks[i].ID] = i
	}
	for i := range tasks {
		links := linksOf(&tasks[i].Task)
		for n := range links {
			if on, known := at[links[n].On]; known {
				g.needs[i] = append(g.needs[i], edge{to: on, link: &links[n]})
				g.feeds[on] = append(g.feeds[on], edge{to: i, link: &links[n]})
			}
		}
	}
	return g
}

// Choose shows the tasks that are wanted.
func (g *graph) Choose(wanted func(n int) bool) {
	for n := range g.Tasks {
		g.shown[n] = g.shown[n] || wanted(n)
	}
}

// ChooseOpen shows what has not ended, and its neighbours.
func (g *graph) ChooseOpen() {
	open := func(n int) bool { return !g.Tasks[n].State.Final() }
	g.Choose(func(n int) bool {
		if open(n) {
			return true
		}
		for _, e := range append(g.needs[n][:len(g.needs[n]):len(g.needs[n])], g.feeds[n]...) {
			if open(e.to) {
				return true
			}
		}
		return false
	})
}

// ChooseAround shows one task, and what lies before and behind it; false when
// there is no such task.
func (g *graph) ChooseAround(id string) bool {
	for n := range g.Tasks {
		if g.Tasks[n].ID == id {
			g.reach(n, g.needs)
			g.reach(n, g.feeds)
			return true
		}
	}
	return false
}

// reach shows what can be reached from a task in one direction. What is related
// is shown, and nothing goes on from there.
func (g *graph) reach(from int, along [][]edge) {
	g.shown[from] = true
	been := make([]bool, len(g.Tasks))
	been[from] = true
	for open := []int{from}; len(open) > 0; {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		for _, e := range along[n] {
			g.shown[e.to] = true
			if e.gates() && !been[e.to] {
				been[e.to] = true
				open = append(open, e.to)
			}
		}
	}
}

// Chosen are the tasks that are shown, oldest first.
func (g *graph) Chosen() []int {
	var all []int
	for n, shown := range g.shown {
		if shown {
			all = append(all, n)
		}
	}
	return all
}

// keep shows the first few of what was chosen, and counts the others.
func (g *graph) keep(most int) {
	for i, n := range g.Chosen() {
		if i >= most {
			g.shown[n] = false
			g.left++
		}
	}
}

// graphDocument answers programs.
type graphDocument struct {
	FormatVersion string      `json:"format_version"`
	Tasks         []graphTask `json:"tasks"`
	Dependencies  []graphEdge `json:"dependencies"`
	LeftOut       int         `json:"left_out"` // tasks
}

type graphTask struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	State      wire.TaskState `json:"state"`
	AssignedTo string         `json:"assigned_to,omitzero"`
	Progress   float64        `json:"progress"`
}

type graphEdge struct {
	TaskID   string `json:"task_id"`
	On       string `json:"depends_on_task_id"`
	Type     string `json:"dependency_type"`
	Contract string `json:"contract_key,omitzero"`
	Resolved bool   `json:"resolved"`
}

func (g *graph) document() graphDocument {
	document := graphDocument{FormatVersion: wire.FormatVersion, LeftOut: g.left}
	for _, n := range g.Chosen() {
		t := &g.Tasks[n]
		document.Tasks = append(document.Tasks, graphTask{ID: t.ID, Name: t.Name, State: t.State, AssignedTo: t.AssignedTo, Progress: t.Progress})
		for _, e := range g.needs[n] {
			if g.shown[e.to] {
				document.Dependencies = append(document.Dependencies, graphEdge{
					TaskID: t.ID, On: e.link.On, Type: e.link.Type, Contract: e.link.Contract, Resolved: e.link.Resolved,
				})
			}
		}
	}
	return document
}
