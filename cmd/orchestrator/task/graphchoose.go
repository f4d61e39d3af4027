package task

import (
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// A graph is a list of tasks, their dependencies, and which of them are shown. A task is
// identified by its index in the list.
type graph struct {
	Tasks []Seen   // oldest first
	needs [][]edge // dependencies of each task
	feeds [][]edge // dependents of each task
	shown []bool
	left  int // number of chosen tasks that are not shown
}

// An edge leads to another task.
type edge struct {
	to   int
	link *wire.Link
}

// gates reports whether a dependency blocks a task.
func (e *edge) gates() bool { return e.link.Type != hub.DependsRelated }

// NewGraph returns the graph of tasks.
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

// Choose marks the wanted tasks as shown.
func (g *graph) Choose(wanted func(n int) bool) {
	for n := range g.Tasks {
		g.shown[n] = g.shown[n] || wanted(n)
	}
}

// ChooseOpen marks tasks that have not ended, and their neighbors, as shown.
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

// ChooseAround marks a task, its dependencies and its dependents as shown. It returns false
// for an unknown id.
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

// reach marks the tasks that can be reached in one direction. It shows related tasks, but
// does not continue from them.
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

// Chosen returns the tasks that are shown, oldest first.
func (g *graph) Chosen() []int {
	var all []int
	for n, shown := range g.shown {
		if shown {
			all = append(all, n)
		}
	}
	return all
}

// keep limits the shown tasks to the first most, and counts the others.
func (g *graph) keep(most int) {
	for i, n := range g.Chosen() {
		if i >= most {
			g.shown[n] = false
			g.left++
		}
	}
}

// graphDocument is the JSON answer of graph.
type graphDocument struct {
	FormatVersion string      `json:"format_version"`
	Tasks         []graphTask `json:"tasks"`
	Dependencies  []graphEdge `json:"dependencies"`
	LeftOut       int         `json:"left_out"` // number of tasks
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
